//! A small index: filled by git, read without it.
//!
//! An index in a format that cannot be read here is an error: git wrote it a moment ago.

use std::path::{Path, PathBuf};

use super::trees::TreeEntry;
use crate::checkout::line;
use crate::command::GitError;
use crate::repository::index_file::IndexFile;
use crate::repository::{ObjectFormat, path_of};
use crate::scratch::Scratch;

/// Returns the entries of an index; none when there is no index.
pub(crate) fn entries(
    path: &Path,
    format: ObjectFormat,
) -> Result<Vec<(PathBuf, TreeEntry)>, GitError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let index = IndexFile::read(path, format).ok_or_else(|| GitError::Unexpected {
        subcommand: "update-index".to_owned(),
    })?;
    let entries = index.entries().map(|entry| {
        let found = TreeEntry {
            mode: format!("{:06o}", entry.mode()),
            object: entry.object(),
        };
        (path_of(entry.path()), found)
    });
    Ok(entries.collect())
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
