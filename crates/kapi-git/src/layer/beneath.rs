//! A directory that is entered by its descriptor only.
//!
//! Every path is resolved by the kernel below that directory: no link is followed, no mount is
//! crossed, and opening a pipe cannot hang. Knows nothing of layers or of git.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, chmodat, mkdirat, mknodat, openat2,
    readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::owned_dir::{DirError, failed};

/// How often a resolution is tried again that the kernel gave up because of a rename elsewhere.
const RESOLVE_TRIES_MAX: usize = 16;

/// An open directory and the name it was opened by.
#[derive(Debug)]
pub(crate) struct DirectoryRoot {
    fd: OwnedFd,
    path: PathBuf,
}

impl DirectoryRoot {
    /// Opens a directory whose own path is trusted.
    pub(crate) fn open(path: &Path) -> Result<Self, DirError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| failed("open", path)(error.into()))?;
        Ok(Self {
            fd,
            path: path.to_path_buf(),
        })
    }

    /// Returns the path the directory was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below, or the root itself for an empty path.
    pub(crate) fn dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        self.resolve(path, flags, Mode::empty())
    }

    /// Gives the owner of a directory the rights to list and change it, and opens it.
    pub(crate) fn open_up(&self, path: &Path) -> io::Result<OwnedFd> {
        self.at(path, |dir, name| {
            let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if kind(&found) != FileType::Directory {
                return Err(Errno::NOTDIR);
            }
            let mode = Mode::from_raw_mode(found.st_mode & 0o777 | 0o700);
            chmodat(dir, name, mode, AtFlags::empty())
        })?;
        self.dir(path)
    }

    /// Opens a regular file for reading; anything else is an error.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.resolve(path, flags, Mode::empty())?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// Creates a file that is not there yet.
    pub(crate) fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = File::from(self.resolve(path, flags, Mode::from_raw_mode(mode))?);
        // Whatever the mask of this process is.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(file)
    }

    /// Looks at what is at `path` without following it; `None` when nothing is.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        match self.look(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at what is at `path` without following it; nothing there is an error, and another one
    /// when a directory on the way is none.
    pub(crate) fn look(&self, path: &Path) -> io::Result<Stat> {
        self.at(path, |dir, name| {
            statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Looks at what is at `path` whose directories the caller has just seen to be directories.
    pub(crate) fn stat_on_way(&self, path: &Path) -> io::Result<Stat> {
        Ok(statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns the value of a link.
    pub(crate) fn link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let value = self.at(path, |dir, name| readlinkat(dir, name, Vec::new()))?;
        Ok(value.into_bytes())
    }

    /// Makes a link.
    pub(crate) fn make_link(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        let target = OsStr::from_bytes(target);
        self.at(path, |dir, name| symlinkat(target, dir, name))
    }

    /// Makes one directory; one that is there is fine.
    pub(crate) fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        match self.at(path, |dir, name| mkdirat(dir, name, mode)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Makes the mark by which an overlay hides what lies below it at this path.
    pub(crate) fn make_whiteout(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| {
            mknodat(dir, name, FileType::CharacterDevice, Mode::empty(), 0)
        })
    }

    /// Removes a file, link or mark.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.at(path, |dir, name| unlinkat(dir, name, AtFlags::empty()))
    }

    fn at<T>(
        &self,
        path: &Path,
        act: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
    ) -> io::Result<T> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok(act(self.fd.as_fd(), name)?);
        }
        let dir = self.resolve(parent, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?;
        Ok(act(dir.as_fd(), name)?)
    }

    fn resolve(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let how = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let mut tries_left = RESOLVE_TRIES_MAX;
        loop {
            match openat2(&self.fd, path, flags | OFlags::CLOEXEC, mode, how) {
                Err(Errno::AGAIN) if tries_left > 0 => tries_left -= 1,
                other => return Ok(other?),
            }
        }
    }
}

/// Tells whether an error means that nothing is there, or nothing that can be entered.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    let code = error.raw_os_error().unwrap_or_default();
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV]
        .iter()
        .any(|absent| absent.raw_os_error() == code)
}

/// Returns the kind of thing that a mode says.
pub(crate) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Returns the size as the number it is.
pub(crate) fn size(found: &Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or(u64::MAX)
}
