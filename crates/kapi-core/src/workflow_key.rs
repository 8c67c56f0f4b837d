//! Where a workflow's stream is: its mode and its id.

use std::fmt;

use crate::id::GoalId;
use crate::mode::Mode;

/// A workflow of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkflowKey {
    /// Its mode.
    pub mode: Mode,
    /// Its id, which no other workflow and no goal of the project has.
    pub id: GoalId,
}

impl fmt::Display for WorkflowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.mode, self.id)
    }
}
