//! Who judges, and what holds when nobody can.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who confirms that the criteria are met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "by",
    content = "agent",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum Judge {
    /// Nobody: the verify commands decide alone.
    None,
    /// The executor's own agent, in a fresh session.
    Same,
    /// Another agent.
    Agent(String),
}

impl fmt::Display for Judge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Same => out.write_str("same"),
            Self::Agent(name) => out.write_str(name),
        }
    }
}

/// What an unreachable or unreadable judge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeUnavailable {
    /// The goal is blocked until a judge answers.
    Closed,
    /// The verify commands decide alone, and the record says so.
    Open,
}
