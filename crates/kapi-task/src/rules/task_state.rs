//! Where a task stands in its life.
//!
//! Names alone: what leads from one to the next is decided elsewhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelTaskState {
    /// It waits for a worker.
    Pending,
    /// A worker has it and has launched nothing yet.
    Leased,
    /// A worker may have launched its agent.
    Running,
    /// It came to a good end.
    Completed,
    /// It came to a bad end.
    Failed,
    /// Somebody did not want it any more.
    Cancelled,
}

impl KernelTaskState {
    /// Tells whether nothing becomes of it any more.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Pending | Self::Leased | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl fmt::Display for KernelTaskState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}
