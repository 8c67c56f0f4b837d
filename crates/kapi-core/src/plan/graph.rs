//! Tasks as a graph: who waits for whom.
//!
//! Looks at ids and dependencies only; what a task says and where it stands is not its business.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::task::{Task, TaskId};

/// Returns the first task that depends on one that is not there, and that one.
pub(crate) fn unknown_dependency(tasks: &[Task]) -> Option<(&TaskId, &TaskId)> {
    let known: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    tasks.iter().find_map(|task| {
        let unknown = task.dependencies.iter().find(|id| !known.contains(id))?;
        Some((&task.id, unknown))
    })
}

/// Returns tasks that wait for each other in a circle, each depending on the next.
pub(crate) fn circle(tasks: &[Task]) -> Option<Vec<TaskId>> {
    let waiting = never_free(tasks);
    // Every task that is never free depends on another such task, so the walk comes round.
    let mut id = tasks
        .iter()
        .map(|task| &task.id)
        .find(|id| waiting.contains_key(id))?;
    let mut walked: Vec<&TaskId> = Vec::new();
    loop {
        if let Some(start) = walked.iter().position(|before| *before == id) {
            return Some(walked.split_off(start).into_iter().cloned().collect());
        }
        walked.push(id);
        id = waiting
            .get(id)?
            .iter()
            .find(|next| waiting.contains_key(next))?;
    }
}

/// Returns the tasks, with their dependencies, that could not begin if all others had ended.
fn never_free(tasks: &[Task]) -> BTreeMap<&TaskId, &[TaskId]> {
    let dependents = dependents(tasks);
    let mut n_open: BTreeMap<&TaskId, usize> = tasks
        .iter()
        .map(|task| (&task.id, task.dependencies.len()))
        .collect();
    let is_free = |task: &&Task| task.dependencies.is_empty();
    let mut free: Vec<&TaskId> = tasks.iter().filter(is_free).map(|task| &task.id).collect();
    let mut waiting: BTreeMap<&TaskId, &[TaskId]> = tasks
        .iter()
        .map(|task| (&task.id, task.dependencies.as_slice()))
        .collect();
    while let Some(id) = free.pop() {
        waiting.remove(id);
        for dependent in dependents.get(id).into_iter().flatten() {
            let Some(left) = n_open.get_mut(dependent) else {
                continue;
            };
            *left = left.saturating_sub(1);
            free.extend((*left == 0).then_some(*dependent));
        }
    }
    waiting
}

/// Returns, for each task that is waited for, who waits, in the order of the list.
fn dependents(tasks: &[Task]) -> BTreeMap<&TaskId, Vec<&TaskId>> {
    let mut dependents: BTreeMap<&TaskId, Vec<&TaskId>> = BTreeMap::new();
    for task in tasks {
        for dependency in &task.dependencies {
            dependents.entry(dependency).or_default().push(&task.id);
        }
    }
    dependents
}

/// Writes into every task what it blocks.
pub(crate) fn derive_blocks(tasks: &mut [Task]) {
    let dependents: BTreeMap<TaskId, Vec<TaskId>> = dependents(tasks)
        .into_iter()
        .map(|(id, waiting)| (id.clone(), waiting.into_iter().cloned().collect()))
        .collect();
    for task in tasks {
        task.blocks = dependents.get(&task.id).cloned().unwrap_or_default();
    }
}
