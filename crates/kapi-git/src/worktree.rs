//! What git keeps about one worktree, found by our path and repaired after a kill.
//!
//! Believes nothing that is inside the worktree itself; it only follows its link to another
//! repository, to name that one. Knows nothing of goals or files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::id::RefPart;
use crate::owned_dir::{self, DirError, failed};
use crate::ref_name::branch_ref;
use crate::repository::{Repository, path_of, small_file};
use crate::workspace::{WorkspaceError, goal_ref};

/// Worktrees of repositories that are gone that are kept beside one path.
const ASIDE_MAX: u32 = 1_000;
/// The longest file that says where a git directory or worktree is.
const LINK_BYTES_MAX: u64 = 8192;

impl Repository {
    /// Checks that a worktree may be, or is, at `path`; changes nothing.
    pub(crate) fn check_location(&self, path: &Path) -> Result<(), WorkspaceError> {
        let occupied = || WorkspaceError::PathOccupied {
            path: path.to_path_buf(),
        };
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(occupied());
        }
        if let Some(git_dir) = self.other_claim(path) {
            let path = path.to_path_buf();
            return Err(WorkspaceError::OtherRepository { path, git_dir });
        }
        if self.find_admin_dir(path)?.is_none() && !owned_dir::is_missing_or_empty(path)? {
            return Err(occupied());
        }
        Ok(())
    }

    /// Moves away the worktree that a repository which is gone left at this path, and returns where it
    /// is now.
    ///
    /// Only where this repository has never heard of the goal, so that nothing can be its own work.
    pub(crate) fn put_aside(
        &self,
        goal: &RefPart,
        path: &Path,
    ) -> Result<Option<PathBuf>, WorkspaceError> {
        let is_dead = link_target(path).is_some_and(|target| !target.exists());
        if !is_dead || self.find_admin_dir(path)?.is_some() {
            return Ok(None);
        }
        let base = format!("{}/base", goal_ref(goal));
        if self.ref_value(&base)?.is_some() {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = (1..=ASIDE_MAX)
            .map(|number| path.with_file_name(format!("{name}.gone-{number}")))
            .find(|aside| fs::symlink_metadata(aside).is_err());
        let Some(aside) = aside else {
            return Ok(None);
        };
        fs::rename(path, &aside).map_err(failed("put aside", path))?;
        Ok(Some(aside))
    }

    /// Returns the administrative directory of the worktree at `path`, made if necessary.
    ///
    /// The place has been checked.
    pub(crate) fn ensure_worktree(
        &self,
        branch: &str,
        path: &Path,
    ) -> Result<PathBuf, WorkspaceError> {
        if let Some(admin_dir) = self.find_admin_dir(path)? {
            if is_complete(&admin_dir) {
                return Ok(admin_dir);
            }
            // A killed `git worktree add`: it had written at most the link, for we fill the
            // directory ourselves, later.
            if !is_empty_but_link(path)? {
                return Err(WorkspaceError::PathOccupied {
                    path: path.to_path_buf(),
                });
            }
            owned_dir::wipe(path)?;
            owned_dir::wipe(&admin_dir)?;
        }
        self.remove_orphan(path)?;
        let add = self
            .call("worktree")
            .args(["add", "--no-checkout", "--quiet", "--"])
            .args([path.as_os_str(), branch.as_ref()]);
        if let Err(error) = add.done() {
            return Err(self.reason_against(branch, path, error));
        }
        self.find_admin_dir(path)?.ok_or_else(|| {
            WorkspaceError::Git(GitError::Unexpected {
                subcommand: "worktree".to_owned(),
            })
        })
    }

    pub(crate) fn find_admin_dir(&self, path: &Path) -> Result<Option<PathBuf>, DirError> {
        let worktrees = self.common_dir().join("worktrees");
        if !worktrees.is_dir() {
            return Ok(None);
        }
        let link = path.join(".git");
        // Git takes the directory's own name unless another worktree has it.
        let likely = worktrees.join(path.file_name().unwrap_or_default());
        if records(&likely, &link) {
            return Ok(Some(likely));
        }
        for entry in fs::read_dir(&worktrees).map_err(failed("list", &worktrees))? {
            let admin_dir = entry.map_err(failed("list", &worktrees))?.path();
            if records(&admin_dir, &link) {
                return Ok(Some(admin_dir));
            }
        }
        Ok(None)
    }

    /// Returns the directory where another repository says that the worktree at `path` is its own.
    ///
    /// The link in the worktree is only where to look: the other directory has to say so too.
    fn other_claim(&self, path: &Path) -> Option<PathBuf> {
        let git_dir = fs::canonicalize(link_target(path)?).ok()?;
        let ours = fs::canonicalize(self.common_dir()).ok()?;
        // What is inside the worktree an agent may have written.
        if git_dir.starts_with(path) || git_dir.starts_with(ours) {
            return None;
        }
        let recorded = small_file(&git_dir.join("gitdir"), LINK_BYTES_MAX)?;
        (path_of(recorded.trim_ascii_end()) == path.join(".git")).then_some(git_dir)
    }

    /// Returns what the person should know about a `git worktree add` that failed.
    fn reason_against(&self, branch: &str, path: &Path, error: GitError) -> WorkspaceError {
        let found = self.checkouts_of(&branch_ref(branch)).unwrap_or_default();
        let Some(at) = found.into_iter().next() else {
            return error.into();
        };
        let branch = branch.to_owned();
        if link_target(&at).is_some_and(|target| !target.exists()) {
            let path = path.to_path_buf();
            return WorkspaceError::MovedRepository { branch, at, path };
        }
        WorkspaceError::CheckedOutElsewhere { branch, at }
    }

    /// Returns the worktrees in which a branch, by its full name, is checked out, those that are gone
    /// without a word to git included.
    pub(crate) fn checkouts_of(&self, name: &str) -> Result<Vec<PathBuf>, GitError> {
        let list = self.call("worktree").args(["list", "--porcelain"]);
        let listed = list.bytes()?;
        let wanted = ["branch ", name].concat();
        let mut path = None;
        let mut found = Vec::new();
        for line in listed.split(|&b| b == b'\n') {
            if let Some(at) = line.strip_prefix(b"worktree ") {
                path = Some(path_of(at));
            } else if line == wanted.as_bytes() {
                found.extend(path.take());
            }
        }
        Ok(found)
    }

    /// Removes the trace of a `git worktree add` for this path that was killed at its first step.
    fn remove_orphan(&self, path: &Path) -> Result<(), DirError> {
        let admin_dir = self
            .common_dir()
            .join("worktrees")
            .join(path.file_name().unwrap_or_default());
        let Ok(entries) = fs::read_dir(&admin_dir) else {
            return Ok(());
        };
        let mut names: Vec<OsString> = Vec::new();
        for entry in entries {
            names.push(entry.map_err(failed("list", &admin_dir))?.file_name());
        }
        let is_first_step =
            names.is_empty() || (names == ["locked"] && is_initializing(&admin_dir));
        if is_first_step {
            owned_dir::wipe(&admin_dir)
        } else {
            Ok(())
        }
    }
}

