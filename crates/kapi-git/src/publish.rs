//! The one step that shows: a goal's branch moves from its base to the proved commit.
//!
//! Compare and swap, so that a branch somebody else moved is left alone. Repeating it is fine.

use std::path::PathBuf;

use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::owned_dir::DirError;
use crate::ref_name::branch_ref;
use crate::reference::plain::RefChange;
use crate::repository::Repository;
use crate::workspace::{GitWorkspace, WorkspaceError, goal_ref};

/// A branch that could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The branch is not Kapi's.
    #[error("move branch {branch}: this goal did not create it")]
    NotOurs {
        /// The branch.
        branch: String,
    },
    /// The branch is at another commit; somebody moved or deleted it.
    #[error("move branch {branch} from {expected}: it is at {}", display(actual.as_ref()))]
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it should be.
        expected: CommitId,
        /// Where it is; `None` when it is gone.
        actual: Option<CommitId>,
    },
    /// Its own worktree gave the branch up, and somebody has it checked out now.
    #[error(
        "move branch {branch}: it is checked out at {}; switch to another branch there",
        at.display()
    )]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Where.
        at: PathBuf,
    },
    /// The worktree could not be brought into step.
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
    /// Moves the workspace's branch from its base to `to`, and its index with it.
    pub fn publish(&self, workspace: &GitWorkspace, to: &CommitId) -> Result<(), PublishError> {
        self.publish_from(workspace, &workspace.base, to)
    }

    /// Moves the workspace's branch from `from`, where an earlier result left it, to `to`.
    pub fn publish_from(
        &self,
        workspace: &GitWorkspace,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), PublishError> {
        self.publish_branch(workspace, from, to)?;
        // A directory that is gone has nothing to bring into step, and what is a link to somewhere
        // else is not written to.
        if workspace.check_in_place().is_ok() {
            workspace.restore_link()?;
            let scratch = workspace.scratch(self)?;
            scratch.index_commit(to)?;
            workspace.disarm_submodules(&scratch)?;
            workspace.share_index(self, &scratch)?;
        }
        Ok(())
    }

    /// Moves the branch alone, for whoever brings the workspace into step by itself.
    pub fn publish_branch(
        &self,
        workspace: &GitWorkspace,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), PublishError> {
        let branch = &workspace.branch;
        let base = self.recorded_base(&workspace.goal)?;
        if base.as_ref() != Some(&workspace.base) {
            return Err(PublishError::NotOurs {
                branch: branch.clone(),
            });
        }
        let name = branch_ref(branch);
        let actual = self.ref_value(&name)?;
        if actual.as_ref() != Some(to) {
            if actual.as_ref() != Some(from) {
                let (branch, expected) = (branch.clone(), from.clone());
                return Err(PublishError::BranchMoved {
                    branch,
                    expected,
                    actual,
                });
            }
            if workspace.is_branch_free(self)
                && let Some(at) = self.checkouts_of(&name)?.pop()
            {
                let branch = branch.clone();
                return Err(PublishError::CheckedOut { branch, at });
            }
            let moved = self.move_branch(workspace, &name, from, to);
            let actual = self.ref_value(&name)?;
            if actual.as_ref() != Some(to) {
                moved?;
                let (branch, expected) = (branch.clone(), from.clone());
                return Err(PublishError::BranchMoved {
                    branch,
                    expected,
                    actual,
                });
            }
        }
        Ok(())
    }

    /// Makes the first branch of these names that is free, at a commit that a goal's ref names.
    ///
    /// Returns its name; none when all are taken.
    pub fn land_aside(
        &self,
        names: impl Iterator<Item = String>,
        commit: &CommitId,
    ) -> Result<Option<String>, GitError> {
        for name in names {
            let full = branch_ref(&name);
            if self.ref_value(&full)?.is_some() || self.branch_in_the_way(&name)?.is_some() {
                continue;
            }
            let create = RefChange {
                name: &full,
                from: None,
                to: commit,
            };
            self.set_refs(&[create])?;
            return Ok(Some(name));
        }
        Ok(None)
    }

    /// Returns the commit that a goal's refs start at, once it has any.
    pub fn recorded_base(&self, goal: &RefPart) -> Result<Option<CommitId>, GitError> {
        self.ref_value(&format!("{}/base", goal_ref(goal)))
    }

    fn move_branch(
        &self,
        workspace: &GitWorkspace,
        name: &str,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), GitError> {
        // What a ref of the goal holds is there; git logs a branch that is checked out twice.
        let mut held = self.refs_at(&goal_ref(&workspace.goal))?.into_iter();
        let is_held = held.any(|(_, commit)| commit == *to);
        if is_held && self.head_branch()?.as_deref() != Some(&workspace.branch) {
            let from = Some(from);
            return self.set_refs(&[RefChange { name, from, to }]);
        }
        self.change_refs(&[format!("update {name} {to} {from}")], &[name])
    }
}

fn display(commit: Option<&CommitId>) -> &str {
    commit.map_or("no commit", CommitId::as_str)
}
