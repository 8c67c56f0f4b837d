//! What is in a workspace and not in its commit, with the reason.
//!
//! Data alone; the walk over a workspace and whoever makes a commit find them.

use std::fmt;
use std::path::PathBuf;

/// The largest file a candidate takes.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// Something in a workspace that did not get into a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedPath {
    /// Where it is, relative to the workspace.
    pub path: PathBuf,
    /// Why it was left out.
    pub why: RefusalReason,
}

/// Why something was left out of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// A directory that is a repository of its own; nothing in it is taken.
    NestedRepository,
    /// Git's data of a repository inside the workspace.
    GitDirectory,
    /// Files in the place of a submodule; the submodule stays as it is in the base.
    InSubmodule,
    /// A FIFO, socket or device.
    SpecialFile,
    /// A new or changed link that is absolute or may lead out of the repository, or into git's
    /// data; the commit keeps what the base has.
    EscapingLink,
    /// A name that is dangerous to check out, such as `.GIT`.
    UnsafeName,
    /// A path longer than can be opened.
    PathTooLong,
    /// Larger than [`FILE_BYTES_MAX`].
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// Git could not store it, for example because it is not in the encoding it claims.
    Unstorable,
    /// The content of a file that belongs in Git LFS, and not a pointer to it; the commit keeps
    /// the pointer that the base has.
    LfsContent,
    /// Kapi's own state at the top of a repository; the commit keeps what the base has.
    KapiState,
    /// The search for special files stopped here, at its limit.
    TooManyEntries,
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NestedRepository => "a nested repository",
            Self::GitDirectory => "git data of another repository",
            Self::InSubmodule => "files inside a submodule",
            Self::SpecialFile => "a pipe, socket or device",
            Self::EscapingLink => "a symbolic link that may point outside the repository",
            Self::UnsafeName => "a name that is dangerous to check out",
            Self::PathTooLong => "a path too long to open",
            Self::TooLarge => "a file too large to commit",
            Self::Unreadable => "not readable",
            Self::Unstorable => "not storable by git unchanged",
            Self::LfsContent => "content for Git LFS, without its filter",
            Self::KapiState => "Kapi's own state",
            Self::TooManyEntries => "more files than Kapi searches",
        })
    }
}
