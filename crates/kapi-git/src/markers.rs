//! Conflict markers that somebody left in a result: lines that none of its sides has there.
//!
//! Text about conflicts, and tests of them, have such lines of their own, so a line counts only where it
//! is new against every side.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::command::GitError;
use crate::id::CommitId;
use crate::repository::Repository;

/// How often a marker repeats its sign.
const SIGNS: usize = 7;

/// A conflict marker that none of the sides has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftoverMarker {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What stands there, without its end; foreign text.
    pub text: Vec<u8>,
}

/// A line of a file.
type FileLine = (PathBuf, u64);

impl Repository {
    /// Returns the conflict markers of a commit that none of its sides has, by path and line.
    ///
    /// # Errors
    /// When git fails, or a change is larger than its output may be.
    pub fn leftover_markers(
        &self,
        sides: &[CommitId],
        head: &CommitId,
    ) -> Result<Vec<LeftoverMarker>, GitError> {
        let mut left: Option<BTreeMap<FileLine, Vec<u8>>> = None;
        for side in sides {
            let new = self.new_markers(side, head)?;
            left = Some(match left {
                None => new,
                Some(known) => {
                    let both = known.into_iter();
                    both.filter(|(at, _)| new.contains_key(at)).collect()
                }
            });
        }
        let left = left.unwrap_or_default().into_iter();
        Ok(left
            .map(|((path, line), text)| LeftoverMarker { path, line, text })
            .collect())
    }

    fn new_markers(
        &self,
        side: &CommitId,
        head: &CommitId,
    ) -> Result<BTreeMap<FileLine, Vec<u8>>, GitError> {
        let mut found = BTreeMap::new();
        for hunk in self.hunks(side, head)? {
            if hunk.is_whole_file() {
                continue;
            }
            let lines = (hunk.line..).zip(&hunk.added);
            let lines = lines.map(|(line, text)| (line, without_end(text)));
            let markers = lines.filter(|(_, text)| is_marker(text));
            found.extend(markers.map(|(line, text)| ((hunk.path.clone(), line), text.to_vec())));
        }
        Ok(found)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Tells whether a line is one of the four that git writes around conflicting lines.
fn is_marker(line: &[u8]) -> bool {
    let Some((sign, rest)) = line.split_at_checked(SIGNS) else {
        return false;
    };
    let is_sign = |b: u8| sign.iter().all(|found| *found == b);
    let ends = rest.is_empty() || rest.starts_with(b" ");
    ends && (is_sign(b'<') || is_sign(b'>') || is_sign(b'|') || (is_sign(b'=') && rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::is_marker;

    #[test]
    fn markers_are_told_from_lines_that_look_like_them() {
        for line in [
            "<<<<<<< HEAD",
            "<<<<<<<",
            "||||||| 1a2b",
            "=======",
            ">>>>>>> other",
        ] {
            assert!(is_marker(line.as_bytes()), "{line}");
        }
        for line in [
            "<<<<<<",
            "<<<<<<<<",
            " <<<<<<< HEAD",
            "========",
            "======= text",
            "=====",
            "",
            "<<<<<<>",
            ">>>>>>>x",
        ] {
            assert!(!is_marker(line.as_bytes()), "{line}");
        }
    }
}
