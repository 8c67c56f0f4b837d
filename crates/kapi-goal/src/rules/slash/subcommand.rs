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
    row(None, "<intent>", "Start setup for a new goal"),
    row(
        Some("approve"),
        "approve",
        "Approve the contract that was shown",
    ),
    row(
        Some("status"),
        "status",
        "Show where the goal stands, in one line",
    ),
    row(Some("detail"), "detail", "Show the whole contract"),
    row(Some("tasks"), "tasks", "Show the task list as YAML"),
    row(Some("plan"), "plan", "Show where tasks.yaml is"),
    row(
        Some("northstar"),
        "northstar",
        "Show the locked contract of the goal",
    ),
    row(
        Some("replan-log"),
        "replan-log",
        "Show every replan and its reason",
    ),
    row(Some("pause"), "pause", "Stop the loop and keep the goal"),
    row(Some("resume"), "resume", "Let the loop go on"),
    row(Some("cancel"), "cancel", "End the goal"),
    row(
        Some("budget"),
        "budget <n>",
        "Change the turn budget (1 to 20000; above 500 asks first)",
    ),
    row(
        Some("ask"),
        "ask <question>",
        "Ask a side question without touching the loop",
    ),
    row(
        Some("autopilot"),
        "autopilot",
        "Skip the approval dialog of later goals, or stop skipping it",
    ),
    row(Some("judge"), "judge", "Show who judges by default"),
    row(
        None,
        "judge <provider>/<modelId>",
        "Let another model judge by default (recommended)",
    ),
    row(
        None,
        "judge same",
        "Let the executor's own model judge by default",
    ),
    row(None, "judge clear", "Choose the judge of each goal again"),
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
