//! Putting files of a workspace into a private index.
//!
//! Knows neither which files these are nor why.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::candidate::CandidateError;
use crate::command::GitError;
use crate::scratch::Scratch;

/// The most calls spent on finding which files git does not take.
pub(crate) const SEARCH_CALLS_MAX: usize = 400;

pub(crate) fn remove_paths(scratch: &Scratch<'_>, paths: &[PathBuf]) -> Result<(), GitError> {
    if paths.is_empty() {
        return Ok(());
    }
    let call = scratch
        .call("update-index")
        .args(["--force-remove", "-z", "--stdin"]);
    call.stdin(zero_terminated(paths)).done()
}

/// Stages files, and finds those that git fails on by halving.
pub(crate) struct StagingSearch<'a> {
    pub(crate) scratch: &'a Scratch<'a>,
    pub(crate) calls_left: usize,
}

impl StagingSearch<'_> {
    pub(crate) fn add(
        &mut self,
        paths: &[PathBuf],
        unstorable: &mut Vec<PathBuf>,
    ) -> Result<(), CandidateError> {
        if paths.is_empty() {
            return Ok(());
        }
        if self.calls_left == 0 {
            return Err(CandidateError::TooManyUnstorable);
        }
        self.calls_left -= 1;
        let call = self.scratch.call("update-index");
        let call = call.args(["--add", "--remove", "--replace", "-z", "--stdin"]);
        if call.stdin(zero_terminated(paths)).exit()?.code == 0 {
            return Ok(());
        }
        if let [path] = paths {
            unstorable.push(path.clone());
            return Ok(());
        }
        let (first, second) = paths.split_at(paths.len() / 2);
        self.add(first, unstorable)?;
        self.add(second, unstorable)
    }
}

fn zero_terminated(paths: &[PathBuf]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}
