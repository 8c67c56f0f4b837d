//! Reading one file that rules are in: the file itself, never what a link or device leads to.
//!
//! Only "there is no such file" counts as none. Everything else that stands in the way is an error,
//! because a rule that cannot be read may be the one that forbids.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The longest file in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 64 * 1024;
/// How often a look-up that somebody disturbs is tried again.
const ATTEMPTS_MAX: usize = 16;
/// The permission of everybody to write.
const WRITE_BY_ALL: u32 = 0o002;

/// Whose file it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileOwner {
    /// Anybody's: it can only forbid.
    Anybody,
    /// The person's or root's, and not writable by everybody.
    Person,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// The directory that it would lie in is not there.
    #[error("the directory does not exist")]
    NoDirectory,
    /// The project is not there.
    #[error("the project does not exist")]
    NoProject,
    /// Something on the way is a link.
    #[error("it is a symbolic link or behind one")]
    Link,
    /// Something on the way is no directory.
    #[error("its parent is not a directory")]
    NotADirectory,
    /// A directory, pipe, socket or device.
    #[error("it is not a regular file")]
    NoFile,
    /// It is too long.
    #[error("it is longer than 64 KiB")]
    TooLong,
    /// Its bytes are no text.
    #[error("it is not UTF-8")]
    NotText,
    /// Others could have written it.
    #[error("others can write it")]
    OthersWrite,
    /// The system refused.
    #[error("{source}")]
    Io {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Unreadable {
    /// Returns what to do.
    pub(super) const fn remedy(&self) -> &'static str {
        match self {
            Self::NoDirectory | Self::NoProject => "give an existing directory",
            Self::Link => "replace the link with the file",
            Self::NotADirectory => "put a directory there, or remove it",
            Self::NoFile => "put a regular file there, or remove it",
            Self::TooLong => "shorten it",
            Self::NotText => "save it as UTF-8",
            Self::OthersWrite => "make sure you own it, and run `chmod o-w` on it",
            Self::Io { .. } => "make it readable",
        }
    }
}

impl From<Errno> for Unreadable {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP | Errno::XDEV => Self::Link,
            Errno::NOTDIR => Self::NotADirectory,
            // A socket, or a device that nothing answers behind.
            Errno::NXIO | Errno::NODEV => Self::NoFile,
            other => Self::Io {
                source: other.into(),
            },
        }
    }
}

/// Returns the text of a file below a directory; `None` only when there is no such file.
pub(super) fn read(
    dir: &Path,
    path: &Path,
    owner: FileOwner,
) -> Result<Option<String>, Unreadable> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = match openat(CWD, dir, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Err(Unreadable::NoDirectory),
        Err(errno) => return Err(errno.into()),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mut attempts = (0..ATTEMPTS_MAX)
        .map(|_| openat2(&dir, path, flags, Mode::empty(), how))
        // Somebody renames what the look-up passes through.
        .skip_while(|found| matches!(found, Err(Errno::AGAIN)));
    let file = match attempts.next() {
        Some(Ok(file)) => File::from(file),
        Some(Err(Errno::NOENT)) => return Ok(None),
        Some(Err(errno)) => return Err(errno.into()),
        None => return Err(Errno::AGAIN.into()),
    };
    text_of(&file, owner).map(Some)
}

fn text_of(file: &File, owner: FileOwner) -> Result<String, Unreadable> {
    let failed = |source| Unreadable::Io { source };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(Unreadable::NoFile);
    }
    let person = rustix::process::geteuid().as_raw();
    let is_others = found.uid() != person && found.uid() != 0;
    if owner == FileOwner::Person && (is_others || found.mode() & WRITE_BY_ALL != 0) {
        return Err(Unreadable::OthersWrite);
    }
    let mut bytes = Vec::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|count| count > FILE_BYTES_MAX) {
        return Err(Unreadable::TooLong);
    }
    String::from_utf8(bytes).map_err(|_| Unreadable::NotText)
}
