//! A disk in memory whose power can fail at any mutating call.
//!
//! It keeps apart what a running process sees and what would still be there after a power cut, and
//! lets a test choose how much of the difference survives. Knows nothing of what the files mean.

pub(crate) mod locks;

mod dice;
mod names;
mod state;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use self::locks::SimLocks;
use self::state::SimDiskState;
use crate::disk::{Disk, DiskError};
use crate::lock::{Lock, LockAttempt, LockError, retry};

/// How much of what was not synced is there after the crash.
///
/// Content and names are separate: a file's bytes become durable by a sync of the file, its name
/// and a rename by a sync of the directory. So a renamed file may survive with its bytes lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// Only what was synced.
    Nothing,
    /// In each directory the first few name changes, in each file the first few writes, the last
    /// of them cut at any byte. How many, and where, follows from the seed.
    TornPrefix(u64),
    /// All of it, as if the disk had synced by itself just before.
    Everything,
    /// All of it, but as unsynced as before: the process was killed, the machine went on. A later
    /// power failure may still take it.
    PageCache,
}

/// A mistake built into the disk, to prove that a test would notice it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// A sync of a file does nothing.
    SkipFileSync,
    /// A sync of a directory does nothing.
    SkipDirSync,
    /// A truncation does nothing.
    SkipTruncate,
    /// An append whose bytes contain this text is done only just before the next append.
    DelayAppendMatching(String),
}

/// A simulated disk. Clones are handles to the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<SimDiskState>>,
    locks: SimLocks,
}

impl SimDisk {
    /// Returns a disk with an empty, durable root directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a directory and its parents durable without counting an operation: what was there
    /// before the test began.
    pub fn provide_dir(&self, dir: &Path) {
        self.state().provide_dir(dir);
    }

    /// Returns how many mutating operations were begun so far, over all reboots.
    ///
    /// The first has number 0, so this is also the number of the next one.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.state().ops
    }

    /// Lets the power fail at the mutating operation with this number.
    ///
    /// That operation is not done; it and every later call fail until the next reboot.
    pub fn crash_at(&self, op: u64, survival: Survival) {
        self.state().crash_at = Some((op, survival));
    }

    /// Lets the power fail now.
    pub fn crash_now(&self, survival: Survival) {
        self.state().fail_power(survival);
    }

    /// Tells whether the power has failed and the disk was not rebooted since.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.state().crashed.is_some()
    }

    /// Brings the disk back with what survived, and forgets all locks.
    ///
    /// Without a crash before, it is as if the process had been killed and started again.
    pub fn reboot(&self) {
        self.state().reboot();
        self.locks.forget();
    }

    /// Builds a mistake into the disk from now on, in place of any other.
    pub fn set_mutation(&self, mutation: Mutation) {
        self.state().mutation = Some(mutation);
    }

    /// Returns all files as a running process sees them.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.state().live_files()
    }

    /// Returns all files as they would be if the power failed now and nothing unsynced survived.
    #[must_use]
    pub fn durable(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.state().durable_files()
    }

    fn state(&self) -> MutexGuard<'_, SimDiskState> {
        // A test thread that panicked must not hide what the others would say.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(
        &self,
        op: &'static str,
        path: &Path,
        look: impl FnOnce(&SimDiskState) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        let state = self.state();
        let result = state.check_power().and_then(|()| look(&state));
        result.map_err(|source| DiskError {
            op,
            path: path.to_path_buf(),
            source,
        })
    }

    fn change<T>(
        &self,
        op: &'static str,
        path: &Path,
        change: impl FnOnce(&mut SimDiskState) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        let mut state = self.state();
        let result = state.begin_op().and_then(|()| change(&mut state));
        result.map_err(|source| DiskError {
            op,
            path: path.to_path_buf(),
            source,
        })
    }
}

impl Disk for SimDisk {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        self.look("read", path, |state| {
            let from = usize::try_from(from).map_err(io::Error::other)?;
            let bytes = state.content(path)?;
            Ok(bytes.map(|bytes| bytes.get(from..).unwrap_or_default().to_vec()))
        })
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.look("measure", path, |state| {
            Ok(state.content(path)?.map(|bytes| bytes.len() as u64))
        })
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        self.look("list", dir, |state| state.list(dir))
    }

    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        self.change("create directory", dir, |state| state.create_dir(dir))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.change("write", path, |state| state.write(path, bytes))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.change("append to", path, |state| state.append(path, bytes))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        self.change("truncate", path, |state| state.truncate(path, len))
    }

    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.change("sync", path, |state| state.sync(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.change("rename to", to, |state| state.rename(from, to))
    }

    /// Takes a simulated lock, which excludes every other holder of a handle to this disk.
    ///
    /// Like the real one it leaves an (empty) file; making that file is a mutating operation.
    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        let failed = |source| LockError::Failed {
            path: path.to_path_buf(),
            source,
        };
        self.state().provide_lock_file(path).map_err(failed)?;
        let taken = retry(wait_ms, || {
            self.state().check_power()?;
            Ok(self
                .locks
                .try_take(path, owner)
                .map_or(LockAttempt::Held, LockAttempt::Taken))
        });
        match taken.map_err(failed)? {
            Some(hold) => Ok(Lock::simulated(hold)),
            None => Err(LockError::Busy {
                path: path.to_path_buf(),
                owner: self.locks.owner(path),
            }),
        }
    }
}

/// Tells whether an error, as carried by [`DiskError`] or [`LockError`], is the power failure.
#[must_use]
pub fn is_power_failure(source: &io::Error) -> bool {
    source
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PowerFailure>())
        .is_some()
}

/// What every call meets between the crash and the reboot.
#[derive(Debug)]
struct PowerFailure;

impl fmt::Display for PowerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("simulated power failure")
    }
}

impl Error for PowerFailure {}
