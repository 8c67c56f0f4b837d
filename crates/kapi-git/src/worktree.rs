//! What git keeps about one worktree, found by our path and repaired after a kill.
//!
//! Believes nothing that is inside the worktree itself. Knows nothing of goals or files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::owned_dir::{self, DirError, failed};
use crate::repository::{Repository, path_of};
use crate::workspace::WorkspaceError;

impl Repository {
    /// Returns the administrative directory of the worktree at `path`, made if necessary.
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
            owned_dir::remove(path)?;
            owned_dir::remove(&admin_dir)?;
        }
        if !owned_dir::is_missing_or_empty(path)? {
            return Err(WorkspaceError::PathOccupied {
                path: path.to_path_buf(),
            });
        }
        self.remove_orphan(path)?;
        self.call("worktree")
            .args(["add", "--no-checkout", "--quiet", "--"])
            .args([path.as_os_str(), branch.as_ref()])
            .done()?;
        self.find_admin_dir(path)?.ok_or_else(|| {
            WorkspaceError::Git(GitError::Unexpected {
                subcommand: "worktree".to_owned(),
            })
        })
    }

    fn find_admin_dir(&self, path: &Path) -> Result<Option<PathBuf>, DirError> {
        let worktrees = self.common_dir().join("worktrees");
        if !worktrees.is_dir() {
            return Ok(None);
        }
        let link = path.join(".git");
        for entry in fs::read_dir(&worktrees).map_err(failed("list", &worktrees))? {
            let admin_dir = entry.map_err(failed("list", &worktrees))?.path();
            let Ok(mut recorded) = fs::read(admin_dir.join("gitdir")) else {
                continue;
            };
            if recorded.last() == Some(&b'\n') {
                recorded.pop();
            }
            if path_of(&recorded) == link {
                return Ok(Some(admin_dir));
            }
        }
        Ok(None)
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
            owned_dir::remove(&admin_dir)
        } else {
            Ok(())
        }
    }
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
