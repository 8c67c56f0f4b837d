//! The tools of an agent: names, descriptions, parameters and answers, each said once.
//!
//! MCP, `kapi agent` and the socket of a run all take their words from here. What a call may do is
//! decided where goals are; this only reads it, and refuses what does not even have the shape.

pub mod answer;
pub mod call;
pub mod hints;
pub mod input;
pub mod output_schema;
pub mod schema;
pub mod set;
pub mod short_schema;
pub mod state;
pub mod task;
pub mod value_schema;

use serde_json::Value;

/// A tool, under the names of pi-until-done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalTool {
    /// Draft the contract.
    Set,
    /// Make the task list.
    Plan,
    /// Change the task list's structure.
    Replan,
    /// Change one task.
    TaskUpdate,
    /// Note progress.
    Progress,
    /// Claim that the goal is reached.
    Complete,
    /// Ask the person.
    Block,
    /// Park the goal.
    Wait,
    /// Compile the journey.
    Distill,
    /// Look.
    Status,
}

impl GoalTool {
    /// All of them, in the order they are used.
    pub const ALL: [Self; 10] = [
        Self::Set,
        Self::Plan,
        Self::Replan,
        Self::TaskUpdate,
        Self::Progress,
        Self::Complete,
        Self::Block,
        Self::Wait,
        Self::Distill,
        Self::Status,
    ];

    /// Returns the tool of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "until_done_set",
            Self::Plan => "until_done_plan",
            Self::Replan => "until_done_replan",
            Self::TaskUpdate => "until_done_task_update",
            Self::Progress => "until_done_progress",
            Self::Complete => "until_done_complete",
            Self::Block => "until_done_block",
            Self::Wait => "until_done_wait",
            Self::Distill => "until_done_distill",
            Self::Status => "until_done_status",
        }
    }

    /// Returns its name as a word of `kapi agent`.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Plan => "plan",
            Self::Replan => "replan",
            Self::TaskUpdate => "task-update",
            Self::Progress => "progress",
            Self::Complete => "complete",
            Self::Block => "block",
            Self::Wait => "wait",
            Self::Distill => "distill",
            Self::Status => "status",
        }
    }

    /// Returns what an agent is told of it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Set => {
                "Draft the goal's contract. The user must approve it before any work starts; \
                 until then the call records the draft and returns the error not_confirmed."
            }
            Self::Plan => {
                "Submit the goal's task list, tests first. Call it once, before the work; \
                 afterwards change the list with until_done_replan."
            }
            Self::Replan => {
                "Restructure the task list when the plan no longer fits: insert, remove, \
                 replace, split, merge, reorder. Either all operations apply or none; done tasks stay."
            }
            Self::TaskUpdate => {
                "Update one task: its status, a learning, a gotcha, something to read, its checks."
            }
            Self::Progress => "Record one line of progress, and the phase if it changes.",
            Self::Complete => {
                "Claim that the goal is complete, quoting the output of the verify command. \
                 Then end your turn: Kapi runs the checks itself and a judge reviews the result."
            }
            Self::Block => "Ask the user a question that only they can answer. Then end your turn.",
            Self::Wait => {
                "Park the goal until a condition holds: a time, a file in the working \
                 directory, a command's success, an approval, a quota. Then end your turn; \
                 waiting costs nothing."
            }
            Self::Distill => {
                "Once the goal is done: summarize it as a requirements document in Markdown, \
                 with problem, solution, learnings, gotchas, surfaces and follow-ups."
            }
            Self::Status => "Show the goal: contract, status, budget, tasks. Changes nothing.",
        }
    }
}

/// Why a call is refused: pi-until-done's code, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolRefusal {
    /// The code.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl ToolRefusal {
    /// Returns a refusal.
    #[must_use]
    pub const fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }

    /// Returns the refusal of what does not have the shape of an input.
    #[must_use]
    pub const fn input(message: String) -> Self {
        Self::new("bad_input", message)
    }
}

/// Returns the tools as MCP lists them: names, description, schemas, and what they do to their
/// surroundings.
#[must_use]
pub fn listing() -> Vec<Value> {
    let entry = |tool: GoalTool| {
        let hints = hints::of(tool);
        serde_json::json!({
            "name": tool.name(),
            "title": hints.title,
            "description": tool.description(),
            "inputSchema": schema::input_schema(tool),
            "outputSchema": output_schema::output_schema(tool),
            "annotations": hints.annotations(),
        })
    };
    GoalTool::ALL.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests;
