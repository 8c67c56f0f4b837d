//! Tasks as a graph: who waits for whom.
//!
//! Looks at ids and dependencies only; what a task says and where it stands is not its business,
//! so that every kind of plan can ask.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::plan::task::{GoalPlanTask, PlanTaskId};

/// One task as the graph sees it.
#[derive(Debug, Clone, Copy)]
pub struct GraphNode<'a> {
    /// Its name.
    pub id: &'a PlanTaskId,
    /// What it waits for.
    pub after: &'a [PlanTaskId],
}

/// Returns the tasks of an agent's plan as a graph.
pub(crate) fn nodes(tasks: &[GoalPlanTask]) -> Vec<GraphNode<'_>> {
    let nodes = tasks.iter().map(|task| GraphNode {
        id: &task.id,
        after: &task.dependencies,
    });
    nodes.collect()
}

/// Returns the first task that depends on one that is not there, and that one.
pub fn unknown_dependency<'a>(nodes: &[GraphNode<'a>]) -> Option<(&'a PlanTaskId, &'a PlanTaskId)> {
    let known: BTreeSet<&PlanTaskId> = nodes.iter().map(|node| node.id).collect();
    nodes.iter().find_map(|node| {
        let unknown = node.after.iter().find(|id| !known.contains(id))?;
        Some((node.id, unknown))
    })
}

/// Returns tasks that wait for each other in a circle, each depending on the next.
pub fn circle(nodes: &[GraphNode<'_>]) -> Option<Vec<PlanTaskId>> {
    let waiting = never_free(nodes);
    // Every task that is never free depends on another such task, so the walk comes round.
    let mut id = nodes
        .iter()
        .map(|node| node.id)
        .find(|id| waiting.contains_key(id))?;
    let mut walked: Vec<&PlanTaskId> = Vec::new();
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
fn never_free<'a>(nodes: &[GraphNode<'a>]) -> BTreeMap<&'a PlanTaskId, &'a [PlanTaskId]> {
    let dependents = dependents(nodes);
    let mut n_open: BTreeMap<&PlanTaskId, usize> = nodes
        .iter()
        .map(|node| (node.id, node.after.len()))
        .collect();
    let is_free = |node: &&GraphNode<'_>| node.after.is_empty();
    let mut free: Vec<&PlanTaskId> = nodes.iter().filter(is_free).map(|node| node.id).collect();
    let mut waiting: BTreeMap<&PlanTaskId, &[PlanTaskId]> =
        nodes.iter().map(|node| (node.id, node.after)).collect();
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
fn dependents<'a>(nodes: &[GraphNode<'a>]) -> BTreeMap<&'a PlanTaskId, Vec<&'a PlanTaskId>> {
    let mut dependents: BTreeMap<&PlanTaskId, Vec<&PlanTaskId>> = BTreeMap::new();
    for node in nodes {
        for dependency in node.after {
            dependents.entry(dependency).or_default().push(node.id);
        }
    }
    dependents
}

/// Writes into every task what it blocks.
pub(crate) fn derive_blocks(tasks: &mut [GoalPlanTask]) {
    let dependents: BTreeMap<PlanTaskId, Vec<PlanTaskId>> = dependents(&nodes(tasks))
        .into_iter()
        .map(|(id, waiting)| (id.clone(), waiting.into_iter().cloned().collect()))
        .collect();
    for task in tasks {
        task.blocks = dependents.get(&task.id).cloned().unwrap_or_default();
    }
}
