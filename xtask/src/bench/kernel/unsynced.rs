//! A real disk that promises nothing: syncs are left out.
//!
//! Only for making a long history quickly; nothing is measured on it.

use std::path::Path;

use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::real_disk::RealDisk;

/// The real disk without its syncs.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsyncedDisk;

impl Disk for UnsyncedDisk {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        RealDisk.read(path, from)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        RealDisk.len(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        RealDisk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        RealDisk.create_dir(dir)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        RealDisk.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        RealDisk.append(path, bytes)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        RealDisk.truncate(path, len)
    }

    fn sync(&self, _path: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        RealDisk.rename(from, to)
    }

    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        RealDisk.lock(path, owner, wait_ms)
    }
}
