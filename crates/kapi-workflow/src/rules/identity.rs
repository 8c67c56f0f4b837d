//! Who answered a question: an agent, and the run in which it did.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who gave an opinion: bound to a run, so that nobody speaks twice under two names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewerIdentity {
    /// The agent, as it was asked for.
    pub agent: String,
    /// Its run.
    pub run: String,
}

impl fmt::Display for ReviewerIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.agent, self.run)
    }
}
