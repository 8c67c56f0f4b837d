//! The artifacts of a workflow on disk: written when they change, and only then.
//!
//! Knows what stands in them no more than the disk does. An artifact that waits for an approval is
//! left as it is found, so that an approval can tell that somebody edited it.

use std::collections::BTreeMap;

use kapi_core::workflow::documents::documents;
use kapi_core::workflow::state::Workflow;
use kapi_store::layout::WorkflowLayout;
use kapi_sys::disk::{Disk, DiskError, replace_derived, replace_durably};

/// What a process knows to stand in a workflow's artifacts.
#[derive(Debug, Default)]
pub(crate) struct Written(BTreeMap<String, String>);

impl Written {
    /// Forgets everything, because somebody else may have written.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Writes every artifact that is not what it should be. `kept` is left alone if it is there.
    pub(crate) fn update(
        &mut self,
        disk: &dyn Disk,
        layout: &WorkflowLayout,
        workflow: &Workflow,
        kept: Option<&str>,
    ) -> Result<(), DiskError> {
        let pending = workflow
            .pending
            .as_ref()
            .map(|pending| pending.decision.artifact());
        for document in documents(workflow) {
            if self.0.get(&document.name) == Some(&document.text) {
                continue;
            }
            let file = layout.document(&document.name);
            let name = Some(document.name.as_str());
            let found = disk.read(&file, 0)?;
            let is_kept = name == kept && found.is_some();
            let bytes = document.text.as_bytes();
            match found {
                Some(found) if found == bytes || is_kept => {}
                // What is approved by its hash must not be older after a power cut than the fold.
                Some(_) | None if name == pending => replace_durably(disk, &file, bytes)?,
                Some(_) | None => replace_derived(disk, &file, bytes)?,
            }
            self.0.insert(document.name, document.text);
        }
        Ok(())
    }
}