/// Tells whether an administrative directory is of the worktree whose link is at `link`.
fn records(admin_dir: &Path, link: &Path) -> bool {
    let Ok(mut recorded) = fs::read(admin_dir.join("gitdir")) else {
        return false;
    };
    if recorded.last() == Some(&b'\n') {
        recorded.pop();
    }
    path_of(&recorded) == link
}

/// Returns where the `.git` file of a worktree leads.
fn link_target(path: &Path) -> Option<PathBuf> {
    let text = small_file(&path.join(".git"), LINK_BYTES_MAX)?;
    let target = path_of(text.strip_prefix(b"gitdir: ")?.trim_ascii_end());
    Some(path.join(target))
}

fn is_complete(admin_dir: &Path) -> bool {
    let is_there = ["HEAD", "commondir"]
        .iter()
        .all(|name| fs::metadata(admin_dir.join(name)).is_ok_and(|found| found.len() > 0));
    is_there && !is_initializing(admin_dir)
}

fn is_initializing(admin_dir: &Path) -> bool {
    // The words git writes first and removes last.
    fs::read(admin_dir.join("locked")).is_ok_and(|words| words.starts_with(b"initializing"))
}

fn is_empty_but_link(path: &Path) -> Result<bool, DirError> {
    if !path.is_dir() {
        return owned_dir::is_missing_or_empty(path);
    }
    for entry in fs::read_dir(path).map_err(failed("list", path))? {
        if entry.map_err(failed("list", path))?.file_name() != ".git" {
            return Ok(false);
        }
    }
    Ok(true)
}
