//! The place of a process that spends: a lock that the system drops when the process dies.
//!
//! Places are numbered and used again, so their files stay few. A place that nobody holds is that
//! of a dead process, whatever its number in any process table. To be looked at only under the
//! stream's lock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kapi_core::spend::books::Books;
use kapi_sys::lock::{Lock, LockError};

use crate::spend::error::LedgerError;
use crate::spend::{Machine, holders_dir};

/// Processes that may spend at once.
const PLACES_MAX: u32 = 1_024;

/// A place that is held.
#[derive(Debug)]
pub(super) struct Holder {
    /// Its number, from 1.
    pub(super) place: u32,
    /// Held for as long as this lives.
    _lock: Lock,
}

impl Holder {
    /// Takes the first free place.
    pub(super) fn claim(machine: &Machine<'_>) -> Result<Self, LedgerError> {
        let dir = holders_dir(&machine.dir());
        for place in 1..=PLACES_MAX {
            match machine.disk.lock(&file_of(&dir, place), &machine.owner, 0) {
                Ok(lock) => return Ok(Self { place, _lock: lock }),
                Err(LockError::Busy { .. }) => {}
                Err(error @ LockError::Failed { .. }) => return Err(error.into()),
            }
        }
        Err(LedgerError::NoPlace {
            dir,
            places: PLACES_MAX,
        })
    }

    /// Returns the places among those in the books whose process is there, and this one.
    pub(super) fn living(
        &self,
        machine: &Machine<'_>,
        books: &Books,
    ) -> Result<BTreeSet<u32>, LedgerError> {
        let dir = holders_dir(&machine.dir());
        let mut living = BTreeSet::from([self.place]);
        let others: BTreeSet<u32> = books.open.values().map(|open| open.holder).collect();
        for place in others {
            if place == self.place {
                continue;
            }
            // Taken for an instant and given back: places are only looked at under one lock.
            match machine.disk.lock(&file_of(&dir, place), &machine.owner, 0) {
                Ok(_free) => {}
                Err(LockError::Busy { .. }) => {
                    living.insert(place);
                }
                Err(error @ LockError::Failed { .. }) => return Err(error.into()),
            }
        }
        Ok(living)
    }
}

fn file_of(dir: &Path, place: u32) -> PathBuf {
    dir.join(format!("{place:04}.lock"))
}
