//! Checks that an agent never sees.

use serde::{Deserialize, Serialize};

/// Checks kept away from the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HiddenCheckSet {
    /// The directory they were copied from at approval.
    pub source: String,
    /// SHA-256 over their names, modes and contents.
    pub sha256: String,
    /// How many files there are.
    pub files: u32,
}
