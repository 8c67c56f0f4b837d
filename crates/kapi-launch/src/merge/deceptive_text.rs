//! Lines of a sandbox's work that are not what they seem, for a review.
//!
//! They are told and not held back: what they mean is for the person to judge.

use std::fmt;

use kapi_core::deceptive;
use kapi_git::command::Git;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::{Layer, changes};
use serde::Serialize;

use crate::error::LaunchError;

/// The most of a patch that is looked through before a merge.
const PATCH_BYTES_MAX: usize = 16 << 20;

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

impl fmt::Display for DeceptiveText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what } = self;
        match line {
            0 => write!(f, "deceptive: {path}: its name has {what}"),
            line => write!(f, "deceptive: {path}: line {line} has {what}"),
        }
    }
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

/// Returns the lines of a layer's changes that are not what they seem.
pub(super) fn of_layer(
    git: &Git,
    layer: &Layer,
    lower: &LowerStack,
) -> Result<Vec<DeceptiveText>, LaunchError> {
    let changed = changes::changes(git, layer, lower, PATCH_BYTES_MAX);
    let changed = changed.map_err(|error| LaunchError::failed(&error))?;
    Ok(of_patch(&changed.patch.bytes))
}
