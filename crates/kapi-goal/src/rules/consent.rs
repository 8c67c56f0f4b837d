//! What a person is asked about before an agent may do it, and what they said.
//!
//! The patterns stand in the contract; this is what happened with them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// How many refused commands are kept.
pub const ASKED_MAX: usize = 32;

/// What was asked and what was allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consent {
    /// Patterns and approvals that a person allowed for this goal.
    pub allowed: BTreeSet<String>,
    /// Commands that were refused because a person has to be asked first, the last ones.
    pub asked: Vec<RefusedCommand>,
    /// Commands that were refused in the turn under way or last ended.
    pub refused_in_turn: u32,
}

/// A refused command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedCommand {
    /// The entry of the contract's list that it matches.
    pub pattern: String,
    /// The command, capped.
    pub command: String,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
}

impl Consent {
    /// Allows an entry of the list, or what a goal waits for.
    pub fn allow(&mut self, what: &str) {
        self.allowed.insert(what.to_owned());
    }

    /// Adds a refused command and forgets the oldest beyond [`ASKED_MAX`].
    pub fn refused(&mut self, asked: RefusedCommand) {
        self.refused_in_turn = self.refused_in_turn.saturating_add(1);
        self.asked.push(asked);
        let excess = self.asked.len().saturating_sub(ASKED_MAX);
        self.asked.drain(..excess);
    }
}
