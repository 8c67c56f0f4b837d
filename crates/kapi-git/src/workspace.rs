//! A worktree on a branch of its own, made by Kapi and for one goal.
//!
//! A ref of the goal is made together with the branch, so that "this branch is ours" can be proved
//! after a crash. Every step may be repeated at any time. What an agent leaves in the
//! directory is never believed: git finds its data by our path, not by the `.git` file inside.

pub(crate) mod files;
mod freed;
mod hint;

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::owned_dir::{self, DirError, failed};
use crate::private_view::PrivateFiles;
use crate::ref_name::{branch_ref, is_held};
use crate::refused_path::{RefusalReason, RefusedPath};
use crate::repository::Repository;
use crate::scratch::Scratch;
use crate::sweep;

/// The workspace to make.
#[derive(Debug, Clone)]
pub struct WorkspacePlan {
    /// The goal, as it stands in `refs/kapi/<goal>/`.
    pub goal: RefPart,
    /// The branch to make, without `refs/heads/`; the whole name of one that is held back.
    pub branch: String,
    /// The commit the branch starts at.
    pub base: CommitId,
    /// The commit whose files are written whenever the files have to be made: the base at first,
    /// later what the work has come to. Branch and refs stay at the base.
    pub content: CommitId,
    /// Where the worktree goes: an absolute path that Kapi owns.
    pub path: PathBuf,
}

/// A workspace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitWorkspace {
    /// The goal it is for.
    pub goal: RefPart,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit the branch started at.
    pub base: CommitId,
    /// The directory with the files.
    pub path: PathBuf,
    /// Where git keeps what it knows about this worktree.
    pub(crate) admin_dir: PathBuf,
    /// Whether this call made its files.
    pub origin: WorkspaceOrigin,
}

/// Where a workspace's files came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceOrigin {
    /// They are the plan's content, written by this call: there was no worktree.
    ///
    /// Once a goal is under way this means that somebody removed it, as with `git worktree
    /// remove`, and that work since the content is gone from here.
    Created,
    /// They were already there and were not touched.
    Adopted,
    /// They had been deleted and are the plan's content again: work since then is gone from here.
    Rebuilt,
}

/// A workspace that cannot be made or changed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Not a branch name.
    #[error("use {branch:?} as a branch name")]
    InvalidBranch {
        /// The name.
        branch: String,
    },
    /// A branch of this name exists and this goal did not make it.
    #[error("create branch {branch}: it already exists and does not belong to Kapi")]
    BranchExists {
        /// The name.
        branch: String,
    },
    /// Another branch's name keeps git from making this one.
    #[error("create branch {branch}: branch {by} prevents it")]
    BranchBlocked {
        /// The name.
        branch: String,
        /// The other branch.
        by: String,
    },
    /// The goal's refs were made for another base.
    #[error("use the refs of goal {goal}: they start at {actual}, not at {expected}")]
    OtherBase {
        /// The goal.
        goal: RefPart,
        /// The base that was asked for.
        expected: CommitId,
        /// The base on record.
        actual: CommitId,
    },
    /// Something else is where the worktree should go.
    #[error("create a worktree at {}: the path is in use", path.display())]
    PathOccupied {
        /// The path.
        path: PathBuf,
    },
    /// The worktree of another repository is where this one's should go.
    #[error("use the worktree {}: it belongs to {}", path.display(), git_dir.display())]
    OtherRepository {
        /// The path.
        path: PathBuf,
        /// What the other repository keeps about it.
        git_dir: PathBuf,
    },
    /// The goal's branch is checked out in another place.
    #[error("check out branch {branch}: it is checked out at {}", at.display())]
    CheckedOutElsewhere {
        /// The branch.
        branch: String,
        /// The other worktree.
        at: PathBuf,
    },
    /// The goal's worktree is in another place, from before the repository was moved.
    #[error(
        "check out branch {branch}: its worktree {} was created before the repository moved",
        at.display()
    )]
    MovedRepository {
        /// The branch.
        branch: String,
        /// The worktree as it was.
        at: PathBuf,
        /// Where it should be.
        path: PathBuf,
    },
    /// The directory of a workspace that existed is no more.
    #[error("find the workspace {}: it no longer exists", path.display())]
    Gone {
        /// The path.
        path: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl GitWorkspace {
    /// Returns what a private view shows of it.
    #[must_use]
    pub fn shown(&self) -> PrivateFiles<'_> {
        PrivateFiles {
            branch: &self.branch,
            base: &self.base,
            work_tree: &self.path,
            index: Some(self.index()),
            exact_index: None,
            monitor: None,
        }
    }
}

