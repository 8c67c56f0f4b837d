//! The table of subcommands, as help shows it and completion offers it.
//!
//! Says what each is for; how a line is read is in `slash`.

use crate::rules::slash::COMMAND;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subcommand {
    /// The word it starts with; nothing for an intent.
    pub name: Option<&'static str>,
    /// What is typed behind the command.
    pub usage: &'static str,
    /// What it does.
    pub purpose: &'static str,
}

/// Every subcommand, in the order of the table.
pub const SUBCOMMANDS: &[Subcommand] = &[
    row(None, "<intent>", "Set up a new goal"),
    row(Some("approve"), "approve", "Approve the contract"),
    row(
        Some("status"),
        "status",
        "Show the goal's status in one line",
    ),
    row(Some("detail"), "detail", "Show the whole contract"),
    row(Some("tasks"), "tasks", "Show the task list as YAML"),
    row(Some("plan"), "plan", "Show the path of tasks.yaml"),
    row(Some("northstar"), "northstar", "Show the approved contract"),
    row(
        Some("replan-log"),
        "replan-log",
        "Show every change of plan with its reason",
    ),
    row(Some("pause"), "pause", "Pause the goal"),
    row(Some("resume"), "resume", "Resume the goal"),
    row(Some("cancel"), "cancel", "Cancel the goal"),
    row(
        Some("budget"),
        "budget <n>",
        "Set the number of turns (1 to 20000; above 500 asks first)",
    ),
    row(
        Some("ask"),
        "ask <question>",
        "Ask a question without disturbing the goal",
    ),
    row(
        Some("autopilot"),
        "autopilot",
        "Turn automatic approval of new goals on or off",
    ),
    row(Some("judge"), "judge", "Show the default judge"),
    row(
        None,
        "judge <provider>/<modelId>",
        "Use another model as the default judge (recommended)",
    ),
    row(
        None,
        "judge same",
        "Use the agent's own model as the default judge",
    ),
    row(None, "judge clear", "Unset the default judge"),
    row(Some("help"), "help", "Show this list"),
];

const fn row(name: Option<&'static str>, usage: &'static str, purpose: &'static str) -> Subcommand {
    Subcommand {
        name,
        usage,
        purpose,
    }
}

/// Returns the table as text, a subcommand a line.
#[must_use]
pub fn help() -> String {
    let width = SUBCOMMANDS.iter().map(|row| row.usage.len()).max();
    let width = width.unwrap_or_default();
    let lines: Vec<String> = SUBCOMMANDS
        .iter()
        .map(|row| format!("{COMMAND} {:width$}  {}\n", row.usage, row.purpose))
        .collect();
    lines.concat()
}
