//! The models of an agent, as a person approves them: which it is started with, and which it may ask.
//!
//! Knows no agent and no server; what a name stands for at either is theirs to say.

use serde::{Deserialize, Serialize};

/// The models of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentModels {
    /// The agent: `claude`.
    pub agent: String,
    /// The model that it is started with, in its own spelling; its own choice if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models that it may ask, as names in which `*` and `?` stand for any characters; others
    /// are refused. Never empty.
    pub may_ask: Vec<String>,
}

impl AgentModels {
    /// Returns them in words.
    #[must_use]
    pub fn words(&self) -> String {
        let may_ask = self.may_ask.join(", ");
        match &self.model {
            Some(model) => format!("{}: {model} (may ask {may_ask})", self.agent),
            None => format!("{}: its own choice of {may_ask}", self.agent),
        }
    }
}
