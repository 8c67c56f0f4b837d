//! Tests of planning, through the public functions and the shapes agents write.
//!
//! A plan is written in one line: `A! B*<A C<A,B` is three tasks of which A is done, B is in
//! progress and waits for A, and C waits for both. `?` is blocked, `~` skipped.

use crate::rules::plan::Plan;
use crate::rules::plan::denied::PlanDenied;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase, TaskStatus};

mod distilled;
mod make;
mod replan;
mod structure;
mod tasks_file;
mod update;
mod wire;

/// When every replan of a test happens.
pub(crate) const AT_MS: i64 = 1_700_000_000_000;

pub(crate) fn id(text: &str) -> PlanTaskId {
    PlanTaskId::parse(text).unwrap()
}

pub(crate) fn task(name: &str, dependencies: &[&str]) -> GoalPlanTask {
    GoalPlanTask {
        id: id(name),
        title: format!("Title of {name}"),
        phase: TaskPhase::Green,
        status: TaskStatus::Pending,
        dependencies: dependencies.iter().map(|name| id(name)).collect(),
        blocks: Vec::new(),
        prerequisites: Vec::new(),
        validation_steps: Vec::new(),
        ci_commands: Vec::new(),
        styleguide_rules: Vec::new(),
        guardrails: Vec::new(),
        learnings: Vec::new(),
        gotchas: Vec::new(),
        context: Vec::new(),
        notes: None,
    }
}

const SIGNS: [(char, TaskStatus); 4] = [
    ('!', TaskStatus::Done),
    ('*', TaskStatus::InProgress),
    ('?', TaskStatus::Blocked),
    ('~', TaskStatus::Skipped),
];

/// Reads tasks in the notation above.
fn tasks(text: &str) -> Vec<GoalPlanTask> {
    let read = |word: &str| {
        let (name, dependencies) = word.split_once('<').unwrap_or((word, ""));
        let sign = SIGNS.iter().find(|(sign, _)| name.ends_with(*sign));
        let name = sign.map_or(name, |(sign, _)| name.trim_end_matches(*sign));
        let dependencies: Vec<&str> = dependencies.split(',').filter(|d| !d.is_empty()).collect();
        let mut task = task(name, &dependencies);
        task.status = sign.map_or(TaskStatus::Pending, |(_, status)| *status);
        task
    };
    text.split_whitespace().map(read).collect()
}

/// Makes a plan the way an agent does: all pending, then each is updated.
pub(crate) fn plan(text: &str) -> Plan {
    let wanted = tasks(text);
    let mut pending = wanted.clone();
    for task in &mut pending {
        task.status = TaskStatus::Pending;
    }
    let mut plan = Plan::make(None, &pending).unwrap();
    for task in wanted
        .iter()
        .filter(|task| task.status != TaskStatus::Pending)
    {
        plan = plan.update(&task.id, &status(task.status)).unwrap();
    }
    plan
}

/// Writes a plan in the notation above.
fn shape(plan: &Plan) -> String {
    let write = |task: &GoalPlanTask| {
        let sign = SIGNS.iter().find(|(_, status)| *status == task.status);
        let sign = sign.map_or(String::new(), |(sign, _)| sign.to_string());
        let names: Vec<&str> = task.dependencies.iter().map(PlanTaskId::as_str).collect();
        let lead = if names.is_empty() { "" } else { "<" };
        format!("{}{sign}{lead}{}", task.id, names.join(","))
    };
    let words: Vec<String> = plan.tasks().iter().map(write).collect();
    words.join(" ")
}

fn status(status: TaskStatus) -> TaskPatch {
    TaskPatch {
        status: Some(status),
        ..TaskPatch::default()
    }
}

fn current(plan: &Plan) -> Option<&str> {
    plan.current().map(|task| task.id.as_str())
}

fn operations(json: &str) -> Vec<Operation> {
    serde_json::from_str(json).unwrap()
}

/// Reads a task that comes in with an operation: `N<A` as JSON.
fn json(text: &str) -> String {
    let tasks = tasks(text);
    let texts: Vec<String> = tasks
        .iter()
        .map(|t| serde_json::to_string(t).unwrap())
        .collect();
    texts.join(",")
}

fn replanned(plan: &Plan, json: &str) -> Result<Plan, PlanDenied> {
    plan.replan(&operations(json), "found out more", AT_MS)
}

/// What is told when it is refused: the code, then the message.
fn refusal(result: Result<Plan, PlanDenied>) -> String {
    match result {
        Ok(plan) => format!("accepted: {}", shape(&plan)),
        Err(denied) => {
            assert!(denied.hint().ends_with('.'), "{}", denied.hint());
            format!("{}: {denied}", denied.code())
        }
    }
}
