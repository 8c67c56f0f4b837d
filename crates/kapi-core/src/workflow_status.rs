//! Where a workflow stands.

use serde::{Deserialize, Serialize};

/// Where a workflow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowStatus {
    /// It goes on whenever a process drives it, or when its person decides.
    Active,
    /// Something has to change first; resuming goes on.
    Blocked,
    /// It is complete.
    Completed,
    /// It cannot be completed.
    Failed,
    /// Its person gave it up.
    Abandoned,
    /// It goes on in another workflow.
    Linked,
    /// Its work was integrated.
    Integrated,
}

impl WorkflowStatus {
    /// Tells whether it has ended. Nothing leaves such a status but completed, which may become
    /// integrated.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Active | Self::Blocked => false,
            Self::Completed | Self::Failed | Self::Abandoned | Self::Linked | Self::Integrated => {
                true
            }
        }
    }

    /// Returns the name as it stands in `snapshot.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Linked => "linked",
            Self::Integrated => "integrated",
        }
    }
}
