//! The locks of a simulated disk: exclusive, also against the thread that holds them.
//!
//! A power failure forgets them all, as the death of the process would. Knows nothing of files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Who holds which lock now. Clones share one table.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimLocks(Arc<Mutex<LockTable>>);

#[derive(Debug, Default)]
struct LockTable {
    holders: BTreeMap<PathBuf, LockHolder>,
    n_taken: u64,
}

#[derive(Debug)]
struct LockHolder {
    number: u64,
    owner: String,
}

/// One lock held, until it is released or a power failure forgets it.
#[derive(Debug)]
pub(crate) struct SimHold {
    locks: SimLocks,
    path: PathBuf,
    number: u64,
}

impl SimLocks {
    /// Takes the lock if nobody holds it.
    pub(super) fn try_take(&self, path: &Path, owner: &str) -> Option<SimHold> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.holders.contains_key(path) {
            return None;
        }
        table.n_taken += 1;
        let number = table.n_taken;
        table.holders.insert(
            path.to_path_buf(),
            LockHolder {
                number,
                owner: owner.to_owned(),
            },
        );
        Some(SimHold {
            locks: self.clone(),
            path: path.to_path_buf(),
            number,
        })
    }

    /// Returns who holds the lock.
    pub(super) fn owner(&self, path: &Path) -> String {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = table.holders.get(path).map(|holder| holder.owner.clone());
        owner.unwrap_or_else(|| String::from("an unknown process"))
    }

    /// Releases everything.
    pub(super) fn forget(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .holders
            .clear();
    }
}

impl SimHold {
    pub(crate) fn release(&self) {
        let mut table = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        // After a reboot the path may be held by somebody else.
        if table
            .holders
            .get(&self.path)
            .is_some_and(|holder| holder.number == self.number)
        {
            table.holders.remove(&self.path);
        }
    }
}
