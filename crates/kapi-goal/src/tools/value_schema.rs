//! JSON Schemas of single values that a type alone does not describe.
//!
//! Knows no tool: the inputs name these, and `schema.rs` puts the inputs together.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::rules::contract::GoalType;
use crate::rules::plan::task::{TaskPhase, TaskStatus};

/// All states of a task, in the order of its life.
pub const TASK_STATUSES: [TaskStatus; 5] = [
    TaskStatus::Pending,
    TaskStatus::InProgress,
    TaskStatus::Done,
    TaskStatus::Blocked,
    TaskStatus::Skipped,
];

pub(crate) fn phase(_: &mut SchemaGenerator) -> Schema {
    words(&TaskPhase::ALL.map(TaskPhase::as_str))
}

pub(crate) fn task_status(_: &mut SchemaGenerator) -> Schema {
    words(&TASK_STATUSES.map(TaskStatus::as_str))
}

pub(crate) fn goal_type(_: &mut SchemaGenerator) -> Schema {
    words(&[GoalType::Ticket, GoalType::Exploratory].map(GoalType::as_str))
}

pub(crate) fn file_state(_: &mut SchemaGenerator) -> Schema {
    words(&["exists", "gone", "changed"])
}

/// Returns the schema of a number of seconds.
pub fn seconds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0})
}

/// Returns the schema of a text that is one of these words.
#[must_use]
pub fn words(words: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": words})
}
