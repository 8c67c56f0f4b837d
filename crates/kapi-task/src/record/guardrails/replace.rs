//! Replacing a file that a person may be editing: only when it still holds what was read.
//!
//! Knows nothing of what is in the file.

use std::path::{Path, PathBuf};

use kapi_sys::disk::{Disk, DiskError};

/// What became of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaceOutcome {
    /// The new content is in place and durable.
    Yes,
    /// Somebody changed the file; it is as they left it.
    NoItChanged,
}

/// Puts `after` in the place of `before`, whole and durable, unless the file holds something else.
///
/// The caller holds a lock against other processes of ours. Editors take no lock: the file is
/// compared after the new content is durable beside it, as the last thing before the rename.
pub(crate) fn replace_unless_changed(
    disk: &dyn Disk,
    path: &Path,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<ReplaceOutcome, DiskError> {
    let beside = beside(path);
    disk.write(&beside, after)?;
    disk.sync(&beside)?;
    if disk.read(path, 0)?.as_deref() != before {
        return Ok(ReplaceOutcome::NoItChanged);
    }
    disk.rename(&beside, path)?;
    disk.sync(path.parent().unwrap_or(Path::new("/")))?;
    Ok(ReplaceOutcome::Yes)
}

/// Names the file next to `path` that will take its place; hidden, and no markdown.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tmp"))
}
