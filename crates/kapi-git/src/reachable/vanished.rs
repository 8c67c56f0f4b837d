//! The stores of repositories that are gone.
//!
//! A store is found by the path of its repository, so when that has moved or been removed, nobody asks
//! for the store again. Does not know whether a disk is only unplugged: what is taken away was not used
//! for as long as the caller says, and is made again when it is needed.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_sys::lock::Lock;

use super::ReachableError;
use super::entry::StoreEntries;
use crate::owned_dir::{self, failed};

/// The file that names the repository.
const OF: &str = "repository";
/// The most repositories that are looked at.
const REPOSITORIES_MAX: usize = 100_000;

/// Notes whose stores a directory holds.
pub(super) fn note(dir: &Path, repository: &Path) -> Result<(), ReachableError> {
    let path = dir.join(OF);
    let bytes = repository.as_os_str().as_bytes();
    if fs::read(&path).is_ok_and(|noted| noted == bytes) {
        return Ok(());
    }
    Ok(owned_dir::replace(&path, bytes)?)
}

/// Returns the directories in `stores` whose repository is gone and of which nothing was used since
/// `used_before` (Unix seconds).
///
/// A directory that names no repository is left alone.
///
/// # Errors
/// When a directory cannot be read.
pub fn vanished_stores(stores: &Path, used_before: i64) -> Result<Vec<PathBuf>, ReachableError> {
    let listed = match fs::read_dir(stores) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(failed("list", stores))?,
    };
    let mut found = Vec::new();
    for entry in listed.take(REPOSITORIES_MAX) {
        let dir = entry.map_err(failed("list", stores))?.path();
        if is_vanished(&dir, used_before)? {
            found.push(dir);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes one of them; what was used meanwhile, or has its repository again, stays.
///
/// # Errors
/// When another process makes or removes some at this moment, or they cannot be removed.
pub fn remove_vanished(dir: &Path, used_before: i64) -> Result<(), ReachableError> {
    let _lock = Lock::acquire(&dir.join("lock"), "kapi, clean-up", 0)?;
    if is_vanished(dir, used_before)? {
        owned_dir::wipe(dir)?;
    }
    Ok(())
}

fn is_vanished(dir: &Path, used_before: i64) -> Result<bool, ReachableError> {
    let Ok(noted) = fs::read(dir.join(OF)) else {
        return Ok(false);
    };
    let repository = Path::new(OsStr::from_bytes(&noted));
    let is_gone = |error: io::Error| error.kind() == ErrorKind::NotFound;
    if !repository.is_absolute() || !fs::symlink_metadata(repository).is_err_and(is_gone) {
        return Ok(false);
    }
    let listed = StoreEntries { dir }.list()?;
    Ok(listed
        .iter()
        .all(|(_, (used_at, _))| *used_at < used_before))
}
