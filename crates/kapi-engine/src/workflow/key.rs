//! Where a workflow's stream is: its mode and its id.

use std::fmt;

use kapi_core::id::GoalId;
use kapi_core::workflow::mode::Mode;
use kapi_core::workflow::state::Workflow;

/// A workflow of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkflowKey {
    /// Its mode.
    pub mode: Mode,
    /// Its id, which no other workflow and no goal of the project has.
    pub id: GoalId,
}

impl WorkflowKey {
    /// Returns the key of a workflow.
    #[must_use]
    pub fn of(workflow: &Workflow) -> Self {
        Self {
            mode: workflow.mode(),
            id: workflow.id.clone(),
        }
    }
}

impl fmt::Display for WorkflowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.mode, self.id)
    }
}
