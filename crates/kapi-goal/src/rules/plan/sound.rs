//! What holds for the tasks of every plan, checked before there is one.
//!
//! Knows nothing of how the tasks came to be these.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::plan::denied::PlanDenied;
use crate::rules::plan::draft::PlanDraft;
use crate::rules::plan::graph::{circle, derive_blocks, nodes, unknown_dependency};
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskStatus};
use crate::rules::plan::{PLAN_BYTES_MAX, TASKS_MAX};

/// Checks the tasks of a first plan one by one.
pub(crate) fn check_incoming(tasks: &[GoalPlanTask]) -> Result<(), PlanDenied> {
    if tasks.is_empty() {
        return Err(PlanDenied::NoTasks);
    }
    let mut seen = BTreeSet::new();
    for task in tasks {
        let id = || task.id.clone();
        if !seen.insert(&task.id) {
            return Err(PlanDenied::DuplicateId { task: id() });
        }
        if task.status == TaskStatus::Done {
            return Err(PlanDenied::DoneAlready { task: id() });
        }
        if let Some(fault) = task.fault() {
            return Err(PlanDenied::BadTask { task: id(), fault });
        }
    }
    Ok(())
}

/// Returns the tasks of a draft as a plan may hold them, with `blocks` derived.
pub(crate) fn sound(draft: PlanDraft) -> Result<Vec<GoalPlanTask>, PlanDenied> {
    let PlanDraft { mut tasks, written } = draft;
    if tasks.is_empty() {
        return Err(PlanDenied::NoTasks);
    }
    if tasks.len() > TASKS_MAX {
        return Err(PlanDenied::TooManyTasks { tasks: tasks.len() });
    }
    let unsettled = tasks
        .iter()
        .find_map(|task| Some((&task.id, task.blocks.first()?)));
    if let Some((task, dependency)) = unsettled.or_else(|| unknown_dependency(&nodes(&tasks))) {
        return Err(PlanDenied::UnknownDependency {
            task: task.clone(),
            dependency: dependency.clone(),
            operation: written.get(task).copied(),
        });
    }
    if let Some(path) = circle(&nodes(&tasks)) {
        let operation = last_written(&path, &written);
        return Err(PlanDenied::Cycle { path, operation });
    }
    derive_blocks(&mut tasks);
    check_size(&tasks)?;
    Ok(tasks)
}

fn last_written(ids: &[PlanTaskId], written: &BTreeMap<PlanTaskId, usize>) -> Option<usize> {
    ids.iter().filter_map(|id| written.get(id)).copied().max()
}

/// Refuses more text than a plan may hold.
pub(crate) fn check_size(tasks: &[GoalPlanTask]) -> Result<(), PlanDenied> {
    let bytes = tasks.iter().map(GoalPlanTask::text_bytes).sum();
    if bytes > PLAN_BYTES_MAX {
        return Err(PlanDenied::TooLarge { bytes });
    }
    Ok(())
}
