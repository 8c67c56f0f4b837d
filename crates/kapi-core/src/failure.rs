//! What the world could not do, and what to do about it.

use serde::{Deserialize, Serialize};

/// A refusal of the world: neither the agent's fault nor a rule's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What could not be done and why, as a fragment after "failed to".
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}
