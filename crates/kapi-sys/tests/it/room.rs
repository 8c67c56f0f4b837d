//! Room for what a limit of time is to end: on a busy machine it may not get to its point before.
//!
//! Shared by the tests of several crates; knows nothing of what they try.

use std::iter;

/// The longest limit that is tried.
const LONGEST_MS: u64 = 600_000;

/// Tries with a limit in milliseconds, and with twice as much for as long as the machine is too slow
/// for what has to fit into it.
pub(crate) fn with_room<T>(first_ms: u64, attempt: impl FnMut(u64) -> Option<T>) -> T {
    let limits = iter::successors(Some(first_ms), |limit_ms| Some(limit_ms * 2));
    let mut limits = limits.take_while(|limit_ms| *limit_ms < LONGEST_MS);
    limits.find_map(attempt).unwrap()
}
