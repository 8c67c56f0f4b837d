//! What an agent answers: a scale, in words and as a script.

use serde::{Deserialize, Deserializer, Serialize};

use crate::rules::role::RoleSpec;

/// A scale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToyAnswer {
    /// What it is.
    pub text: String,
    /// What runs it.
    pub script: String,
}

impl ToyAnswer {
    /// Reads an answer in a role; there is one.
    pub(crate) fn read<'de, D: Deserializer<'de>>(_: &RoleSpec, from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }
}
