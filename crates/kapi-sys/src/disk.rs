//! The disk seam: bytes, syncs and renames, each one a point where power may fail.
//!
//! Deliberately low-level, so that crash tests exercise the real store and not a fake one.
//! Knows nothing of what the files mean.

use std::io;
use std::path::{Path, PathBuf};

use crate::lock::{Lock, LockError};

/// A disk operation that failed, with the path it failed on.
#[derive(Debug, thiserror::Error)]
#[error("{op} {}", path.display())]
pub struct DiskError {
    /// The operation, as a verb ("append to").
    pub op: &'static str,
    /// The file or directory concerned.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Bytes, syncs, renames. Every mutating method is one crash point of the simulator.
pub trait Disk: Send + Sync {
    /// Returns the bytes of `path` from offset `from` to the end; `None` if there is no such file.
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError>;
    /// Returns the length of the file in bytes; `None` if there is no such file.
    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError>;
    /// Returns the length of each of these files, whose paths start at `dir`, as [`Disk::len`] does
    /// for one: what a listing of thousands asks for.
    fn lens(&self, dir: &Path, files: &[PathBuf]) -> Vec<Result<Option<u64>, DiskError>> {
        files.iter().map(|file| self.len(&dir.join(file))).collect()
    }
    /// Returns the names in a directory, sorted; empty if there is no such directory. What is not
    /// UTF-8 in a name comes as the replacement character.
    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError>;
    /// Creates a directory and its missing parents. Returns whether the last one is new and this
    /// very call made it. Not synced, see [`create_dir_durably`].
    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError>;
    /// Writes a whole file, replacing its content. Not atomic, not synced.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;
    /// Writes at the end of a file, creating it if missing. Not synced.
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;
    /// Cuts a file to `len` bytes; an error if it is shorter than that. Not synced.
    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError>;
    /// Makes a file's content, or a directory's entries, durable.
    ///
    /// After a failure nobody knows what is durable, and a second sync that succeeds proves
    /// nothing: read back, or give up.
    fn sync(&self, path: &Path) -> Result<(), DiskError>;
    /// Renames a file over another, atomically. Not synced.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;
    /// Takes the advisory lock at `path`, waiting at most `wait_ms` milliseconds.
    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError>;
}

/// Replaces `path` with `bytes`: temporary file, sync, rename, sync of the directory.
pub fn replace_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let temporary = temporary_of(path);
    disk.write(&temporary, bytes)?;
    disk.sync(&temporary)?;
    disk.rename(&temporary, path)?;
    disk.sync(parent_of(path))
}

/// Replaces `path` with `bytes` atomically but without a sync.
///
/// For derived files only: after a power cut they may be stale or unreadable, and are rebuilt.
pub fn replace_derived(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let temporary = temporary_of(path);
    disk.write(&temporary, bytes)?;
    disk.rename(&temporary, path)
}

/// Creates `dir` and its missing parents, and makes every name from `above` down durable.
///
/// Returns whether `dir` itself is new. `above` is a directory that is there and durable. Names
/// that are there already are synced too: whoever made them may have been killed before that.
pub fn create_dir_durably(disk: &dyn Disk, above: &Path, dir: &Path) -> Result<bool, DiskError> {
    if dir == above || !dir.starts_with(above) {
        let message = format!("not below {}", above.display());
        let source = io::Error::new(io::ErrorKind::InvalidInput, message);
        return Err(DiskError {
            op: "create directory",
            path: dir.to_path_buf(),
            source,
        });
    }
    let is_new = disk.create_dir(dir)?;
    for parent in dir
        .ancestors()
        .skip(1)
        .take_while(|parent| parent.starts_with(above))
    {
        disk.sync(parent)?;
    }
    Ok(is_new)
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}
