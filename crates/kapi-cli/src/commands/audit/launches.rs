//! Auditing launches: the log of each sandbox, the file that follows from it, and the files of its runs.
//!
//! Only a person's: an agent sees no sandbox from outside.

use kapi_launch::log;
use kapi_launch::paths::SandboxPaths;

use super::AuditRow;
use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::{here, is_of_task};

/// Returns the launches of the project at hand.
pub(super) fn all(context: &Context) -> Result<Vec<SandboxPaths>, Error> {
    if context.require_human("audit launches").is_err() {
        return Ok(Vec::new());
    }
    let mut found = here(context)?;
    // What an attempt at a task did stands in the log of tasks.
    found.retain(|location| !is_of_task(location.id().as_str()));
    Ok(found)
}

/// Audits launches. One that an earlier Kapi launched has no log.
pub(super) fn rows(launches: &[SandboxPaths]) -> Result<Vec<AuditRow>, Error> {
    let mut rows = Vec::new();
    for location in launches {
        let audit = log::at(location)
            .audit()
            .map_err(|error| Error::launch(&error))?;
        let name = format!("launch/{}", location.id().as_str());
        rows.extend(audit.map(|audit| super::row(name, &audit)));
    }
    Ok(rows)
}
