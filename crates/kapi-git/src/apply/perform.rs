//! One step of an apply: a rename that nobody sees half of, and its way back.
//!
//! A file is exchanged with its successor, so its old content is never gone but only elsewhere
//! until the whole apply is done. Knows nothing of why a step is made.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use super::ApplyError;
use super::beneath::{FileIdentity, OpenTree, PathContent};
use crate::owned_dir::DirError;

/// One step; `slot` is the number of a name in the work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApplyStep {
    /// A file or link goes to `old-<slot>`.
    Take {
        path: PathBuf,
        slot: usize,
        was: FileIdentity,
    },
    /// An empty directory goes.
    RemoveDir { path: PathBuf },
    /// A directory is made.
    MakeDir { path: PathBuf },
    /// `new-<slot>` comes to a free place.
    Create {
        path: PathBuf,
        slot: usize,
        staged: FileIdentity,
    },
    /// `new-<slot>` changes places with what is there.
    Swap {
        path: PathBuf,
        slot: usize,
        was: FileIdentity,
        staged: FileIdentity,
    },
}

/// What undoing a step left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UndoRemainder {
    /// Nothing: it is as before.
    Clean,
    /// Somebody changed it since; the content from before is kept under this name, if any was.
    Left { kept: Option<PathBuf> },
}

/// The project and the work directory beside it.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) project: &'a OpenTree,
    pub(super) work: &'a OpenTree,
}

impl ApplyStep {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Take { path, .. }
            | Self::RemoveDir { path }
            | Self::MakeDir { path }
            | Self::Create { path, .. }
            | Self::Swap { path, .. } => path,
        }
    }
}

