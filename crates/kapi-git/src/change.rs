//! One path that differs between two trees.
//!
//! Data alone; `diff.rs` asks git, and the repository keeps what was found.

use std::path::PathBuf;

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathChange {
    /// The path, relative to the root of the tree.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content differs.
    Modified,
    /// It is gone.
    Deleted,
    /// Only whether it may be executed differs.
    Mode,
    /// It was a file, link or submodule and is now another of these.
    Type,
}

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) mode: String,
    pub(crate) object: String,
    pub(crate) path: PathBuf,
}

/// One path that differs between two trees: what it is, and what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawChange {
    pub(crate) entry: TreeFile,
    pub(crate) kind: ChangeKind,
    pub(crate) mode_before: String,
    pub(crate) object_before: String,
}
