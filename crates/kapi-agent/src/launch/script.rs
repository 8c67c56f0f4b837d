//! Starts the embedded deterministic agent: this executable itself, with one turn's steps on its
//! standard input.

use std::collections::BTreeMap;
use std::path::Path;

use crate::agent::AgentError;
use crate::launch::{AgentLaunch, AgentTurn, SCRIPT_AGENT_COMMAND, SELF_EXE, gate, words};
use crate::script::Script;
use crate::script::part::ScriptPart;

pub(super) fn launch(file: &Path, turn: &AgentTurn<'_>) -> Result<AgentLaunch, AgentError> {
    let (file, part) = ScriptPart::split(file);
    let script = Script::read(&file)?;
    let stdin = script.turn_json(&file, &part, turn.turn, gate::script(turn)?)?;
    Ok(AgentLaunch {
        program: SELF_EXE.to_owned(),
        args: words(&[SCRIPT_AGENT_COMMAND]),
        env: BTreeMap::new(),
        stdin,
        files: Vec::new(),
        login_files: Vec::new(),
        notes: Vec::new(),
        idle_ms: None,
        reports_usd: true,
        upstream: None,
        hosts: Vec::new(),
    })
}
