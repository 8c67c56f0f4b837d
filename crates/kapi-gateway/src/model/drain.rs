//! Reading on in an answer whose agent went away, so that its usage is still counted.
//!
//! Only a few at once, and each only for a time: hanging up must neither save tokens nor hold the
//! gateway. It reads nothing itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Answers that are read on at once; the other connections stay free for the agent.
const DRAINS_MAX: usize = 32;

/// The permit to read one answer to its end.
#[derive(Debug)]
pub(crate) struct DrainPermit<'g> {
    n_drains: &'g AtomicUsize,
    until: Instant,
}

impl<'g> DrainPermit<'g> {
    /// Returns the leave, or nothing while too many answers are read on already.
    pub(crate) fn begin(n_drains: &'g AtomicUsize, time_max: Duration) -> Option<Self> {
        // Made at once, so that its end gives back what is taken here, also when it is too much.
        let drain = Self {
            n_drains,
            until: Instant::now() + time_max,
        };
        let n_before = n_drains.fetch_add(1, Ordering::SeqCst);
        (n_before < DRAINS_MAX).then_some(drain)
    }

    /// Returns when the reading must end.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }
}

impl Drop for DrainPermit<'_> {
    fn drop(&mut self) {
        self.n_drains.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::{DRAINS_MAX, DrainPermit};

    #[test]
    fn no_more_than_a_few_read_on_and_each_gives_its_place_back() {
        let n_drains = AtomicUsize::new(0);
        let begin = || DrainPermit::begin(&n_drains, Duration::ZERO);
        let mut drains: Vec<_> = (0..DRAINS_MAX).map_while(|_| begin()).collect();
        assert_eq!(drains.len(), DRAINS_MAX);
        assert!(begin().is_none() && begin().is_none());
        drop(drains.pop());
        assert!(begin().is_some());
        drop(drains);
        assert_eq!(n_drains.load(Ordering::SeqCst), 0);
    }
}
