//! Workflows whose worktree and working files may go, and why those of others stay.
//!
//! Whether the branch is merged and the worktree clean is looked at where they are removed.

use std::collections::BTreeSet;
use std::path::Path;

use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_launch::clean::goals::{FileAttribution, GoalFiles};
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::state::Workflow;

use super::used_ms;
use crate::context::Context;
use crate::error::Error;

/// Returns the workflows of a project that have files.
pub(super) fn files(
    context: &Context,
    root: &Path,
    used_before_ms: Option<i64>,
) -> Result<Vec<GoalFiles>, Error> {
    if !root.join(".ilchul").join("workflows").is_dir() {
        return Ok(Vec::new());
    }
    let project = context.project(root, "kapi cleanup");
    let listed = Workflows::of(&project).workflows();
    let listed = listed.map_err(|error| Error::engine(&error, ""))?;
    let mut found = Vec::new();
    for key in listed.into_iter().map(|listed| listed.key) {
        let location = context.location(&project, &key.id)?;
        if !location.worktree.exists() && !location.scratch.exists() {
            continue;
        }
        // What a damaged workflow made nobody can tell; `kapi audit` says what is wrong with it.
        let Ok(workflow) = Workflows::of(&project).workflow(&key) else {
            continue;
        };
        let Some((base, known, branch)) = commits(&workflow) else {
            continue;
        };
        let log = project.layout.workflow(key.mode, &key.id).events();
        let stays = if !workflow.status.is_terminal() {
            Some("its workflow has not ended".to_owned())
        } else if used_before_ms.is_some_and(|before| used_ms(&log) >= before) {
            Some("it was used recently".to_owned())
        } else {
            None
        };
        found.push(GoalFiles {
            whose: FileAttribution::Workflow { branch },
            name: key.id.to_string(),
            location,
            known,
            base,
            stays,
        });
    }
    Ok(found)
}

/// Returns the workflows that have ended; one that is damaged may go on.
pub(super) fn ended(project: &Project<'_>) -> Result<BTreeSet<GoalId>, Error> {
    let listed = Workflows::of(project).workflows();
    let listed = listed.map_err(|error| Error::engine(&error, ""))?;
    let ended = listed.into_iter().filter_map(|listed| match listed.state {
        WorkflowSummary::Known(entry) if entry.status.is_terminal() => Some(listed.key.id),
        WorkflowSummary::Known(_) | WorkflowSummary::Damaged(_) => None,
    });
    Ok(ended.collect())
}

/// Returns where a workflow began, its last commit and its branch; `None` where there is no
/// repository, and so no worktree.
fn commits(workflow: &Workflow) -> Option<(String, String, Option<String>)> {
    let mode = workflow.body.rules();
    let base = mode.base()?.to_owned();
    let Some(branch) = mode.branch() else {
        return Some((base.clone(), base, None));
    };
    Some((base, branch.head.clone(), Some(branch.name.clone())))
}
