//! What a contract says of its checks besides the commands.
//!
//! Chosen by a person; an agent's draft and a project's files may only make it stricter.

use serde::{Deserialize, Serialize};

/// What may happen to the project's tests, and what else may count as a proof.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckPolicy {
    /// What the agent may do to tests.
    pub tests: TestPolicy,
    /// Whether commands that already pass on the base are proof enough.
    pub already_green: bool,
    /// Whether the proof may rest on what the change itself made of scripts and settings that steer
    /// the checks.
    pub changed_steering: bool,
    /// Whether the proof may rest on code that shows signs of faking a pass.
    #[serde(skip_serializing_if = "is_off")]
    pub flagged_code: bool,
    /// Whether each hunk of the change is taken back in turn, to see which of them the checks notice.
    pub strength: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over by reference"
)]
const fn is_off(switch: &bool) -> bool {
    !*switch
}

/// What the agent may do to the tests that a project has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestPolicy {
    /// Change them as it likes: the base's tests are run as well, and each difference is named.
    Free,
    /// Add to them: existing ones stay as they are.
    #[default]
    Additive,
    /// Nothing: no test is added, changed or removed.
    Locked,
}

impl TestPolicy {
    /// Returns the policy as it stands in contracts and flags.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Additive => "additive",
            Self::Locked => "locked",
        }
    }
}

impl CheckPolicy {
    /// Tells whether nothing was said.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
