//! The task list in short, as `/until-done tasks` prints it.
//!
//! Which tasks there are, where they stand and what they wait for; everything else is in
//! `tasks.yaml`.

use crate::rules::plan::task::PlanTaskId;
use crate::rules::plan::yaml::{flow, scalar};
use crate::rules::plan::{Plan, TaskCounts};

/// Returns a plan's tasks as YAML, a few lines a task.
#[must_use]
pub fn task_list(plan: &Plan) -> String {
    let TaskCounts {
        total,
        done,
        in_progress,
        blocked,
        pending,
        skipped,
    } = plan.counts();
    let current = plan.current().map(|task| scalar(task.id.as_str()));
    let mut lines = vec![
        format!("currentTaskId: {}", current.as_deref().unwrap_or("null")),
        format!(
            "counts: {{ total: {total}, done: {done}, in_progress: {in_progress}, blocked: \
             {blocked}, pending: {pending}, skipped: {skipped} }}"
        ),
        "tasks:".to_owned(),
    ];
    for task in plan.tasks() {
        lines.push(format!("  - id: {}", scalar(task.id.as_str())));
        lines.push(format!("    title: {}", scalar(&task.title)));
        lines.push(format!("    phase: {}", task.phase));
        lines.push(format!("    status: {}", task.status));
        let deps = flow(task.dependencies.iter().map(PlanTaskId::as_str));
        lines.push(format!("    deps: {deps}"));
    }
    lines.join("\n") + "\n"
}
