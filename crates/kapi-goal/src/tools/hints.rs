//! What a tool does to its surroundings, in the words in which MCP tells clients.
//!
//! A client decides with them whether it asks its person first. They describe; what a call may do is
//! decided where goals and tasks are.

use serde_json::{Value, json};

use crate::tools::GoalTool;

/// What a tool does to its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolHints {
    /// Its name for people.
    pub title: &'static str,
    /// It only looks.
    pub is_read_only: bool,
    /// It may end or replace something that is there.
    pub is_destructive: bool,
    /// The same call a second time changes nothing more.
    pub is_idempotent: bool,
    /// It leads to a conversation with a model, or to anything else beyond this machine.
    pub is_open_world: bool,
}

impl ToolHints {
    /// Returns those of a tool that only looks.
    #[must_use]
    pub const fn looking(title: &'static str) -> Self {
        Self {
            title,
            is_read_only: true,
            is_destructive: false,
            is_idempotent: true,
            is_open_world: false,
        }
    }

    /// Returns those of a tool that adds to a record.
    #[must_use]
    pub const fn adding(title: &'static str) -> Self {
        Self {
            title,
            is_read_only: false,
            is_destructive: false,
            is_idempotent: false,
            is_open_world: false,
        }
    }

    /// Returns them as MCP's annotations.
    #[must_use]
    pub fn annotations(self) -> Value {
        json!({
            "title": self.title,
            "readOnlyHint": self.is_read_only,
            "destructiveHint": self.is_destructive,
            "idempotentHint": self.is_idempotent,
            "openWorldHint": self.is_open_world,
        })
    }
}

/// Returns what a tool of a goal does to its surroundings.
///
/// Each of them writes events, and a log keeps what it had: nothing is destroyed, whatever a plan
/// becomes.
#[must_use]
pub const fn of(tool: GoalTool) -> ToolHints {
    match tool {
        GoalTool::Set => ToolHints::adding("Propose a goal"),
        GoalTool::Plan => ToolHints::adding("Submit the plan"),
        GoalTool::Replan => ToolHints::adding("Restructure the plan"),
        GoalTool::TaskUpdate => ToolHints::adding("Update a task"),
        GoalTool::Progress => ToolHints::adding("Record progress"),
        GoalTool::Complete => ToolHints::adding("Claim that the goal is complete"),
        GoalTool::Block => ToolHints::adding("Ask the user"),
        GoalTool::Wait => ToolHints::adding("Park the goal"),
        GoalTool::Distill => ToolHints::adding("Summarize the goal"),
        GoalTool::Status => ToolHints::looking("Show the goal"),
    }
}
