//! Whether what a layer holds is what lies below it anyway.
//!
//! The kernel copies a whole file up when only its time or mode was touched. Reads both sides and
//! writes nothing.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::survey::{LayerEntry, LayerPathKind, LayerSurvey, LowerPath};

/// How much of two files is compared at a time.
const BLOCK_BYTES: usize = 64 * 1024;

/// How an entry of a layer relates to what lies below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerRelation {
    /// Nothing lies below.
    New,
    /// It is what lies below.
    Same,
    /// Only permissions differ.
    Mode,
    /// Another content of the same type.
    Content,
    /// Another type lies below.
    Type,
}

/// Compares a file or link of a layer with what lies below; what cannot be read differs.
pub(crate) fn relation(survey: &LayerSurvey, path: &Path, entry: &LayerEntry) -> LayerRelation {
    match (&entry.what, entry.below) {
        (_, LowerPath::Nothing) => LayerRelation::New,
        (
            LayerPathKind::File { bytes, mode },
            LowerPath::File {
                bytes: old_bytes,
                mode: old_mode,
            },
        ) => {
            if *bytes != old_bytes || !has_same_bytes(survey, path).unwrap_or(false) {
                LayerRelation::Content
            } else if mode & 0o777 != old_mode & 0o777 {
                LayerRelation::Mode
            } else {
                LayerRelation::Same
            }
        }
        (LayerPathKind::Link { target }, LowerPath::Link) => match survey.lower.link(path) {
            Ok(old) if old == target.as_bytes() => LayerRelation::Same,
            Ok(_) | Err(_) => LayerRelation::Content,
        },
        _ => LayerRelation::Type,
    }
}

fn has_same_bytes(survey: &LayerSurvey, path: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (survey.upper.file(path)?, survey.lower.file(path)?);
    let (mut left, mut right) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    loop {
        let n_left = fill(&mut one, &mut left)?;
        let n_right = fill(&mut other, &mut right)?;
        if left.get(..n_left) != right.get(..n_right) {
            return Ok(false);
        }
        if n_left < BLOCK_BYTES {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}
