//! The directory of a workspace: that it is ours, its link, its index.
//!
//! Believes nothing that is in it. Knows nothing of how a workspace comes to be.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::command::GitError;
use crate::owned_dir::{self, DirError, failed};
use crate::refused_path::{RefusalReason, RefusedPath};
use crate::repository::index_file::IndexFile;
use crate::repository::{Repository, path_of};
use crate::scratch::{Objects, Scratch};
use crate::workspace::{GitWorkspace, WorkspaceError};

/// The mode of a submodule's entry in an index.
const SUBMODULE: u32 = 0o160_000;

impl GitWorkspace {
    /// Returns where the index of the last candidate is.
    pub(crate) fn index(&self) -> PathBuf {
        self.admin_dir.join("kapi/index")
    }

    /// Returns the git directory that stages this workspace; call it after `sweep::sweep`.
    pub(crate) fn scratch<'a>(&self, repository: &'a Repository) -> Result<Scratch<'a>, DirError> {
        let dir = self.admin_dir.join("kapi");
        Scratch::prepare(repository, &dir, &self.path, Objects::Shared)
    }

    /// Makes the `.git` file of the directory say again where its repository is.
    ///
    /// Comes first in everything that writes in the directory or reads it for a commit, because it
    /// makes sure that it is the directory. An agent may have pointed the file at a repository of its own, whose configuration would run
    /// programs as soon as a person says `git status` there.
    pub(crate) fn restore_link(&self) -> Result<(), WorkspaceError> {
        self.check_in_place()?;
        let link = self.path.join(".git");
        let mut right = b"gitdir: ".to_vec();
        right.extend_from_slice(self.admin_dir.as_os_str().as_bytes());
        right.push(b'\n');
        let is_file = fs::symlink_metadata(&link).is_ok_and(|found| found.is_file());
        if is_file && fs::read(&link).is_ok_and(|found| found == right) {
            return Ok(());
        }
        owned_dir::wipe(&link)?;
        // Not through a temporary file, which a crash would leave among the agent's work.
        owned_dir::write(&link, &right)?;
        Ok(())
    }

    /// Checks that the directory is still there and is not a link to somewhere else.
    pub(crate) fn check_in_place(&self) -> Result<(), WorkspaceError> {
        let path = self.path.clone();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::Gone { path });
            }
            Err(error) => return Err(failed("inspect", &path)(error).into()),
            Ok(found) if !found.is_dir() => return Err(WorkspaceError::PathOccupied { path }),
            Ok(_) => {}
        }
        // The path had no link in it when the workspace was made.
        let resolved = fs::canonicalize(&path).map_err(failed("resolve", &path))?;
        if resolved == path {
            Ok(())
        } else {
            Err(WorkspaceError::PathOccupied { path })
        }
    }

    /// Removes git data from the directories of submodules, which Kapi leaves empty.
    ///
    /// Git runs `git status` in them on its own, with the configuration it finds there.
    pub(crate) fn disarm_submodules(
        &self,
        scratch: &Scratch<'_>,
    ) -> Result<Vec<RefusedPath>, WorkspaceError> {
        let mut refused = Vec::new();
        for path in submodules(scratch)? {
            let dir = self.path.join(&path);
            if fs::symlink_metadata(&dir).is_err() {
                continue;
            }
            if !has_link_in(&self.path, &path) && dir.is_dir() {
                owned_dir::wipe(&dir.join(".git"))?;
            }
            if !owned_dir::is_missing_or_empty(&dir)? {
                refused.push(RefusedPath {
                    path,
                    why: RefusalReason::InSubmodule,
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
        if !self.has_its_branch(repository)? {
            return Ok(());
        }
        let from = scratch.index();
        let bytes = fs::read(&from).map_err(failed("read", &from))?;
        let to = self.admin_dir.join("index");
        owned_dir::replace(&to, &bytes)?;
        // Git takes the file's time as "checked at"; a later one would hide later changes.
        let time = fs::metadata(&from).and_then(|found| found.modified());
        let time = time.map_err(failed("inspect", &from))?;
        let file = fs::File::open(&to).map_err(failed("open", &to))?;
        file.set_modified(time)
            .map_err(failed("set the time of", &to))?;
        Ok(())
    }

    /// Returns the file that says that the directory was filled once.
    pub(super) fn mark(&self) -> PathBuf {
        self.admin_dir.join("kapi").join("filled")
    }
}

/// Returns the paths of submodules in the index; git is asked where the index cannot be read here.
pub(crate) fn submodules(scratch: &Scratch<'_>) -> Result<Vec<PathBuf>, GitError> {
    let format = scratch.repository().object_format();
    if let Some(index) = IndexFile::read(&scratch.index(), format) {
        let found = index.entries().filter(|entry| entry.mode() == SUBMODULE);
        return Ok(found.map(|entry| path_of(entry.path())).collect());
    }
    let listed = scratch.call("ls-files").args(["-s", "-z"]).bytes()?;
    let found = listed
        .split(|&b| b == 0)
        .filter(|entry| entry.starts_with(b"160000 "));
    let names = found.map(|entry| entry.splitn(2, |&b| b == b'\t').nth(1));
    Ok(names
        .map(|name| path_of(name.unwrap_or_default()))
        .collect())
}

/// Tells whether any component of `path` is a symbolic link, seen from `root`.
fn has_link_in(root: &Path, path: &Path) -> bool {
    let parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    parts
        .map(|part| root.join(part))
        .any(|part| part.is_symlink())
}
