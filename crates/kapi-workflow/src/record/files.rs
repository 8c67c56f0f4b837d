//! The artifacts of a workflow on disk: written when they change, and only then.
//!
//! Knows what stands in them no more than the disk does. An artifact that waits for an approval is
//! left as it is found, so that an approval can tell that somebody edited it.

use std::collections::BTreeMap;

use kapi_store::hash::sha256_hex;
use kapi_store::layout::WorkflowLayout;
use kapi_sys::disk::{Disk, DiskError, replace_derived, replace_durably};

use crate::rules::documents::documents;
use crate::rules::pending::WaitingDecision;
use crate::rules::state::Workflow;

/// What a process knows to stand in a workflow's artifacts.
#[derive(Debug, Default)]
pub(crate) struct WrittenArtifacts(BTreeMap<String, String>);

impl WrittenArtifacts {
    /// Forgets everything, because somebody else may have written.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Writes every artifact that is not what it should be. Each of `kept` is left alone if it is
    /// there.
    pub(crate) fn update(
        &mut self,
        disk: &dyn Disk,
        layout: &WorkflowLayout,
        workflow: &Workflow,
        kept: &[&str],
    ) -> Result<(), DiskError> {
        let pending = workflow.pending.as_ref();
        let pending = pending.map_or(&[][..], |pending| pending.decision.artifacts());
        for document in documents(workflow) {
            if self.0.get(&document.name) == Some(&document.text) {
                continue;
            }
            let file = layout.document(&document.name);
            let name = document.name.as_str();
            let found = disk.read(&file, 0)?;
            let is_kept = kept.contains(&name) && found.is_some();
            let bytes = document.text.as_bytes();
            match found {
                Some(found) if found == bytes || is_kept => {}
                // What is approved by its hash must not be older after a power cut than the fold.
                Some(_) | None if pending.contains(&name) => replace_durably(disk, &file, bytes)?,
                Some(_) | None => replace_derived(disk, &file, bytes)?,
            }
            self.0.insert(document.name, document.text);
        }
        Ok(())
    }
}

/// Returns the hash of what waits, as its files stand on the disk.
pub(crate) fn subject(
    disk: &dyn Disk,
    layout: &WorkflowLayout,
    pending: &WaitingDecision,
) -> Result<String, DiskError> {
    let mut files = BTreeMap::new();
    for name in pending.decision.artifacts() {
        files.insert(*name, disk.read(&layout.document(name), 0)?);
    }
    let file = |name: &str| files.get(name).cloned().flatten();
    Ok(pending.decision.subject(&file, sha256_hex))
}
