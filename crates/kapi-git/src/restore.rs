//! Putting a workspace back to exactly a commit, ignored files too, and proving that it is there.
//!
//! For worktrees in which only what is committed may outlast a decision. What was there is the
//! caller's to keep before.

use crate::candidate::{CandidateError, CandidatePlan, check};
use crate::command::GitError;
use crate::id::{CommitId, TreeId};
use crate::owned_dir::DirError;
use crate::repository::Repository;
use crate::workspace::{GitWorkspace, WorkspaceError};

/// A workspace that is exactly a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestorationProof {
    /// The tree of the commit and of the files.
    pub tree: TreeId,
    /// How many files, or repositories, were removed that are not in it.
    pub n_removed: u64,
}

/// A workspace that could not be put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Its files are not those of the commit all the same.
    #[error("put {branch} back to {commit}: its files are the tree {found}, not {expected}")]
    OtherTree {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// The tree of the commit.
        expected: TreeId,
        /// The tree of the files.
        found: TreeId,
    },
    /// Something is left that no commit holds.
    #[error("put {branch} back to {commit}: {path} cannot be removed")]
    LeftOver {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// One of what is left.
        path: String,
    },
    /// The files could not be read as a candidate.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The workspace could not be changed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Makes the files exactly what `commit` holds, with nothing besides, and proves it.
    pub fn restore_workspace(
        &self,
        workspace: &GitWorkspace,
        commit: &CommitId,
    ) -> Result<RestorationProof, RestoreError> {
        let at_commit = GitWorkspace {
            base: commit.clone(),
            ..workspace.clone()
        };
        workspace.restore_link()?;
        let scratch = workspace.scratch(self)?;
        scratch.index_commit(commit)?;
        let others = || scratch.call("ls-files").args(["-z", "--others"]).bytes();
        let before = others()?;
        self.reset_workspace(workspace, commit)?;
        // What git ignores is no part of a commit, and must not be of the next one's measurement.
        scratch
            .call("clean")
            .args(["-f", "-f", "-d", "-x", "-q"])
            .done()?;
        let left = others()?;
        if let Some(path) = left.split(|&b| b == 0).find(|path| !path.is_empty()) {
            return Err(RestoreError::LeftOver {
                branch: workspace.branch.clone(),
                commit: commit.clone(),
                path: String::from_utf8_lossy(path).into_owned(),
            });
        }
        let expected = self.tree_of(commit)?;
        let found = self.snapshot(&at_commit)?.tree;
        if found != expected {
            return Err(RestoreError::OtherTree {
                branch: workspace.branch.clone(),
                commit: commit.clone(),
                expected,
                found,
            });
        }
        let removed = before.split(|&b| b == 0).filter(|path| !path.is_empty());
        Ok(RestorationProof {
            tree: found,
            n_removed: u64::try_from(removed.count()).unwrap_or(u64::MAX),
        })
    }

    /// Makes a commit with the files of another one and a parent and message of its own, and names it.
    ///
    /// A function of its arguments, so that doing it twice gives the same id.
    pub fn recommit(
        &self,
        workspace: &GitWorkspace,
        commits: Recommit<'_>,
        plan: &CandidatePlan,
    ) -> Result<CommitId, CandidateError> {
        check(plan)?;
        let tree = self.tree_of(commits.files)?;
        let on_parent = GitWorkspace {
            base: commits.parent.clone(),
            ..workspace.clone()
        };
        self.commit_tree(&on_parent, plan, &tree)
    }

    /// Commits the files of a workspace as [`Repository::commit_candidate`] does, on a commit that
    /// its branch came to.
    pub fn commit_candidate_on(
        &self,
        workspace: &GitWorkspace,
        parent: &CommitId,
        plan: &CandidatePlan,
    ) -> Result<crate::candidate::Candidate, CandidateError> {
        let on_parent = GitWorkspace {
            base: parent.clone(),
            ..workspace.clone()
        };
        self.commit_candidate(&on_parent, plan)
    }
}

/// What a commit is made of.
#[derive(Debug, Clone, Copy)]
pub struct Recommit<'a> {
    /// The commit with its files.
    pub files: &'a CommitId,
    /// Its only parent.
    pub parent: &'a CommitId,
}
