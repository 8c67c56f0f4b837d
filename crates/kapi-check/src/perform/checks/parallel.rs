//! The same work on many things, a few at a time.
//!
//! Knows nothing of the work. The first failure keeps what has not begun from beginning.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kapi_core::failure::Failure;

/// What one thread made, with the places where it belongs.
type Made<R> = Result<Vec<(usize, R)>, Failure>;

/// Works on each of several things with at most `jobs` threads; returns what came out, in order.
pub(super) fn each<T: Sync, R: Send>(
    jobs: usize,
    things: &[T],
    work: impl Fn(usize, &T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || -> Made<R> {
        let mut made = Vec::new();
        while !has_failed.load(Ordering::SeqCst) {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let Some(thing) = things.get(number) else {
                break;
            };
            match work(number, thing) {
                Ok(result) => made.push((number, result)),
                Err(failure) => {
                    has_failed.store(true, Ordering::SeqCst);
                    return Err(failure);
                }
            }
        }
        Ok(made)
    };
    let all: Vec<Made<R>> = thread::scope(|scope| {
        let n_threads = jobs.clamp(1, things.len().max(1));
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(worker)).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(made) => made,
            Err(panic) => resume_unwind(panic),
        });
        ended.collect()
    });
    let mut made = Vec::new();
    for part in all {
        made.extend(part?);
    }
    made.sort_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex};

    use kapi_core::failure::Failure;

    use super::each;

    #[test]
    fn as_many_as_allowed_are_under_way_and_never_more() {
        let under_way = Mutex::new((0, 0));
        let is_full = Condvar::new();
        let things: Vec<usize> = (0..9).collect();
        let doubled = each(3, &things, |number, thing| {
            let mut now = under_way.lock().unwrap();
            now.0 += 1;
            now.1 = now.1.max(now.0);
            // Nobody goes on before three were there at once.
            is_full.notify_all();
            let mut now = is_full.wait_while(now, |now| now.1 < 3).unwrap();
            now.0 -= 1;
            assert_eq!(number, *thing);
            Ok(thing * 2)
        });
        assert_eq!(doubled.unwrap(), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(under_way.lock().unwrap().1, 3);
    }

    #[test]
    fn a_failure_keeps_the_rest_from_beginning() {
        let n_begun = AtomicUsize::new(0);
        let result = each(1, &[1, 2, 3], |_, thing| {
            n_begun.fetch_add(1, Ordering::SeqCst);
            if *thing == 2 {
                let message = "do it".to_owned();
                return Err(Failure {
                    message,
                    hint: None,
                });
            }
            Ok(())
        });
        assert_eq!(result.unwrap_err().message, "do it");
        assert_eq!(n_begun.load(Ordering::SeqCst), 2);
        let nothing: Vec<u8> = each(4, &[] as &[u8], |_, thing| Ok(*thing)).unwrap();
        assert_eq!(nothing, [0; 0]);
    }
}
