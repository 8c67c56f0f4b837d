//! Brings a workflow's entry in the inventory up to date.
//!
//! The inventory itself is made from the streams; see `index.rs`.

use std::sync::Arc;

use kapi_goal::record::error::EngineError;
use kapi_goal::record::inventory::Inventory;
use kapi_goal::record::project::Project;

use super::index::{entry, is_as_new, since};
use crate::record::index::read_or_rebuild;
use crate::rules::state::Workflow;

/// Brings a workflow's entry up to date, if it is not.
pub(super) fn note(
    project: &Project<'_>,
    workflow: &Workflow,
    log_bytes: u64,
) -> Result<(), EngineError> {
    let entry = entry(project, workflow, log_bytes);
    let is_noted = || -> Result<bool, EngineError> {
        let inventory = Inventory::read(project.disk, &project.layout)?;
        let known = inventory
            .as_ref()
            .and_then(|inventory| inventory.find_workflow(&workflow.id));
        Ok(known.is_some_and(|known| is_as_new(known, &entry)))
    };
    if is_noted()? {
        return Ok(());
    }
    let held = project.lock()?;
    // Somebody else may have noted it, or more, meanwhile.
    if is_noted()? {
        return Ok(());
    }
    let mut inventory = read_or_rebuild(project)?;
    let known = inventory.find_workflow(&workflow.id);
    let entry = since(known.map(Arc::as_ref), entry);
    inventory.put_workflow(entry);
    Ok(inventory.write(project.disk, &project.layout, &held)?)
}
