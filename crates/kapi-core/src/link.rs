//! How workflows are connected: durable fields and events, never conversation.
//!
//! A link stands on both sides; each side records its own.

use serde::{Deserialize, Serialize};

use crate::id::GoalId;
use crate::mode::Mode;

/// One connection, as the workflow sees it that records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What the other one is to this one.
    pub relation: WorkflowRelation,
    /// The other one's mode.
    pub mode: Mode,
    /// The other one.
    pub workflow: GoalId,
    /// When it was made, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// What another workflow is to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowRelation {
    /// It gave the context: an approved interview.
    Context,
    /// It goes on from here: what an interview branched into.
    Successor,
    /// Its work is brought together here.
    Integrates,
    /// It took this one's work into the integration branch.
    IntegratedBy,
}
