//! Who works on a project's tasks at the moment, and what those that wait are waiting for.
//!
//! A place that nobody holds is that of a dead worker: the system gives locks back. Only looks.

use std::collections::BTreeMap;

use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_sys::lock::LockError;
use kapi_task::record::queue::{Queue, workers_dir};
use kapi_task::rules::admission;
use kapi_task::rules::admission::Waits;
use kapi_task::rules::task::KernelTask;

use crate::amount;
use crate::error::Error;
use crate::kernel::ProjectKernel;

/// What the process of `kapi up` calls itself.
const UP: &str = "kapi up";

/// A living worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Living {
    /// The name by which it holds leases.
    pub(crate) holder: String,
    /// What it says of itself ("pid 4711, kapi up").
    pub(crate) owner: String,
}

impl Living {
    /// Tells whether it takes whatever task comes.
    pub(crate) fn takes_all(&self) -> bool {
        self.owner.contains(UP)
    }
}

impl ProjectKernel<'_> {
    /// Returns the workers that live: by their places, or by the leases they hold where that is
    /// all that can be known of them.
    pub(crate) fn living(&self, queue: &Queue<'_>) -> Result<Vec<Living>, Error> {
        if let Some(holders) = queue.holders() {
            let living = holders.into_iter().map(|Holder(holder)| Living {
                owner: holder.clone(),
                holder,
            });
            return Ok(living.collect());
        }
        let dir = workers_dir(self.project);
        let disk = self.project.disk;
        let names = disk.list(&dir).map_err(|error| Error::failed(&error))?;
        let mut living = Vec::new();
        for name in names {
            let number = name
                .strip_suffix(".lock")
                .and_then(|text| text.parse().ok());
            let Some(number): Option<u32> = number else {
                continue;
            };
            // Taken for an instant and given back.
            match disk.lock(&dir.join(&name), &self.project.owner, 0) {
                Ok(_free) => {}
                Err(LockError::Busy { owner, .. }) => living.push(Living {
                    holder: format!("worker {number}"),
                    owner,
                }),
                Err(error @ LockError::Failed { .. }) => return Err(Error::failed(&error)),
            }
        }
        Ok(living)
    }

    /// Returns what each task that waits is waiting for, in words.
    pub(crate) fn waits(&self, queue: &Queue<'_>) -> BTreeMap<KernelTaskId, String> {
        let now_ms = queue.now_ms();
        let waits = admission::waits(queue.kernel(), &self.terms.capacity(), now_ms);
        let words = |waits: &Waits| match waits {
            Waits::Until { at_ms } => {
                let pause_ms = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
                format!("retrying in {}", amount::duration(pause_ms))
            }
            Waits::Cooldown { at_ms } => {
                let rest_ms = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0);
                format!("its loop's cooldown, for {}", amount::duration(rest_ms))
            }
            Waits::Project { .. }
            | Waits::Agent { .. }
            | Waits::Loop { .. }
            | Waits::Spend { .. }
            | Waits::Worker => waits.to_string(),
        };
        waits.iter().map(|(id, why)| (*id, words(why))).collect()
    }

    /// Returns what one task waits for.
    pub(crate) fn waits_of(&self, queue: &Queue<'_>, task: &KernelTask) -> Option<String> {
        self.waits(queue).remove(&task.id)
    }
}
