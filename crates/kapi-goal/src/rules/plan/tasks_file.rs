//! `tasks.yaml`: where a goal and its tasks stand, for people to read while it runs.
//!
//! Written from the state and never read back. Its keys and their order are the specification's.

use serde::Serialize;

use crate::rules::plan::task::{
    ContextReference, GoalPlanTask, PlanTaskId, Prerequisite, TaskPhase,
};
use crate::rules::plan::yaml::{flow, flow_of_prose, quoted, scalar, text};

/// What stands in `tasks.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TasksFile<'a> {
    /// When it was written, as RFC 3339 in UTC.
    pub generated: &'a str,
    /// The goal's id.
    pub goal_id: &'a str,
    /// What the person wants.
    pub goal: &'a str,
    /// What must hold for it to be done.
    pub done_criteria: &'a str,
    /// What must exit 0; nothing when the goal has no check.
    pub verify_command: Option<&'a str>,
    /// The phase the goal is in.
    pub phase: TaskPhase,
    /// What the agent must ask for first.
    pub ask_before: &'a [String],
    /// How the agent decides, if the contract says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_style: Option<&'a str>,
    /// The turns.
    pub budget: TurnBudget,
    /// The task at hand.
    pub current_task_id: Option<&'a PlanTaskId>,
    /// The tasks in their order.
    pub tasks: &'a [GoalPlanTask],
}

/// How many turns were used of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TurnBudget {
    /// Used.
    pub used: u32,
    /// The most there may be.
    pub max: u32,
}

impl TasksFile<'_> {
    /// Returns the file's text.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut lines = vec![
            format!("generated: {}", time(self.generated)),
            format!("goalId: {}", scalar(self.goal_id)),
            format!("goal: {}", text(self.goal, 2)),
            format!("doneCriteria: {}", text(self.done_criteria, 2)),
            format!("verifyCommand: {}", optional(self.verify_command)),
            format!("phase: {}", self.phase),
            format!("askBefore: {}", names(self.ask_before)),
        ];
        if let Some(style) = self.decision_style {
            lines.push(format!("decisionStyle: {}", text(style, 2)));
        }
        let TurnBudget { used, max } = self.budget;
        lines.push(format!("budget: {{ used: {used}, max: {max} }}"));
        let current = self.current_task_id.map(PlanTaskId::as_str);
        lines.push(format!("currentTaskId: {}", optional(current)));
        if self.tasks.is_empty() {
            lines.push("tasks: []".to_owned());
        } else {
            lines.push("tasks:".to_owned());
        }
        for task in self.tasks {
            push_task(task, &mut lines);
        }
        lines.join("\n") + "\n"
    }
}

fn push_task(task: &GoalPlanTask, lines: &mut Vec<String>) {
    lines.push(format!("  - id: {}", scalar(task.id.as_str())));
    let mut field = |key: &str, value: String| lines.push(format!("    {key}: {value}"));
    field("title", text(&task.title, 6));
    field("phase", task.phase.to_string());
    field("status", task.status.to_string());
    field("dependencies", ids(&task.dependencies));
    field("blocks", ids(&task.blocks));
    push_list("prerequisites", &task.prerequisites, prerequisite, lines);
    push_commands("validationSteps", &task.validation_steps, lines);
    push_commands("ciCommands", &task.ci_commands, lines);
    push_prose("styleguideRules", &task.styleguide_rules, lines);
    push_prose("guardrails", &task.guardrails, lines);
    push_prose("learnings", &task.learnings, lines);
    push_prose("gotchas", &task.gotchas, lines);
    push_list("context", &task.context, reference, lines);
    if let Some(notes) = &task.notes {
        lines.push(format!("    notes: {}", text(notes, 6)));
    }
}

/// One command stands beside its key, several stand below it.
fn push_commands(key: &str, commands: &[String], lines: &mut Vec<String>) {
    if commands.len() < 2 {
        lines.push(format!("    {key}: {}", names(commands)));
        return;
    }
    push_list(key, commands, |command| vec![scalar(command)], lines);
}

/// One sentence stands beside its key, several stand below it.
fn push_prose(key: &str, sentences: &[String], lines: &mut Vec<String>) {
    if sentences.len() < 2 {
        lines.push(format!("    {key}: {}", flow_of_prose(sentences)));
        return;
    }
    push_list(key, sentences, |line| vec![quoted(line)], lines);
}

/// Pushes a list of entries, each of one or more lines.
fn push_list<T>(key: &str, items: &[T], entry: fn(&T) -> Vec<String>, lines: &mut Vec<String>) {
    if items.is_empty() {
        lines.push(format!("    {key}: []"));
        return;
    }
    lines.push(format!("    {key}:"));
    for item in items {
        for (location, line) in entry(item).iter().enumerate() {
            let lead = if location == 0 { "- " } else { "  " };
            lines.push(format!("      {lead}{line}"));
        }
    }
}

fn prerequisite(prerequisite: &Prerequisite) -> Vec<String> {
    vec![
        format!("description: {}", scalar(&prerequisite.description)),
        format!("cleared: {}", prerequisite.cleared),
    ]
}

fn reference(reference: &ContextReference) -> Vec<String> {
    let locations = [("path", &reference.path), ("url", &reference.url)];
    let mut lines: Vec<String> = locations
        .into_iter()
        .filter_map(|(key, at)| Some(format!("{key}: {}", scalar(at.as_ref()?))))
        .collect();
    lines.push(format!("why: {}", scalar(&reference.why)));
    lines
}

/// A time reads as what it is without quotes, although it begins with a digit.
fn time(text: &str) -> String {
    let is_of_a_time = |byte: u8| byte.is_ascii_digit() || b"TZ:.+-".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_of_a_time) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

fn optional(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), scalar)
}

fn names(items: &[String]) -> String {
    flow(items.iter().map(String::as_str))
}

fn ids(ids: &[PlanTaskId]) -> String {
    flow(ids.iter().map(PlanTaskId::as_str))
}
