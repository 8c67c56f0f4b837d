//! The places of living processes: locks that the system drops when a process dies.
//!
//! Places are numbered and used again, so their files stay few. A place that nobody holds is that
//! of a dead process, whatever its number in any process table. To be looked at only under one
//! lock that all who look share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kapi_sys::disk::Disk;
use kapi_sys::lock::{Lock, LockError};

/// Processes that may have a place at once.
pub const LOCATIONS_MAX: u32 = 1_024;

/// A directory of places.
#[derive(Clone)]
pub struct SlotDirectory<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The directory.
    pub dir: PathBuf,
    /// What others are told about who holds a place ("kapi up").
    pub owner: String,
}

/// A place that is held.
#[derive(Debug)]
pub struct MachineSlot {
    /// Its number, from 1.
    pub number: u32,
    /// Held for as long as this lives.
    _lock: Lock,
}

/// Why no place could be had.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// Every place is taken.
    #[error("find a free place in {}: {LOCATIONS_MAX} processes are at it", dir.display())]
    Full {
        /// The directory of the places.
        dir: PathBuf,
    },
    /// The disk refused.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl SlotDirectory<'_> {
    /// Takes the first free place. Whoever had it before is gone.
    ///
    /// # Errors
    /// When none is free or the disk refuses.
    pub fn claim(&self) -> Result<MachineSlot, SlotError> {
        for number in 1..=LOCATIONS_MAX {
            match self.disk.lock(&file_of(&self.dir, number), &self.owner, 0) {
                Ok(lock) => {
                    return Ok(MachineSlot {
                        number,
                        _lock: lock,
                    });
                }
                Err(LockError::Busy { .. }) => {}
                Err(error @ LockError::Failed { .. }) => return Err(error.into()),
            }
        }
        Err(SlotError::Full {
            dir: self.dir.clone(),
        })
    }

    /// Returns those of the numbers whose process is there; `own` always is.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn living(&self, own: u32, numbers: &BTreeSet<u32>) -> Result<BTreeSet<u32>, LockError> {
        let mut living = BTreeSet::from([own]);
        for &number in numbers.iter().filter(|&&number| number != own) {
            // Taken for an instant and given back.
            match self.disk.lock(&file_of(&self.dir, number), &self.owner, 0) {
                Ok(_free) => {}
                Err(LockError::Busy { .. }) => {
                    living.insert(number);
                }
                Err(error @ LockError::Failed { .. }) => return Err(error),
            }
        }
        Ok(living)
    }
}

fn file_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:04}.lock"))
}
