//! Who drives each of many workflows, asked of their locks.
//!
//! The inventory says nothing of it, and nothing else may: only a lock ends with whoever held it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_sys::lock::LockDirectory;

use crate::record::error::WorkflowError;
use crate::record::index::file_of_each::FileOfEach;
use crate::record::index::{WorkflowListingEntry, WorkflowSummary};
use crate::record::workflows::Workflows;

impl Workflows<'_> {
    /// Returns who drives each of these workflows right now, if anybody does. Only what is active is
    /// asked: nothing else can be driven. Asks the real file system.
    ///
    /// # Errors
    /// When a lock cannot be read.
    pub fn workflow_drivers(
        &self,
        listed: &[WorkflowListingEntry],
    ) -> Result<Vec<Option<String>>, WorkflowError> {
        let mut modes: BTreeMap<Mode, DriveLocks> = BTreeMap::new();
        let mut drivers = Vec::with_capacity(listed.len());
        for WorkflowListingEntry { key, state } in listed {
            let is_active = match state {
                WorkflowSummary::Known(entry) => entry.status == WorkflowStatus::Active,
                WorkflowSummary::Damaged(_) => false,
            };
            if !is_active {
                drivers.push(None);
                continue;
            }
            let locks = match modes.entry(key.mode) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(DriveLocks::open(self, key)?),
            };
            drivers.push(locks.holder(&key.id)?);
        }
        Ok(drivers)
    }
}

/// The locks of those who drive workflows of one mode.
#[derive(Debug)]
struct DriveLocks {
    /// The directory of the mode.
    directory: LockDirectory,
    /// A lock, from there.
    lock: FileOfEach,
}

impl DriveLocks {
    fn open(project: &Project<'_>, key: &WorkflowKey) -> Result<Self, EngineError> {
        let lock = project.layout.workflow(key.mode, &key.id).drive_lock();
        Ok(Self {
            directory: LockDirectory::open(&project.layout.mode_dir(key.mode))?,
            lock: FileOfEach::of_mode(&lock),
        })
    }

    fn holder(&mut self, id: &GoalId) -> Result<Option<String>, EngineError> {
        Ok(self.directory.holder(self.lock.of(id))?)
    }
}
