//! Which tasks may begin now, which lands next, and what is left: the whole schedule, purely.
//!
//! Parallel only where the plan allows it: what a task waits for has landed, isolation is its own,
//! touched paths do not meet, and there is a place. Knows no goal and no branch.

use kapi_goal::rules::plan::task::PlanTaskId;

use crate::rules::modes::ralph::plan::{Isolation, PlanTask};
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};

/// Returns the tasks under way in the order of the plan, those that mend after them.
#[must_use]
pub fn in_order(ralph: &Ralph) -> Vec<&TaskState> {
    let planned = ralph.plan.iter().flat_map(|plan| &plan.tasks);
    let of_plan = planned.filter_map(|task| ralph.tasks.get(&task.id));
    let is_planned = |id: &PlanTaskId| {
        let mut tasks = ralph.plan.iter().flat_map(|plan| &plan.tasks);
        tasks.any(|task| task.id == *id)
    };
    let fixes = ralph.tasks.values();
    let fixes = fixes.filter(|state| !is_planned(&state.task.id));
    of_plan.chain(fixes).collect()
}

/// Returns the tasks that may begin now beside those that are at work, at most so many at once.
///
/// A task that is proved and has not landed keeps its paths: whoever began on them now would begin
/// without it.
#[must_use]
pub fn may_begin(ralph: &Ralph, jobs: u32) -> Vec<PlanTaskId> {
    let tasks = in_order(ralph);
    let mut taken: Vec<&PlanTask> = tasks
        .iter()
        .filter(|state| state.is_working || matches!(state.stand, Stand::Proved { .. }))
        .map(|state| &state.task)
        .collect();
    let mut n_working = tasks.iter().filter(|state| state.is_working).count();
    let n_max = usize::try_from(jobs.max(1)).unwrap_or(usize::MAX);
    let mut begin = Vec::new();
    for state in tasks {
        if n_working >= n_max {
            break;
        }
        let waits = matches!(state.stand, Stand::Waiting) && !state.is_working;
        if !waits || !has_landed(ralph, &state.task.depends_on) {
            continue;
        }
        if taken.iter().any(|other| collide(other, &state.task)) {
            continue;
        }
        taken.push(&state.task);
        n_working += 1;
        begin.push(state.task.id.clone());
    }
    begin
}

/// Returns the proved tasks in the order in which they land.
///
/// Whatever a task waits for landed before it began, so the order of the plan is one of dependency.
pub fn proved(ralph: &Ralph) -> impl Iterator<Item = &TaskState> {
    let is_proved = |state: &&TaskState| matches!(state.stand, Stand::Proved { .. });
    in_order(ralph).into_iter().filter(is_proved)
}

/// Returns the tasks that have not landed.
#[must_use]
pub fn left(ralph: &Ralph) -> Vec<&TaskState> {
    in_order(ralph)
        .into_iter()
        .filter(|state| !matches!(state.stand, Stand::Landed { .. }))
        .collect()
}

fn has_landed(ralph: &Ralph, ids: &[PlanTaskId]) -> bool {
    ids.iter().all(|id| {
        let found = ralph.tasks.get(id);
        found.is_some_and(|state| matches!(state.stand, Stand::Landed { .. }))
    })
}

/// Tells whether two tasks must not be at work at once.
#[must_use]
pub fn collide(one: &PlanTask, other: &PlanTask) -> bool {
    if runs_alone(one) || runs_alone(other) {
        return true;
    }
    let meets = |path: &String| other.touches.iter().any(|theirs| overlap(path, theirs));
    one.touches.iter().any(meets)
}

/// Tells whether nothing else may be at work while a task is: it says so, or names no paths.
#[must_use]
pub fn runs_alone(task: &PlanTask) -> bool {
    match task.isolation {
        Isolation::Alone => true,
        Isolation::Own => task.touches.is_empty(),
    }
}

/// Tells whether two path patterns could match one path, judged by what stands before the first
/// wildcard: rather too often than once too rarely.
#[must_use]
pub fn overlap(one: &str, other: &str) -> bool {
    let (one, one_is_glob) = literal(one);
    let (other, other_is_glob) = literal(other);
    within(one, one_is_glob, other) || within(other, other_is_glob, one)
}

/// Tells whether a path, or the beginning of one, lies where another pattern leads.
fn within(outer: &str, is_glob: bool, inner: &str) -> bool {
    match inner.strip_prefix(outer) {
        None => false,
        Some(rest) => is_glob || rest.is_empty() || rest.starts_with('/') || outer.is_empty(),
    }
}

/// Returns what stands before the first wildcard, and whether there is one.
fn literal(pattern: &str) -> (&str, bool) {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let pattern = if pattern == "." { "" } else { pattern };
    match pattern.find(['*', '?', '[', '{']) {
        Some(at) => (pattern.get(..at).unwrap_or_default(), true),
        None => (pattern, false),
    }
}

#[cfg(test)]
mod tests;
