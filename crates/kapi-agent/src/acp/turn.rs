//! One turn of an ACP agent, as its client gets it on standard input.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcpTurn {
    /// The agent, a command for `/bin/sh`.
    pub(crate) command: String,
    /// What it is asked.
    pub(crate) prompt: String,
    /// The session to load.
    pub(crate) session: Option<String>,
    /// The workspace.
    pub(crate) workspace: String,
    /// The server of tools that it is given.
    pub(crate) tools: Option<AcpTools>,
    /// The words that ask whether a tool may run.
    pub(crate) gate: Option<Vec<String>>,
    /// What it is started for.
    pub(crate) access: AcpAccess,
}

impl AcpTurn {
    /// Returns it as it is written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Texts alone: there is nothing in it that JSON has no word for.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What a tool may do that asks for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AcpAccess {
    /// Whatever the gate lets it.
    Work,
    /// Look.
    Look,
}

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcpTools {
    /// Its name.
    pub(crate) name: String,
    /// Its program.
    pub(crate) program: String,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its variables.
    pub(crate) env: BTreeMap<String, String>,
}
