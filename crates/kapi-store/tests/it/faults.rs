//! A disk that refuses: what was not acknowledged is taken back, and the next try succeeds.

use std::path::Path;
use std::sync::Mutex;

use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::sim_disk::SimDisk;

use crate::support::{log, numbers, record, sim_disk, stream};

/// A disk whose next operation of one kind on the log fails, after doing half of an append.
struct Refusing {
    disk: SimDisk,
    refused: Mutex<Option<&'static str>>,
}

impl Refusing {
    fn refuses(&self, op: &'static str, path: &Path) -> Result<(), DiskError> {
        let mut refused = self.refused.lock().unwrap();
        if path != log() || *refused != Some(op) {
            return Ok(());
        }
        *refused = None;
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(DiskError {
            op,
            path: path.to_path_buf(),
            source,
        })
    }
}

impl Disk for Refusing {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        self.disk.read(path, from)
    }
    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.disk.len(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }
    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        self.disk.create_dir(dir)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.write(path, bytes)
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        if let Err(error) = self.refuses("append to", path) {
            self.disk.append(path, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.disk.append(path, bytes)
    }
    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        self.disk.truncate(path, len)
    }
    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.refuses("sync", path)?;
        self.disk.sync(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        self.disk.lock(path, owner, wait_ms)
    }
}

#[test]
fn what_could_not_be_made_durable_is_taken_back() {
    for op in ["append to", "sync"] {
        let disk = Refusing {
            disk: sim_disk(),
            refused: Mutex::new(None),
        };
        record(&stream(&disk), &[1]).unwrap();
        let before = disk.disk.snapshot()[&log()].clone();
        *disk.refused.lock().unwrap() = Some(op);
        let error = record(&stream(&disk), &[2, 3]).unwrap_err();
        assert_eq!(error.to_string(), format!("{op} {}", log().display()));
        assert_eq!(disk.disk.snapshot()[&log()], before, "{op}");
        record(&stream(&disk), &[4]).unwrap();
        assert_eq!(numbers(&stream(&disk)), [1, 4], "{op}");
    }
}

#[test]
fn a_first_record_that_fails_leaves_no_events() {
    for op in ["append to", "sync"] {
        let disk = Refusing {
            disk: sim_disk(),
            refused: Mutex::new(Some(op)),
        };
        assert!(record(&stream(&disk), &[1]).is_err());
        assert_eq!(numbers(&stream(&disk)), Vec::<u32>::new(), "{op}");
        record(&stream(&disk), &[2]).unwrap();
        assert_eq!(numbers(&stream(&disk)), [2], "{op}");
    }
}
