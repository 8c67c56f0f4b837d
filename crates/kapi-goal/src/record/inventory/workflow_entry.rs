//! What `inventory.json` repeats of a workflow, and which session is attached to which.
//!
//! Carries the length of the log it was made from: as long as the log is that long, and a log only
//! ever grows, the entry is true.

use kapi_core::id::GoalId;
use kapi_core::link::{Link, WorkflowRelation};
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;
use serde::{Deserialize, Serialize};

/// One workflow in the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowEntry {
    /// The workflow.
    pub id: GoalId,
    /// Its mode.
    pub mode: Mode,
    /// What it is for: the beginning of the person's words, in one line.
    pub purpose: String,
    /// Where it stands.
    pub status: WorkflowStatus,
    /// The phase.
    pub phase: String,
    /// The part of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subphase: Option<String>,
    /// What waits for its person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WorkflowWait>,
    /// What an approved interview is about that nothing was started from: what it is found by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Its branch, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its worktree, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// What it is connected with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// When what is said here last changed, in RFC 3339.
    pub updated: String,
    /// Bytes of the log that this was made from.
    pub log_bytes: u64,
}

/// What of a workflow waits for its person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkflowWait {
    /// A decision.
    Decision {
        /// The name of the decision that is pending.
        decision: String,
        /// Since when, in milliseconds since the epoch.
        since_ms: i64,
    },
    /// An answer.
    Answer {
        /// The round.
        round: u32,
    },
    /// Something has to be mended.
    Unblocking {
        /// Why it is held up.
        reason: String,
    },
}

/// One connection between two workflows, as one side recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowConnection {
    /// Who recorded it.
    pub from: GoalId,
    /// The other one.
    pub to: GoalId,
    /// What the other one is to it.
    pub relation: WorkflowRelation,
}

/// A session that is attached to a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// The session.
    pub session: String,
    /// The workflow's mode.
    pub mode: Mode,
    /// The workflow.
    pub workflow: GoalId,
    /// Since when, in RFC 3339.
    pub since: String,
}

impl WorkflowEntry {
    /// Tells whether it says the same as another, whenever each was made.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.updated.clone_from(&self.updated);
        other.log_bytes = self.log_bytes;
        *self == other
    }

    /// Returns what it is connected with.
    pub fn connections(&self) -> impl Iterator<Item = WorkflowConnection> + '_ {
        self.links.iter().map(|link| WorkflowConnection {
            from: self.id.clone(),
            to: link.workflow.clone(),
            relation: link.relation,
        })
    }
}
