//! Removing a goal's worktree and branch, and only those.
//!
//! Ours is what the goal's own ref and git's records outside the worktree say; nothing inside the
//! worktree is asked. Does not ask whether the removal is wise.

use std::fs;
use std::path::Path;

use kapi_core::quote::shell_word;

use super::{RescueError, RescueName, RescuedCommit};
use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::owned_dir;
use crate::ref_name::{branch_ref, shown_name};
use crate::repository::{Head, Repository};
use crate::workspace::{GitWorkspace, WorkspaceOrigin, goal_ref};

impl Repository {
    /// Finds the workspace that the goal has at `path`; makes and changes nothing.
    ///
    /// `None` when git knows no worktree there, or the goal no base.
    pub fn find_workspace(
        &self,
        goal: &RefPart,
        path: &Path,
    ) -> Result<Option<GitWorkspace>, RescueError> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let Ok(parent) = fs::canonicalize(parent) else {
            return Ok(None);
        };
        let path = parent.join(path.file_name().unwrap_or_default());
        let Some(admin_dir) = self.find_admin_dir(&path)? else {
            return Ok(None);
        };
        let Some(base) = self.ref_value(&format!("{}/base", goal_ref(goal)))? else {
            return Ok(None);
        };
        let branch = match self.plain_head_in(&admin_dir) {
            Some(Head::Branch(name)) => name.strip_prefix("refs/heads/").map(str::to_owned),
            _ => self.freed_branch(&admin_dir),
        };
        let Some(branch) = branch else {
            return Ok(None);
        };
        Ok(Some(GitWorkspace {
            goal: goal.clone(),
            branch,
            base,
            path,
            admin_dir,
            origin: WorkspaceOrigin::Adopted,
        }))
    }

    /// Removes the goal's worktree at `path`, files and git's record of it.
    ///
    /// Whatever is in the directory goes, so rescue it first. Nothing there is fine.
    pub fn remove_worktree(&self, goal: &RefPart, path: &Path) -> Result<(), RescueError> {
        let Some(workspace) = self.find_workspace(goal, path)? else {
            if owned_dir::is_missing_or_empty(path)? {
                return Ok(());
            }
            return Err(RescueError::NotOurs {
                what: path.display().to_string(),
                goal: goal.clone(),
            });
        };
        if workspace.admin_dir.join("locked").exists() {
            return Err(RescueError::Locked {
                path: workspace.path,
            });
        }
        // The record goes last: without it nobody would know afterwards whose directory this is.
        owned_dir::wipe(&workspace.path)?;
        owned_dir::wipe(&workspace.admin_dir)?;
        Ok(())
    }

    /// Removes a branch that the goal made, if it is still at `expected`.
    ///
    /// Unless another branch or a remote's holds the commit, it is kept under a rescue ref first,
    /// which is returned. A branch that is gone is fine. That the name is the goal's is on its
    /// record, which the caller has read; that nobody else moved the branch is checked here.
    pub fn remove_branch(
        &self,
        goal: &RefPart,
        branch: &str,
        expected: &CommitId,
        rescue: RescueName<'_>,
    ) -> Result<Option<RescuedCommit>, RescueError> {
        let name = branch_ref(branch);
        let moved = || RescueError::Moved {
            name: name.clone(),
            expected: expected.clone(),
        };
        match self.ref_value(&name)? {
            None => return Ok(None),
            Some(there) if there != *expected => return Err(moved()),
            Some(_) => {}
        }
        if !self.has_made(goal, expected)? {
            return Err(RescueError::NotOurs {
                what: branch.to_owned(),
                goal: goal.clone(),
            });
        }
        if let Some(at) = self.checkouts_of(&name)?.into_iter().next() {
            let branch = branch.to_owned();
            return Err(RescueError::CheckedOut { branch, at });
        }
        let rescued = if self.state(expected, branch)?.is_held() {
            None
        } else {
            let kept = self.keep_commit(rescue, expected)?;
            let line = ["git", "branch", shown_name(branch), &kept.ref_name].map(shell_word);
            Some(RescuedCommit {
                restore_line: line.join(" "),
                ..kept
            })
        };
        let removed = self.change_refs(&[format!("delete {name} {expected}")], &[&name]);
        match (removed, self.ref_value(&name)?) {
            (_, None) => Ok(rescued),
            (_, Some(there)) if there != *expected => Err(moved()),
            (Err(error), Some(_)) => Err(error.into()),
            (Ok(()), Some(_)) => Err(moved()),
        }
    }

    /// Tells whether the goal's refs hold `commit`: its base, or a candidate of its own.
    fn has_made(&self, goal: &RefPart, commit: &CommitId) -> Result<bool, GitError> {
        let refs = self.refs_at(&goal_ref(goal))?;
        Ok(refs.iter().any(|(_, held)| held == commit))
    }
}
