//! Lines of a sandbox's work that are not what they seem, for a review.
//!
//! They are told and not held back: what they mean is for the person to judge.

use kapi_core::deceptive;
use serde::Serialize;

/// A line that is not what it seems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeceptiveText {
    /// The file.
    pub path: String,
    /// The line's number there; 0 for the file's own name.
    pub line: u64,
    /// What it has, in words.
    pub what: String,
}

/// Returns the lines that a patch adds.
pub(super) fn of_patch(patch: &[u8]) -> Vec<DeceptiveText> {
    let lines = deceptive::of_patch(patch).into_iter();
    lines
        .map(|found| DeceptiveText {
            path: found.path,
            line: found.line,
            what: found.how.to_string(),
        })
        .collect()
}
