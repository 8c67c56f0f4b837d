//! A worktree on a branch of its own, made by Kapi and for one goal.
//!
//! A ref of the goal is made together with the branch, so that "this branch is ours" can be proved
//! after a crash. Every step may be repeated at any time. What an agent leaves in the
//! directory is never believed: git finds its data by our path, not by the `.git` file inside.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::candidate::{CandidateError, Refused, Why};
use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::owned_dir::{self, DirError, failed};
use crate::reference::branch_ref;
use crate::repository::{Repository, path_of};
use crate::scratch::{Objects, Scratch};
use crate::sweep;

/// The workspace to make.
#[derive(Debug, Clone)]
pub struct WorkspacePlan {
    /// The goal, as it stands in `refs/kapi/<goal>/`.
    pub goal: RefPart,
    /// The branch to make, without `refs/heads/`.
    pub branch: String,
    /// The commit the branch starts at.
    pub base: CommitId,
    /// Where the worktree goes: an absolute path that Kapi owns.
    pub path: PathBuf,
}

/// A workspace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
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
    pub origin: Origin,
}

/// Where a workspace's files came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They are the base, written by this call.
    Created,
    /// They were already there and were not touched.
    Adopted,
    /// They had been deleted and are the base again: work since then is gone from here.
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
    #[error("create branch {branch}: it exists already and is not Kapi's")]
    BranchExists {
        /// The name.
        branch: String,
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
    #[error("create a worktree at {}: something else is there", path.display())]
    PathOccupied {
        /// The path.
        path: PathBuf,
    },
    /// Removing it would lose work.
    #[error("remove the workspace {}: it holds work that is nowhere else", path.display())]
    HasWork {
        /// The path.
        path: PathBuf,
    },
    /// Whether it holds work could not be found out.
    #[error("look for work in {}", path.display())]
    Snapshot {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<CandidateError>,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Makes the branch and the worktree, or finds them as an earlier call left them.
    pub fn create_workspace(&self, plan: &WorkspacePlan) -> Result<Workspace, WorkspaceError> {
        if !self.is_valid_branch(&plan.branch)? {
            return Err(WorkspaceError::InvalidBranch {
                branch: plan.branch.clone(),
            });
        }
        self.claim_branch(plan)?;
        let parent = plan.path.parent().unwrap_or(Path::new("/"));
        owned_dir::create(parent)?;
        // Git records the resolved path; ours must be the same to find it again.
        let parent = fs::canonicalize(parent).map_err(failed("resolve", parent))?;
        let path = parent.join(plan.path.file_name().unwrap_or_default());
        let admin_dir = self.ensure_worktree(&plan.branch, &path)?;
        let was_missing = !path.exists();
        owned_dir::create(&path)?;
        let mut workspace = Workspace {
            goal: plan.goal.clone(),
            branch: plan.branch.clone(),
            base: plan.base.clone(),
            path,
            admin_dir,
            origin: Origin::Created,
        };
        let is_filled = workspace.mark().exists();
        workspace.origin = match (is_filled, was_missing) {
            (false, _) => Origin::Created,
            (true, false) => Origin::Adopted,
            (true, true) => Origin::Rebuilt,
        };
        workspace.restore_link()?;
        if workspace.origin != Origin::Adopted {
            let scratch = workspace.scratch(self)?;
            owned_dir::remove(&scratch.index())?;
            scratch.fill(workspace.base.as_str())?;
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
        workspace: &Workspace,
        commit: &CommitId,
    ) -> Result<(), WorkspaceError> {
        workspace.restore_link()?;
        for Refused { path, why } in sweep::sweep(&workspace.path) {
            match why {
                Why::SpecialFile => owned_dir::remove(&workspace.path.join(path))?,
                // Git fails on what it cannot open; a removal from further up does not.
                Why::PathTooLong | Why::Unreadable => {
                    owned_dir::remove(&workspace.path.join(nameable(&path)))?;
                }
                _ => {}
            }
        }
        let scratch = workspace.scratch(self)?;
        scratch.fill(commit.as_str())?;
        // Twice forced, because once spares directories that hold a repository.
        scratch
            .call("clean")
            .args(["-f", "-f", "-d", "-q"])
            .done()?;
        workspace.disarm_submodules(&scratch)?;
        workspace.share_index(self, &scratch)?;
        Ok(())
    }

    /// Removes a workspace that holds nothing but its base, with its branch and refs.
    ///
    /// For a goal that was cancelled before it began. Anything that exists nowhere else makes it
    /// an error, and nothing is removed.
    pub fn remove_workspace(&self, workspace: &Workspace) -> Result<(), WorkspaceError> {
        let branch_name = branch_ref(&workspace.branch);
        let ours = self.refs_at(&goal_ref(&workspace.goal))?;
        let branch = self.ref_value(&branch_name)?;
        let is_at_base = branch.as_ref().is_none_or(|at| *at == workspace.base);
        let base_tree = self.tree_of(&workspace.base)?;
        let mut has_work = !is_at_base;
        for (_, commit) in &ours {
            has_work |= self.tree_of(commit)? != base_tree;
        }
        if !has_work && workspace.path.exists() && workspace.mark().exists() {
            let snapshot = self
                .snapshot(workspace)
                .map_err(|error| WorkspaceError::Snapshot {
                    path: workspace.path.clone(),
                    source: Box::new(error),
                })?;
            // What no commit can hold may be work too.
            has_work = snapshot.tree != base_tree || !snapshot.refused.is_empty();
        }
        if has_work {
            return Err(WorkspaceError::HasWork {
                path: workspace.path.clone(),
            });
        }
        owned_dir::remove(&workspace.path)?;
        owned_dir::remove(&workspace.admin_dir)?;
        // Empty is how git itself leaves it with the last worktree gone: not there at all.
        let worktrees = self.common_dir().join("worktrees");
        if worktrees.is_dir() && owned_dir::is_missing_or_empty(&worktrees)? {
            fs::remove_dir(&worktrees).map_err(failed("remove", &worktrees))?;
        }
        let mut changes = Vec::new();
        if branch.is_some() {
            changes.push(format!("delete {branch_name} {}", workspace.base));
        }
        changes.extend(
            ours.iter()
                .map(|(name, commit)| format!("delete {name} {commit}")),
        );
        if changes.is_empty() {
            return Ok(());
        }
        let mut owned: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
        owned.push(&branch_name);
        self.change_refs(&changes, &owned)?;
        Ok(())
    }

    fn claim_branch(&self, plan: &WorkspacePlan) -> Result<(), WorkspaceError> {
        let base_name = format!("{}/base", goal_ref(&plan.goal));
        let branch_name = branch_ref(&plan.branch);
        let recorded = self.ref_value(&base_name)?;
        let branch = self.ref_value(&branch_name)?;
        let base = &plan.base;
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

impl Workspace {
    /// Returns the git directory that stages this workspace; call it after [`sweep::sweep`].
    pub(crate) fn scratch<'a>(&self, repository: &'a Repository) -> Result<Scratch<'a>, DirError> {
        let dir = self.admin_dir.join("kapi");
        Scratch::prepare(repository, &dir, &self.path, Objects::Shared)
    }

    /// Makes the `.git` file of the directory say again where its repository is.
    ///
    /// An agent may have pointed it at a repository of its own, whose configuration would run
    /// programs as soon as a person says `git status` there.
    pub(crate) fn restore_link(&self) -> Result<(), DirError> {
        let link = self.path.join(".git");
        let mut right = b"gitdir: ".to_vec();
        right.extend_from_slice(self.admin_dir.as_os_str().as_bytes());
        right.push(b'\n');
        let is_file = fs::symlink_metadata(&link).is_ok_and(|found| found.is_file());
        if is_file && fs::read(&link).is_ok_and(|found| found == right) {
            return Ok(());
        }
        owned_dir::remove(&link)?;
        // Not through a temporary file, which a crash would leave among the agent's work.
        owned_dir::write(&link, &right)
    }

    /// Removes git data from the directories of submodules, which Kapi leaves empty.
    ///
    /// Git runs `git status` in them on its own, with the configuration it finds there.
    pub(crate) fn disarm_submodules(
        &self,
        scratch: &Scratch<'_>,
    ) -> Result<Vec<Refused>, WorkspaceError> {
        let mut refused = Vec::new();
        let listed = scratch.call("ls-files").args(["-s", "-z"]).bytes()?;
        let entries = listed
            .split(|&b| b == 0)
            .filter(|entry| entry.starts_with(b"160000 "));
        for entry in entries {
            let name = entry.splitn(2, |&b| b == b'\t').nth(1).unwrap_or_default();
            let path = path_of(name);
            let dir = self.path.join(&path);
            if fs::symlink_metadata(&dir).is_err() {
                continue;
            }
            if !has_link_in(&self.path, &path) && dir.is_dir() {
                owned_dir::remove(&dir.join(".git"))?;
            }
            if !owned_dir::is_missing_or_empty(&dir)? {
                refused.push(Refused {
                    path,
                    why: Why::InSubmodule,
                });
            }
        }
        Ok(refused)
    }

    /// Gives the worktree's own index the state of ours, so that `git status` there is right.
    ///
    /// When a person switched the worktree to another branch, the index is theirs and stays.
    pub(crate) fn share_index(
        &self,
        repository: &Repository,
        scratch: &Scratch<'_>,
    ) -> Result<(), WorkspaceError> {
        let call = repository.git().call(&self.admin_dir, "symbolic-ref");
        let head = call
            .env("GIT_DIR", &self.admin_dir)
            .args(["--quiet", "HEAD"])
            .exit()?;
        if head.stdout.strip_suffix(b"\n") != Some(branch_ref(&self.branch).as_bytes()) {
            return Ok(());
        }
        let from = scratch.index();
        let bytes = fs::read(&from).map_err(failed("read", &from))?;
        let to = self.admin_dir.join("index");
        owned_dir::replace(&to, &bytes)?;
        // Git takes the file's time as "checked at"; a later one would hide later changes.
        let time = fs::metadata(&from).and_then(|found| found.modified());
        let time = time.map_err(failed("look at", &from))?;
        let file = fs::File::open(&to).map_err(failed("open", &to))?;
        file.set_modified(time)
            .map_err(failed("set the time of", &to))?;
        Ok(())
    }

    /// Returns the file that says that the directory was filled once.
    fn mark(&self) -> PathBuf {
        self.admin_dir.join("kapi").join("filled")
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

/// Tells whether any component of `path` is a symbolic link, seen from `root`.
fn has_link_in(root: &Path, path: &Path) -> bool {
    let parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    parts
        .map(|part| root.join(part))
        .any(|part| part.is_symlink())
}
