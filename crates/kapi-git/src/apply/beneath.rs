//! A directory tree that is only ever entered from its top, and never through a link.
//!
//! Every path is opened relative to the tree's own descriptor; the system refuses a path that
//! leaves it, so a directory swapped for a link in between leads nowhere. Decides nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::Moment;
use crate::owned_dir::{DirError, failed};

/// An opened directory, and everything below it.
#[derive(Debug)]
pub(super) struct OpenTree {
    root: OwnedFd,
    path: PathBuf,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathContent {
    Nothing,
    /// A part of the path above is a link or no directory.
    Blocked,
    Directory,
    File {
        mode: u32,
        identity: FileIdentity,
        changed: Moment,
    },
    Link {
        target: OsString,
        identity: FileIdentity,
        changed: Moment,
    },
    Special,
}

/// What tells one file from another, and whether somebody wrote to it; survives a rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) len: u64,
    pub(super) written: Moment,
}

/// Returns the content of a plain file below a directory in which something untrusted ran; nothing where
/// there is none, or more than so many bytes.
///
/// # Errors
/// When the directory or the file cannot be read.
pub fn plain_file(root: &Path, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, DirError> {
    let Some((file, _)) = OpenTree::open(root)?.file(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let read = file
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(failed("read", &root.join(path)))?;
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|n| n <= bytes_max);
    Ok(is_whole.then_some(bytes))
}

impl OpenTree {
    pub(super) fn open(path: &Path) -> Result<Self, DirError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty());
        let root = root.map_err(|errno| failed("open", path)(errno.into()))?;
        Ok(Self {
            root,
            path: path.to_path_buf(),
        })
    }

    /// Returns the name of a path for people and for errors.
    pub(super) fn full(&self, path: &Path) -> PathBuf {
        self.path.join(path)
    }

    /// Returns a function that turns the system's refusal into an error about `path`.
    pub(super) fn failed(
        &self,
        op: &'static str,
        path: &Path,
    ) -> impl FnOnce(Errno) -> DirError + use<> {
        let full = self.full(path);
        move |errno| failed(op, &full)(io::Error::from(errno))
    }

    /// Opens a directory of the tree; the empty path is its top.
    pub(super) fn dir(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens the directory that holds `path`, and returns the name in it.
    pub(super) fn parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let dir = self.dir(path.parent().unwrap_or(Path::new("")))?;
        Ok((dir, name))
    }

    pub(super) fn look(&self, path: &Path) -> Result<PathContent, DirError> {
        match self.try_look(path) {
            Ok(found) => Ok(found),
            Err(Errno::NOENT) => Ok(PathContent::Nothing),
            Err(Errno::NOTDIR | Errno::LOOP) => Ok(PathContent::Blocked),
            Err(errno) => Err(self.failed("inspect", path)(errno)),
        }
    }

    /// Opens a plain file for reading; `None` when it is not one.
    pub(super) fn file(&self, path: &Path) -> Result<Option<(File, Stat)>, DirError> {
        // Without `NONBLOCK` a pipe would be waited for.
        let opened = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW);
        let file = match opened {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                return Ok(None);
            }
            Err(errno) => return Err(self.failed("open", path)(errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(self.failed("inspect", path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        Ok(Some((File::from(file), stat)))
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn names(&self, path: &Path) -> Result<Vec<OsString>, DirError> {
        let opened = self.dir(path).and_then(Dir::new);
        let mut names = Vec::new();
        for entry in opened.map_err(self.failed("list", path))? {
            let entry = entry.map_err(self.failed("list", path))?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn try_look(&self, path: &Path) -> Result<PathContent, Errno> {
        let (dir, name) = self.parent(path)?;
        let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let identity = identity_of(&stat);
        let changed = Moment {
            seconds: stat.st_ctime,
            nanoseconds: i64::try_from(stat.st_ctime_nsec).unwrap_or_default(),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => PathContent::Directory,
            FileType::RegularFile => PathContent::File {
                mode: stat.st_mode & 0o7777,
                identity,
                changed,
            },
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
                PathContent::Link {
                    target: OsString::from_vec(target.into_bytes()),
                    identity,
                    changed,
                }
            }
            _ => PathContent::Special,
        })
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // The system asks for another try when something above was renamed meanwhile.
        for _ in 0..100 {
            let flags = flags | OFlags::CLOEXEC;
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }
}

pub(super) fn identity_of(stat: &Stat) -> FileIdentity {
    FileIdentity {
        device: stat.st_dev,
        inode: stat.st_ino,
        len: u64::try_from(stat.st_size).unwrap_or_default(),
        written: Moment {
            seconds: stat.st_mtime,
            nanoseconds: i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
        },
    }
}
