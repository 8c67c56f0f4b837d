//! Where a goal's things are on the host.
//!
//! Pure paths, decided by the caller; nothing is created here.

use std::path::PathBuf;

/// The host paths one goal works with.
#[derive(Debug, Clone)]
pub struct GoalPaths {
    /// The project: the repository's top level.
    pub project: PathBuf,
    /// The name of the goal's refs, `refs/kapi/<ref_name>/…`.
    pub ref_name: String,
    /// The worktree.
    pub worktree: PathBuf,
    /// The directory that holds one directory for each run.
    pub runs: PathBuf,
    /// The hidden checks, kept at approval.
    pub hidden: PathBuf,
    /// Private homes and throw-away checkouts.
    pub scratch: PathBuf,
    /// The objects that sandboxes share: what their bases reach, for all repositories.
    pub stores: PathBuf,
}
