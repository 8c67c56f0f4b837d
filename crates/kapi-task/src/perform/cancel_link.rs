//! Ending what is under way for a task that is not wanted any more.
//!
//! Knows no budget: what is used up raises the same flag elsewhere.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kapi_sys::cancel::Cancel;

/// How often it is looked whether the task is still wanted.
const LOOK: Duration = Duration::from_millis(25);

/// Does something that `own` ends, while `wanted` ends it too.
pub(super) fn linked<T>(wanted: &Cancel, own: &Cancel, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let is_under_way = || ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
            while !wanted.is_raised() && is_under_way() {}
            if wanted.is_raised() {
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
    use kapi_sys::cancel::Cancel;

    use super::linked;

    #[test]
    fn what_is_not_wanted_any_more_is_ended() {
        let (wanted, own) = (Cancel::new(), Cancel::new());
        assert_eq!(linked(&wanted, &own, || 1), 1);
        assert!(!own.is_raised());
        linked(&wanted, &own, || {
            wanted.raise();
            while !own.is_raised() {
                std::thread::yield_now();
            }
        });
    }
}
