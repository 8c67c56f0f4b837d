//! The inbox: everything in a project that waits for a person.
//!
//! Each thing with the exact commands that settle it; leaving it changes nothing.

use schemars::JsonSchema;
use serde::Serialize;

/// Everything that waits, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InboxView {
    /// What waits.
    pub items: Vec<InboxItem>,
}

/// One thing that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InboxItem {
    /// `spec`, `plan`, `question`, `restated_goal`, `workflow_blocked`, `workflow_damaged`,
    /// `contract`, `consent`, `approval`, `budget`, `goal_blocked`, `judge_unreachable`,
    /// `goal_damaged`, `launch_stopped`, `launch_failed`, `launch_unmerged`,
    /// `launch_damaged`, `lesson` or `queue`.
    pub kind: &'static str,
    /// What it is about: a goal's or a workflow's id, a lesson's id.
    pub subject: String,
    /// Since when it waits, in milliseconds since the epoch; `null` where nobody recorded it.
    pub since_ms: Option<i64>,
    /// What waits, in a sentence.
    pub what: String,
    /// What speaks against it, which an approval accepts.
    pub risks: Vec<String>,
    /// What will happen on yes, exactly.
    pub on_yes: String,
    /// What to type for yes.
    pub yes: Option<String>,
    /// What to type to have it changed or to turn it down.
    pub change: Vec<String>,
    /// What to type to look at it first.
    pub look: Option<String>,
}
