//! What landings changed: beside what the plan said they would, and since somebody's checks passed.
//!
//! A plan's paths decide who may work at once; what a commit really changed is seen by Kapi when it
//! lands. Knows paths and patterns only.

use kapi_core::glob::covers;

use crate::rules::changed::LandedPaths;
use crate::rules::modes::ralph::plan::PlanTask;
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};

/// Returns the paths that a task changed and that its plan does not name; none for a task that names
/// no paths and runs alone.
#[must_use]
pub fn outside<'a>(task: &PlanTask, changed: &'a LandedPaths) -> Vec<&'a str> {
    changed.outside(&task.touches)
}

/// Returns the other tasks under way that the plan gives one of these paths to: those at work or
/// proved, which were begun without them.
#[must_use]
pub fn overlapped<'a>(ralph: &'a Ralph, task: &PlanTask, paths: &[&str]) -> Vec<&'a TaskState> {
    let is_under_way = |state: &&TaskState| {
        state.task.id != task.id
            && (state.is_working || matches!(state.stand, Stand::Proved { .. }))
    };
    let is_theirs = |state: &&TaskState| {
        let mut globs = state.task.touches.iter();
        globs.any(|glob| paths.iter().any(|path| covers(glob, path)))
    };
    let under_way = ralph.tasks.values().filter(is_under_way);
    under_way.filter(is_theirs).collect()
}

/// Tells whether something that landed since a task's checks last passed changed a path that the task
/// changed, too; where nobody looked at what was changed, it may have.
#[must_use]
pub fn is_stale(ralph: &Ralph, state: &TaskState) -> bool {
    let since = ralph.changes.get(state.verified_with..).unwrap_or_default();
    let own = ralph.landed.iter().rposition(|id| *id == state.task.id);
    let own = own.and_then(|at| ralph.changes.get(at)).cloned().flatten();
    let Some(own) = own else {
        return !since.is_empty();
    };
    since
        .iter()
        .any(|landed| landed.as_ref().is_none_or(|landed| landed.meets(&own)))
}

#[cfg(test)]
mod tests;
