//! A flag one thread raises and others watch.
//!
//! Knows nothing of what is being cancelled; raising it never blocks and cannot be undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often it is looked whether some work is to end.
const LOOK: Duration = Duration::from_millis(25);

/// A shared flag that asks a running effect to stop.
#[derive(Debug, Clone, Default)]
pub struct Cancel(pub(crate) Arc<AtomicBool>);

impl Cancel {
    /// Returns a flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for every clone.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Tells whether any clone was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Does something that `own` ends, and raises that as soon as it is to end for another reason: a thread
/// beside it looks for one.
pub fn ended_when<T>(
    mut is_to_end: impl FnMut() -> bool + Send,
    own: &Cancel,
    work: impl FnOnce() -> T,
) -> T {
    thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let is_under_way = || ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
            while !is_to_end() && is_under_way() {}
            if is_to_end() {
                own.raise();
            }
        });
        let value = work();
        drop(alive);
        value
    })
}

#[cfg(test)]
mod tests {
    use super::{Cancel, ended_when};

    #[test]
    fn what_is_not_wanted_any_more_is_ended() {
        let (wanted, own) = (Cancel::new(), Cancel::new());
        assert_eq!(ended_when(|| wanted.is_raised(), &own, || 1), 1);
        assert!(!own.is_raised());
        ended_when(
            || wanted.is_raised(),
            &own,
            || {
                wanted.raise();
                while !own.is_raised() {
                    std::thread::yield_now();
                }
            },
        );
    }
}
