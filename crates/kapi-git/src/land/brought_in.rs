//! Bringing another commit into a branch for somebody who resolves what does not fit: a commit of both,
//! with the conflicts in its files.
//!
//! Moves no ref. Who resolves them, and whether they did, is not known here.

use std::path::{Path, PathBuf};

use super::LandError;
use super::merge::{ConflictKind, MergeOutcome};
use crate::author::Author;
use crate::commit_object::{CommitObject, utc};
use crate::id::CommitId;
use crate::owned_dir;
use crate::repository::Repository;
use crate::scratch::Objects;

/// What is brought into what.
#[derive(Debug, Clone, Copy)]
pub struct BringInPlan<'a> {
    /// Where the branch is.
    pub ours: &'a CommitId,
    /// What comes in.
    pub theirs: &'a CommitId,
    /// The message of the commit.
    pub message: &'a str,
    /// Author and committer.
    pub author: &'a Author,
    /// The time, in seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
    /// A directory of ours for git's own files; nothing is left in it.
    pub scratch: &'a Path,
}

/// A commit whose parents are both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroughtIn {
    /// The commit; where lines conflict, both versions stand between markers.
    pub commit: CommitId,
    /// The paths that do not fit, sorted.
    pub conflicts: Vec<ConflictedPath>,
}

/// A path where both sides do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictedPath {
    /// The path.
    pub path: PathBuf,
    /// Whether there are markers to be resolved, or one version to be chosen.
    pub is_marked: bool,
}

impl Repository {
    /// Brings a commit into another one.
    ///
    /// # Errors
    /// When the two have no commit in common; when git is too old or fails.
    pub fn bring_in(&self, plan: &BringInPlan<'_>) -> Result<BroughtIn, LandError> {
        let scratch = self.merging(plan.scratch, Objects::Shared)?;
        let (tree, conflicts) = match scratch.merged(plan.ours, plan.theirs)? {
            MergeOutcome::Clean(tree) => (tree, Vec::new()),
            MergeOutcome::Conflicts(conflict) => {
                let paths = conflict.paths.into_iter().map(|one| ConflictedPath {
                    is_marked: is_marked(one.kind),
                    path: one.path,
                });
                (conflict.tree, paths.collect())
            }
        };
        let at = utc(plan.at_unix_seconds);
        let commit = CommitObject {
            tree: &tree,
            parents: &[plan.ours, plan.theirs],
            message: plan.message.as_bytes(),
            author: plan.author,
            authored: &at,
            committer: plan.author,
            committed: &at,
        };
        let commit = commit.write(self.call("commit-tree"))?;
        owned_dir::wipe(plan.scratch)?;
        Ok(BroughtIn { commit, conflicts })
    }
}

/// Tells whether a conflict of this kind leaves markers in a text.
const fn is_marked(kind: ConflictKind) -> bool {
    match kind {
        ConflictKind::Content | ConflictKind::RenameEdit | ConflictKind::AddAdd => true,
        ConflictKind::RenameDelete
        | ConflictKind::RenameRename
        | ConflictKind::DirectoryRename
        | ConflictKind::DeleteEdit
        | ConflictKind::Mode
        | ConflictKind::Binary
        | ConflictKind::Submodule
        | ConflictKind::FileDirectory => false,
    }
}
