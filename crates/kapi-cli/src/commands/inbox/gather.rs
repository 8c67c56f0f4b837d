//! Gathers what waits for a person: goals, workflows, launches, lessons, a queue from elsewhere.
//!
//! Reads only. Oldest first; what nobody dated comes last.

use kapi_workflow::record::workflows::Workflows;

use crate::commands::inbox::item::WaitingItem;
use crate::commands::inbox::{goals, kernel, launches, workflows};
use crate::context::Context;
use crate::error::{Error, optional};

/// Returns what waits, oldest first.
pub(super) fn gather(context: &Context) -> Result<Vec<WaitingItem>, Error> {
    let mut items = Vec::new();
    if let Some(root) = optional(context.project_root())? {
        let project = context.project(&root, "kapi inbox");
        let standings = Workflows::of(&project).standings();
        let standings = standings.map_err(|error| Error::engine(&error, ""))?;
        for (subject, findings) in project.damage() {
            items.push(goals::audited(&subject, &findings));
        }
        items.extend(goals::waiting(&project, &standings.goals)?);
        items.extend(workflows::waiting(&project, &standings.workflows)?);
    }
    items.extend(kernel::waiting(context)?);
    items.extend(launches::waiting(context)?);
    items.sort_by_key(|item| item.view.since_ms.unwrap_or(i64::MAX));
    Ok(items)
}
