//! Advisory file locks that name their owner.
//!
//! `flock(2)` on an open file: the kernel drops it when the process dies, however it dies.
//! The file stays behind, and so does the text in it; only the lock itself says who holds it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use rustix::fs::{CWD, FlockOperation, Mode as FileMode, OFlags, flock, openat};
use rustix::io::Errno;

use crate::private_mode;
use crate::sim_disk::locks::SimHold;

/// The longest that questions for the holder, and shares, may keep a free lock from being taken.
const DISTURBED_MAX: Duration = Duration::from_secs(2);
/// The first and the longest pause between two tries.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// After how long the pauses are short again: whoever takes a lock over and over leaves it free for an
/// instant only, and who came first must not starve beside it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most of an owner's text that is written or believed.
const OWNER_BYTES_MAX: u64 = 200;

/// A held lock; dropping it releases it.
#[derive(Debug)]
#[must_use = "a lock is released when it is dropped"]
pub struct Lock {
    held: LockHandle,
}

#[derive(Debug)]
enum LockHandle {
    File(File),
    Simulated(SimHold),
    Nothing,
}

/// A lock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("lock {}, held by {owner}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it ("pid 4711, kapi run").
        owner: String,
    },
    /// The system refused.
    #[error("lock {}", path.display())]
    Failed {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock at `path` for `owner`, waiting at most `wait_ms` milliseconds. Missing
    /// directories are created.
    ///
    /// The lock belongs to this call, not to the process: taking it twice ends in `Busy`.
    pub fn acquire(path: &Path, owner: &str, wait_ms: u64) -> Result<Self, LockError> {
        let failed = |source| LockError::Failed {
            path: path.to_path_buf(),
            source,
        };
        if let Some(directory) = path.parent() {
            private_mode::create_dir(directory).map_err(failed)?;
        }
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let taken = retry(wait_ms, || try_lock(path, exclusive)).map_err(failed)?;
        let Some(file) = taken else {
            return Err(busy(path));
        };
        write_owner(&file, owner).map_err(failed)?;
        Ok(Self {
            held: LockHandle::File(file),
        })
    }

    /// Takes a share of the lock at `path`, so that nobody takes it as a whole meanwhile.
    ///
    /// Shares do not exclude each other, and nobody is named as the holder because of one: it is for
    /// whoever only reads, for a moment. An [`Self::acquire`] waits up to two seconds for shares.
    pub fn share(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Failed {
            path: path.to_path_buf(),
            source,
        };
        if let Some(directory) = path.parent() {
            private_mode::create_dir(directory).map_err(failed)?;
        }
        let shared = FlockOperation::NonBlockingLockShared;
        match retry(0, || try_lock(path, shared)).map_err(failed)? {
            Some(file) => Ok(Self {
                held: LockHandle::File(file),
            }),
            None => Err(busy(path)),
        }
    }

    /// Returns who holds the lock at `path` now; `None` if nobody does.
    pub fn holder(path: &Path) -> Result<Option<String>, LockError> {
        let failed = |source| LockError::Failed {
            path: path.to_path_buf(),
            source,
        };
        match open(path, LockFileMode::Existing) {
            Ok(file) => holder_of(file).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns a lock that excludes nobody, for a disk that only one thread can see.
    pub fn unheld() -> Self {
        Self {
            held: LockHandle::Nothing,
        }
    }

    pub(crate) fn simulated(hold: SimHold) -> Self {
        Self {
            held: LockHandle::Simulated(hold),
        }
    }
}

/// A directory below which many locks are asked for their holders.
///
/// Opened once: the way to it is not walked again for each of thousands.
#[derive(Debug)]
pub struct LockDirectory {
    path: PathBuf,
    /// `None` when there is no such directory: nobody holds what is not there.
    directory: Option<OwnedFd>,
}

impl LockDirectory {
    /// Opens the directory at `path`.
    pub fn open(path: &Path) -> Result<Self, LockError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match openat(CWD, path, flags, FileMode::empty()) {
            Ok(directory) => Some(directory),
            Err(Errno::NOENT) => None,
            Err(error) => {
                return Err(LockError::Failed {
                    path: path.to_path_buf(),
                    source: error.into(),
                });
            }
        };
        let path = path.to_path_buf();
        Ok(Self { path, directory })
    }

    /// Returns who holds the lock at `name`, a path from here, now; `None` if nobody does.
    pub fn holder(&self, name: &Path) -> Result<Option<String>, LockError> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let failed = |source| LockError::Failed {
            path: self.path.join(name),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | FOREIGN;
        match openat(directory, name, flags, FileMode::empty()) {
            Ok(file) => regular(File::from(file))
                .and_then(holder_of)
                .map_err(failed),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        match &self.held {
            // Closing would do, but a child just forked may hold a copy until it has executed. If
            // this fails the close that follows still releases.
            LockHandle::File(file) => drop(flock(file, FlockOperation::Unlock)),
            LockHandle::Simulated(hold) => hold.release(),
            LockHandle::Nothing => {}
        }
    }
}

/// What became of one try to take a lock.
#[derive(Debug)]
pub(crate) enum LockAttempt<T> {
    Taken(T),
    /// Somebody holds it.
    Held,
    /// Nobody holds it, but somebody was just asking, or has a share.
    Disturbed,
}

/// Tries again and again until the time is over: with growing pauses, and with short ones in the end.
pub(crate) fn retry<T>(
    wait_ms: u64,
    mut attempt: impl FnMut() -> io::Result<LockAttempt<T>>,
) -> io::Result<Option<T>> {
    let started = Instant::now();
    let wait = Duration::from_millis(wait_ms);
    let mut pause = PAUSE_MIN;
    loop {
        let wait = match attempt()? {
            LockAttempt::Taken(value) => return Ok(Some(value)),
            LockAttempt::Held => wait,
            LockAttempt::Disturbed => wait.max(DISTURBED_MAX),
        };
        let left = wait.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
        pause = if started.elapsed() < PATIENCE {
            (pause * 2).min(PAUSE_MAX)
        } else {
            PAUSE_MIN
        };
    }
}

/// Whether opening may create the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockFileMode {
    Existing,
    Create,
}

/// How a file is opened that somebody may have planted: a symbolic link is refused, as its target
/// would be overwritten, and nobody is waited for at a named pipe.
const FOREIGN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

fn open(path: &Path, mode: LockFileMode) -> io::Result<File> {
    let flags = i32::try_from(FOREIGN.bits()).map_err(io::Error::other)?;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags);
    if mode == LockFileMode::Create {
        let mode = private_mode::file_mode(path);
        options.write(true).create(true).truncate(false).mode(mode);
    }
    let file = regular(options.open(path)?)?;
    if mode == LockFileMode::Create {
        private_mode::tighten(path, &file)?;
    }
    Ok(file)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

/// Returns who holds the lock on an open file, of which whoever only asks takes a share.
fn holder_of(file: File) -> io::Result<Option<String>> {
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(&file, FlockOperation::Unlock)?;
            Ok(None)
        }
        Err(Errno::WOULDBLOCK) => read_owner(file).map(Some),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error that somebody holds the lock, or a share of it.
fn busy(path: &Path) -> LockError {
    let held = open(path, LockFileMode::Existing).and_then(|file| {
        let owner = holder_of(file)?;
        Ok(owner.unwrap_or_else(|| String::from("another process")))
    });
    let path = path.to_path_buf();
    match held {
        Ok(owner) => LockError::Busy { path, owner },
        Err(source) => LockError::Failed { path, source },
    }
}

fn try_lock(path: &Path, how: FlockOperation) -> io::Result<LockAttempt<File>> {
    let file = open(path, LockFileMode::Create)?;
    match flock(&file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return is_held(&file),
        Err(Errno::INTR) => return Ok(LockAttempt::Disturbed),
        Err(error) => return Err(error.into()),
    }
    // Somebody may have removed the file meanwhile; what we locked would then exclude nobody.
    let locked = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {
            Ok(LockAttempt::Taken(file))
        }
        Ok(_) => Ok(LockAttempt::Disturbed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockAttempt::Disturbed),
        Err(error) => Err(error),
    }
}

/// Tells a holder from somebody who only asks or reads: holders exclude, the others share.
fn is_held(file: &File) -> io::Result<LockAttempt<File>> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        // Closing the file gives the share back.
        Ok(()) | Err(Errno::INTR) => Ok(LockAttempt::Disturbed),
        Err(Errno::WOULDBLOCK) => Ok(LockAttempt::Held),
        Err(error) => Err(error.into()),
    }
}

fn write_owner(mut file: &File, owner: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(format!("pid {}, {owner}", process::id()).as_bytes())
}

/// Reads the owner's text. It is foreign: capped, and without control characters.
fn read_owner(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(OWNER_BYTES_MAX).read_to_end(&mut bytes)?;
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let text = text.trim();
    // Between taking the lock and writing the text there is an instant without one.
    Ok(if text.is_empty() {
        String::from("an unknown process")
    } else {
        text.to_owned()
    })
}
