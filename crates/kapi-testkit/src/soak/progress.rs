//! How a soak tells people where it stands: a line now and then, with the time since it began.
//!
//! Knows nothing of what is told.

use std::time::{Duration, Instant};

/// Says a line now and then.
pub(super) struct Progress<'s> {
    began: Instant,
    said: Instant,
    say: &'s mut dyn FnMut(&str),
}

impl<'s> Progress<'s> {
    pub(super) fn new(say: &'s mut dyn FnMut(&str)) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            said: now,
            say,
        }
    }

    /// Returns how long ago it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Tells whether nothing was said for so long.
    pub(super) fn is_due(&self, every: Duration) -> bool {
        self.said.elapsed() >= every
    }

    pub(super) fn say(&mut self, line: &str) {
        self.said = Instant::now();
        let seconds = self.elapsed().as_secs();
        (self.say)(&format!("{:>4}:{:02}  {line}", seconds / 60, seconds % 60));
    }
}
