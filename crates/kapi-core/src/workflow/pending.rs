//! A decision that waits for a person, bound to what it is about.
//!
//! An approval names the hash of its subject, and dies when the subject changes.

use serde::{Deserialize, Serialize};

/// What a person is asked to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Whether the spec says what they want.
    ApproveInterviewSpec,
    /// Whether the plan may be carried out.
    ApproveRalphPlan,
}

impl Decision {
    /// Returns the name as it stands in `snapshot.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApproveInterviewSpec => "approve_interview_spec",
            Self::ApproveRalphPlan => "approve_ralph_plan",
        }
    }

    /// Returns the artifact that the decision is about.
    #[must_use]
    pub const fn artifact(self) -> &'static str {
        match self {
            Self::ApproveInterviewSpec => "spec.md",
            Self::ApproveRalphPlan => "plan.md",
        }
    }
}

/// A decision that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// What is decided.
    pub decision: Decision,
    /// SHA-256 of the artifact's bytes, in hexadecimal.
    pub sha256: String,
    /// What speaks against it and must be accepted with it: a score below the threshold, dissent.
    pub risks: Vec<String>,
    /// Since when it waits, in milliseconds since the epoch.
    pub since_ms: i64,
}

/// How a person gave an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Typed at a terminal after the subject was shown.
    Terminal,
    /// Given with `--yes`.
    YesFlag,
    /// Given by naming the hash.
    NamedHash,
    /// Given in advance with `--approve-plan auto`.
    InAdvance,
}

/// A decision that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// What was decided.
    pub decision: Decision,
    /// SHA-256 of what was approved.
    pub sha256: String,
    /// How.
    pub means: Means,
    /// By whom.
    pub by: String,
    /// The risks that were accepted with it.
    pub accepted: Vec<String>,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}