impl Site<'_> {
    pub(super) fn perform(&self, step: &ApplyStep) -> Result<(), ApplyError> {
        let path = step.path();
        let raced = || ApplyError::Raced {
            path: path.to_path_buf(),
        };
        let project = self.project;
        match step {
            ApplyStep::Take { slot, was, .. } => {
                let old = old_name(*slot);
                self.rename_out(path, &old)
                    .map_err(project.failed("remove", path))?;
                if identity_at(self.work, &old)? != Some(*was) {
                    // Whatever it is now, it belongs where it was.
                    self.rename_in(&old, path)
                        .map_err(project.failed("put back", path))?;
                    return Err(raced());
                }
            }
            ApplyStep::RemoveDir { .. } => match remove_dir(project, path) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(raced()),
                Err(errno) => return Err(project.failed("remove", path)(errno).into()),
            },
            ApplyStep::MakeDir { .. } => match make_dir(project, path) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(raced()),
                Err(errno) => return Err(project.failed("create", path)(errno).into()),
            },
            ApplyStep::Create { slot, .. } => match self.rename_in(&new_name(*slot), path) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(raced()),
                Err(errno) => return Err(project.failed("create", path)(errno).into()),
            },
            ApplyStep::Swap { slot, was, .. } => {
                let new = new_name(*slot);
                match self.exchange(&new, path) {
                    Ok(()) => {}
                    Err(Errno::NOENT) => return Err(raced()),
                    Err(errno) => return Err(project.failed("replace", path)(errno).into()),
                }
                if identity_at(self.work, &new)? != Some(*was) {
                    self.exchange(&new, path)
                        .map_err(project.failed("put back", path))?;
                    return Err(raced());
                }
            }
        }
        Ok(())
    }

    /// Undoes a step if it was made; doing so twice is fine.
    pub(super) fn undo(&self, step: &ApplyStep) -> Result<UndoRemainder, DirError> {
        let path = step.path();
        let project = self.project;
        match step {
            ApplyStep::Take { slot, .. } => {
                let old = old_name(*slot);
                if identity_at(self.work, &old)?.is_none() {
                    return Ok(UndoRemainder::Clean);
                }
                match self.rename_in(&old, path) {
                    Ok(()) => Ok(UndoRemainder::Clean),
                    Err(Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                        self.keep(&old, path)
                    }
                    Err(errno) => Err(project.failed("put back", path)(errno)),
                }
            }
            ApplyStep::RemoveDir { .. } => match make_dir(project, path) {
                Ok(()) | Err(Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    Ok(UndoRemainder::Clean)
                }
                Err(errno) => Err(project.failed("put back", path)(errno)),
            },
            ApplyStep::MakeDir { .. } => match remove_dir(project, path) {
                Ok(())
                | Err(
                    Errno::EXIST | Errno::NOTEMPTY | Errno::NOENT | Errno::NOTDIR | Errno::LOOP,
                ) => Ok(UndoRemainder::Clean),
                Err(errno) => Err(project.failed("remove", path)(errno)),
            },
            ApplyStep::Create { slot, staged, .. } => {
                let new = new_name(*slot);
                if identity_at(self.work, &new)?.is_some() {
                    return Ok(UndoRemainder::Clean);
                }
                match identity_at(project, path)? {
                    Some(found) if found == *staged => {
                        self.rename_out(path, &new)
                            .map_err(project.failed("remove", path))?;
                        Ok(UndoRemainder::Clean)
                    }
                    Some(_) => Ok(UndoRemainder::Left { kept: None }),
                    None => Ok(UndoRemainder::Clean),
                }
            }
            ApplyStep::Swap {
                slot, was, staged, ..
            } => self.undo_swap(path, &new_name(*slot), *was, *staged),
        }
    }

    fn undo_swap(
        &self,
        path: &Path,
        new: &Path,
        was: FileIdentity,
        staged: FileIdentity,
    ) -> Result<UndoRemainder, DirError> {
        if identity_at(self.project, path)? == Some(staged) {
            self.exchange(new, path)
                .map_err(self.project.failed("put back", path))?;
            return Ok(UndoRemainder::Clean);
        }
        match identity_at(self.work, new)? {
            Some(found) if (found.device, found.inode) == (was.device, was.inode) => {
                self.keep(new, path)
            }
            _ => Ok(UndoRemainder::Clean),
        }
    }

    /// Gives what was at `path` a name in the work directory that nothing removes.
    fn keep(&self, from: &Path, path: &Path) -> Result<UndoRemainder, DirError> {
        let dir = self
            .work
            .dir(Path::new(""))
            .map_err(self.work.failed("open", from))?;
        let name = path.file_name().unwrap_or_default();
        for n in 1..=u32::MAX {
            let mut kept = std::ffi::OsString::from(format!("kept-{n}-"));
            kept.push(name);
            match rustix::fs::renameat_with(&dir, from, &dir, &kept, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    let kept = Some(self.work.full(Path::new(&kept)));
                    return Ok(UndoRemainder::Left { kept });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.work.failed("keep", from)(errno)),
            }
        }
        Ok(UndoRemainder::Left {
            kept: Some(self.work.full(from)),
        })
    }

    fn rename_out(&self, path: &Path, name: &Path) -> Result<(), Errno> {
        let (dir, from) = self.project.parent(path)?;
        let work = self.work.dir(Path::new(""))?;
        rustix::fs::renameat_with(&dir, from, &work, name, RenameFlags::NOREPLACE)
    }

    fn rename_in(&self, name: &Path, path: &Path) -> Result<(), Errno> {
        let (dir, to) = self.project.parent(path)?;
        let work = self.work.dir(Path::new(""))?;
        rustix::fs::renameat_with(&work, name, &dir, to, RenameFlags::NOREPLACE)
    }

    fn exchange(&self, name: &Path, path: &Path) -> Result<(), Errno> {
        let (dir, to) = self.project.parent(path)?;
        let work = self.work.dir(Path::new(""))?;
        rustix::fs::renameat_with(&work, name, &dir, to, RenameFlags::EXCHANGE)
    }
}

pub(super) fn new_name(slot: usize) -> PathBuf {
    PathBuf::from(format!("new-{slot}"))
}

pub(super) fn old_name(slot: usize) -> PathBuf {
    PathBuf::from(format!("old-{slot}"))
}

fn identity_at(tree: &OpenTree, path: &Path) -> Result<Option<FileIdentity>, DirError> {
    Ok(match tree.look(path)? {
        PathContent::File { identity, .. } | PathContent::Link { identity, .. } => Some(identity),
        PathContent::Nothing
        | PathContent::Blocked
        | PathContent::Directory
        | PathContent::Special => None,
    })
}

fn make_dir(tree: &OpenTree, path: &Path) -> Result<(), Errno> {
    let (dir, name) = tree.parent(path)?;
    rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777))
}

fn remove_dir(tree: &OpenTree, path: &Path) -> Result<(), Errno> {
    let (dir, name) = tree.parent(path)?;
    rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)
}