impl Repository {
    /// Makes the branch and the worktree, or finds them as an earlier call left them.
    pub fn create_workspace(&self, plan: &WorkspacePlan) -> Result<GitWorkspace, WorkspaceError> {
        if !self.is_valid_branch(&plan.branch)? {
            return Err(WorkspaceError::InvalidBranch {
                branch: plan.branch.clone(),
            });
        }
        let parent = plan.path.parent().unwrap_or(Path::new("/"));
        owned_dir::create(parent)?;
        // Git records the resolved path; ours must be the same to find it again.
        let parent = fs::canonicalize(parent).map_err(failed("resolve", parent))?;
        let path = parent.join(plan.path.file_name().unwrap_or_default());
        self.put_aside(&plan.goal, &path)?;
        self.check_location(&path)?;
        self.claim_branch(plan)?;
        let admin_dir = self.ensure_worktree(&plan.branch, &path)?;
        if is_held(&plan.branch) {
            // Git has checked its commit out and no branch.
            freed::record(&admin_dir, &plan.base, &plan.branch)?;
        }
        // Empty is as good as deleted: what an agent leaves has at least the link.
        owned_dir::create(&path)?;
        owned_dir::open_up(&path)?;
        let was_missing = owned_dir::is_missing_or_empty(&path)?;
        let mut workspace = GitWorkspace {
            goal: plan.goal.clone(),
            branch: plan.branch.clone(),
            base: plan.base.clone(),
            path,
            admin_dir,
            origin: WorkspaceOrigin::Created,
        };
        let is_filled = workspace.mark().exists();
        workspace.origin = match (is_filled, was_missing) {
            (false, _) => WorkspaceOrigin::Created,
            (true, false) => WorkspaceOrigin::Adopted,
            (true, true) => WorkspaceOrigin::Rebuilt,
        };
        workspace.restore_link()?;
        if workspace.origin != WorkspaceOrigin::Adopted {
            let scratch = workspace.scratch(self)?;
            owned_dir::wipe(&scratch.index())?;
            scratch.fill(plan.content.as_str())?;
            workspace.share_index(self, &scratch)?;
            owned_dir::replace(&workspace.mark(), workspace.base.as_str().as_bytes())?;
        }
        Ok(workspace)
    }

    /// Makes the files exactly what `commit` holds.
    ///
    /// Files that git ignores stay, such as build caches; every other file goes, nested
    /// repositories, FIFOs and sockets too.
    pub fn reset_workspace(
        &self,
        workspace: &GitWorkspace,
        commit: &CommitId,
    ) -> Result<(), WorkspaceError> {
        let scratch = self.fill_workspace(workspace, commit)?;
        // Twice forced, because once spares directories that hold a repository.
        scratch
            .call("clean")
            .args(["-f", "-f", "-d", "-q"])
            .done()?;
        workspace.disarm_submodules(&scratch)?;
        workspace.share_index(self, &scratch)?;
        Ok(())
    }

    /// Makes the files and the index of ours what `commit` holds, and leaves other files.
    pub(crate) fn fill_workspace(
        &self,
        workspace: &GitWorkspace,
        commit: &CommitId,
    ) -> Result<Scratch<'_>, WorkspaceError> {
        workspace.restore_link()?;
        for RefusedPath { path, why } in sweep::sweep(&workspace.path) {
            match why {
                RefusalReason::SpecialFile => owned_dir::wipe(&workspace.path.join(path))?,
                // Git fails on what it cannot open; a removal from further up does not.
                RefusalReason::PathTooLong | RefusalReason::Unreadable => {
                    owned_dir::wipe(&workspace.path.join(nameable(&path)))?;
                }
                _ => {}
            }
        }
        let scratch = workspace.scratch(self)?;
        scratch.fill(commit.as_str())?;
        Ok(scratch)
    }

    pub(crate) fn claim_branch(&self, plan: &WorkspacePlan) -> Result<(), WorkspaceError> {
        let base_name = format!("{}/base", goal_ref(&plan.goal));
        let branch_name = branch_ref(&plan.branch);
        let recorded = self.ref_value(&base_name)?;
        let branch = self.ref_value(&branch_name)?;
        let base = &plan.base;
        if branch.is_none()
            && let Some(by) = self.branch_in_the_way(&plan.branch)?
        {
            let branch = plan.branch.clone();
            return Err(WorkspaceError::BranchBlocked { branch, by });
        }
        let (changes, owned) = match (recorded, branch) {
            (Some(actual), _) if actual != *base => {
                let (goal, expected) = (plan.goal.clone(), base.clone());
                return Err(WorkspaceError::OtherBase {
                    goal,
                    expected,
                    actual,
                });
            }
            (Some(_), Some(_)) => return Ok(()),
            // Git makes the refs of one transaction in the order given, so a crash between them
            // leaves the goal's ref and no branch, never the other way round.
            (Some(_), None) => (
                vec![format!("create {branch_name} {base}")],
                vec![branch_name.as_str()],
            ),
            (None, Some(_)) => {
                return Err(WorkspaceError::BranchExists {
                    branch: plan.branch.clone(),
                });
            }
            (None, None) => (
                vec![
                    format!("create {base_name} {base}"),
                    format!("create {branch_name} {base}"),
                ],
                vec![base_name.as_str(), branch_name.as_str()],
            ),
        };
        self.change_refs(&changes, &owned)?;
        Ok(())
    }
}

/// Returns the ref below which a goal keeps its own.
pub(crate) fn goal_ref(goal: &RefPart) -> String {
    format!("refs/kapi/{goal}")
}

/// Returns the lowest part of `path` that is short enough to be opened.
fn nameable(path: &Path) -> &Path {
    let mut parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    parts
        .find(|part| part.as_os_str().len() < 2_000)
        .unwrap_or(path)
}
