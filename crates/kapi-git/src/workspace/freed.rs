//! A branch that its worktree gives up once the work is proved, so that a person can switch to it.
//!
//! Git checks a branch out in one place only. The worktree stays at the proved commit, with a detached
//! HEAD, and a file beside it says whose branch that is. Knows nothing of how a branch moves.

use std::path::{Path, PathBuf};

use crate::id::CommitId;
use crate::owned_dir::{self, DirError};
use crate::ref_name::branch_ref;
use crate::repository::{Head, Repository, small_file};
use crate::workspace::{GitWorkspace, WorkspaceError};

/// The longest record of a branch that was given up.
const RECORD_BYTES_MAX: u64 = 8192;

impl GitWorkspace {
    /// Detaches the worktree's HEAD at `at`, where its branch is. Repeating it is fine.
    ///
    /// When a person switched the worktree to something else, it stays there.
    pub fn free_branch(
        &self,
        repository: &Repository,
        at: &CommitId,
    ) -> Result<(), WorkspaceError> {
        if !self.has_its_branch(repository)? {
            return Ok(());
        }
        // The record comes first: a detached HEAD without it is a person's.
        record(&self.admin_dir, at, &self.branch)?;
        let head = format!("{at}\n");
        owned_dir::replace(&self.admin_dir.join("HEAD"), head.as_bytes())?;
        Ok(())
    }

    /// Tells whether somebody else may have checked the branch out.
    pub(crate) fn is_branch_free(&self, repository: &Repository) -> bool {
        repository.freed_branch(&self.admin_dir).as_deref() == Some(&self.branch)
    }

    /// Tells whether the worktree is still on its own branch, or where it gave it up.
    pub(super) fn has_its_branch(&self, repository: &Repository) -> Result<bool, WorkspaceError> {
        if let Some(Head::Branch(name)) = repository.plain_head_in(&self.admin_dir) {
            return Ok(name == branch_ref(&self.branch));
        }
        if self.is_branch_free(repository) {
            return Ok(true);
        }
        let call = repository.git().call(&self.admin_dir, "symbolic-ref");
        let head = call
            .env("GIT_DIR", &self.admin_dir)
            .args(["--quiet", "HEAD"])
            .exit()?;
        let own = branch_ref(&self.branch);
        Ok(head.stdout.strip_suffix(b"\n") == Some(own.as_bytes()))
    }
}

impl Repository {
    /// Returns the branch that a worktree gave up, if it is still where it did so.
    pub(crate) fn freed_branch(&self, admin_dir: &Path) -> Option<String> {
        let Some(Head::Detached(commit)) = self.plain_head_in(admin_dir) else {
            return None;
        };
        let record = small_file(&record_of(admin_dir), RECORD_BYTES_MAX)?;
        let record = String::from_utf8(record).ok()?;
        let (at, branch) = record.strip_suffix('\n')?.split_once(' ')?;
        (at == commit.as_str()).then(|| branch.to_owned())
    }
}

/// Notes whose branch it is that a worktree with a detached HEAD stands for.
pub(super) fn record(admin_dir: &Path, at: &CommitId, branch: &str) -> Result<(), DirError> {
    let text = format!("{at} {branch}\n");
    owned_dir::create(&admin_dir.join("kapi"))?;
    owned_dir::replace(&record_of(admin_dir), text.as_bytes())
}

fn record_of(admin_dir: &Path) -> PathBuf {
    admin_dir.join("kapi").join("freed")
}
