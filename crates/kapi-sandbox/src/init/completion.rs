//! How the launcher tells the leader what came of something it did beside it.
//!
//! A word in the memory that both run in, so nothing is allocated and no descriptor is needed. Knows
//! nothing of what was done.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::status::StepFailure;

/// Something that the launcher does once.
#[derive(Debug)]
pub(super) struct StepCompletion {
    /// [`OPEN`], [`DONE`], or the number of a refused call with its error in the bits above.
    word: AtomicU32,
}

/// A refused call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Its number among the calls that somebody makes.
    pub(super) call: u32,
    /// Why.
    pub(super) errno: Errno,
}

impl Refusal {
    /// Returns what makes a refusal of a call out of the system's error.
    pub(super) const fn of(call: u32) -> impl Fn(Errno) -> Self {
        move |errno| Self { call, errno }
    }
}

const OPEN: u32 = 0;
const DONE: u32 = u32::MAX;
/// Bits of a word below the error, and one more than the largest number in them.
const CALL_BITS: u32 = 8;
const CALLS_END: u32 = 1 << CALL_BITS;

impl StepCompletion {
    /// Returns one that is still to be given.
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(OPEN),
        }
    }

    /// Gives it; the launcher's half.
    pub(super) fn give(&self, answer: Result<(), Refusal>) {
        let word = match answer {
            Ok(()) => DONE,
            // An error is never 0, so neither is the word.
            Err(Refusal { call, errno }) => {
                errno.raw_os_error().cast_unsigned() << CALL_BITS | (call % CALLS_END)
            }
        };
        self.word.store(word, Ordering::Release);
        match futex::wake(&self.word, Flags::PRIVATE, 1) {
            // Nobody slept, or nobody can any more: the word is no longer what sleepers expect.
            Ok(_) | Err(_) => {}
        }
    }

    /// Waits for it; the leader's half. The leader dies with the launcher, so this wait has an end.
    pub(super) fn hear(&self) -> Result<Result<(), Refusal>, StepFailure> {
        loop {
            match self.word.load(Ordering::Acquire) {
                OPEN => {}
                DONE => return Ok(Ok(())),
                refused => {
                    let errno = Errno::from_raw_os_error((refused >> CALL_BITS).cast_signed());
                    let call = refused % CALLS_END;
                    return Ok(Err(Refusal { call, errno }));
                }
            }
            match futex::wait(&self.word, Flags::PRIVATE, OPEN, None) {
                // It may have been given meanwhile.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(StepFailure::new("futex", "the launcher", errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::io::Errno;

    use super::{Refusal, StepCompletion};

    fn check(answer: Result<(), Refusal>) {
        let given = StepCompletion::new();
        given.give(answer);
        assert_eq!(given.hear().unwrap(), answer);
        let late = StepCompletion::new();
        let heard = thread::scope(|scope| {
            let hearing = scope.spawn(|| late.hear());
            late.give(answer);
            hearing.join().unwrap()
        });
        assert_eq!(heard.unwrap(), answer);
    }

    #[test]
    fn an_answer_is_heard_whenever_it_is_given() {
        check(Ok(()));
        let last = Errno::from_raw_os_error(4095);
        for (call, errno) in [(0, Errno::PERM), (3, Errno::NOSPC), (255, last)] {
            check(Err(Refusal { call, errno }));
        }
    }
}
