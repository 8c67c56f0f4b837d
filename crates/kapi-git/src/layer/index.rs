//! A small index: filled by git, read without it.
//!
//! Reading saves a process where a process is what costs. Knows the plain format only (versions 2 and 3),
//! which is what git writes unless told otherwise; anything else is an error.

use std::fs;
use std::path::{Path, PathBuf};

use super::trees::TreeEntry;
use crate::checkout::line;
use crate::command::GitError;
use crate::repository::{ObjectFormat, path_of};
use crate::scratch::Scratch;

/// Where the mode, the object's id and the flags begin in an entry.
const MODE_AT: usize = 24;
const OBJECT_AT: usize = 40;

/// The flag that says that two more bytes of flags follow.
const EXTENDED: u8 = 0x40;

/// Returns the entries of an index; none when there is no index.
pub(crate) fn entries(
    path: &Path,
    format: ObjectFormat,
) -> Result<Vec<(PathBuf, TreeEntry)>, GitError> {
    let Ok(bytes) = fs::read(path) else {
        return Ok(Vec::new());
    };
    parse(&bytes, format).ok_or_else(|| GitError::Unexpected {
        subcommand: "update-index".to_owned(),
    })
}

/// Puts what the base has at these paths into an empty index.
pub(crate) fn fill<'a>(
    scratch: &Scratch<'_>,
    paths: impl Iterator<Item = (&'a PathBuf, &'a Option<TreeEntry>)>,
) -> Result<(), GitError> {
    let mut script = Vec::new();
    for (path, base) in paths {
        if let Some(entry) = base {
            line(&mut script, &entry.mode, &entry.object, path);
        }
    }
    if script.is_empty() {
        return Ok(());
    }
    let call = scratch.call("update-index").args(["-z", "--index-info"]);
    call.stdin(script).done()
}

fn parse(bytes: &[u8], format: ObjectFormat) -> Option<Vec<(PathBuf, TreeEntry)>> {
    let n_hash = match format {
        ObjectFormat::Sha1 => 20,
        ObjectFormat::Sha256 => 32,
    };
    let is_plain = bytes.starts_with(b"DIRC") && matches!(number(bytes, 4)?, 2 | 3);
    let n_entries = number(bytes, 8)?;
    let mut rest = bytes.get(12..).filter(|_| is_plain)?;
    let mut entries = Vec::new();
    for _ in 0..n_entries {
        let mode = number(rest, MODE_AT)?;
        let hash = rest.get(OBJECT_AT..OBJECT_AT + n_hash)?;
        let flags_at = OBJECT_AT + n_hash;
        let is_extended = rest.get(flags_at)? & EXTENDED != 0;
        let name_at = flags_at + if is_extended { 4 } else { 2 };
        let name = rest.get(name_at..)?.split(|&b| b == 0).next()?;
        let entry = TreeEntry {
            mode: format!("{mode:06o}"),
            object: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        entries.push((path_of(name), entry));
        // At least one zero byte, up to a multiple of eight.
        rest = rest.get((name_at + name.len() + 8) & !7..)?;
    }
    Some(entries)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
