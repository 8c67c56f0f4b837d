//! What the person of an integration allows besides what they approve.
//!
//! Argument once, at the beginning, and shown in the plan.

use serde::{Deserialize, Serialize};

/// What an integration may do without asking, because its person said so at the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrateLeave {
    /// Go on without a source that fails, and land the rest.
    pub evicts: bool,
    /// Bring a clean checkout of the integration branch along.
    pub brings_checkout: bool,
}
