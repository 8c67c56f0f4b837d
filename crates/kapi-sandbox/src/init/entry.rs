//! An entry of the new root: a path inside and what stands there.
//!
//! Does not know how an entry is put in place, nor which entries a sandbox has.

use std::path::PathBuf;

use super::mount::{DetachedMount, MountRights, NewFileSystem};
use crate::status::StepFailure;

/// A path in the new root and its content.
#[derive(Debug)]
pub(super) struct RootEntry {
    /// The path, as seen from inside.
    pub inside: PathBuf,
    /// What stands there.
    pub content: RootContent,
}

/// The kinds of content that a root has.
#[derive(Debug)]
pub(super) enum RootContent {
    /// A mount taken from the host.
    Tree(DetachedMount),
    /// The next of the copy-on-write mounts, which the launcher makes meanwhile.
    Layer,
    /// A new file system.
    Fresh(NewFileSystem),
    /// A directory that can be written, on the root's memory.
    Writable(u32),
    /// A directory that stays empty.
    Empty,
    /// A file on the root itself.
    File(Vec<u8>),
    /// A file of the host that everybody may read, if there is one.
    Public,
    /// A file that is read-only wherever it lies.
    Sealed(Vec<u8>),
    /// A symbolic link.
    Link(PathBuf),
}

/// Returns the entry that shows a directory of the host at its own path; `None` if there is no such
/// directory.
pub(super) fn shown_directory(path: PathBuf) -> Result<Option<RootEntry>, StepFailure> {
    let tree = DetachedMount::clone_of_directory(&path, MountRights::Read)?;
    Ok(tree.map(|tree| RootEntry {
        inside: path,
        content: RootContent::Tree(tree),
    }))
}
