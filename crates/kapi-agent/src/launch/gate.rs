//! Having each CLI ask before every tool it runs, by its own permission hook.
//!
//! The hook is this executable as the agent sees it; where it fails in any way the tool does not run.
//! The hooks stand in files of the run's own, and nothing of the repository's is read beside them.

use std::path::{Path, PathBuf};

use kapi_core::quote::shell_word;
use serde_json::{Value, json};
use toml::Table;

use crate::agent::{AgentError, AgentKind};
use crate::launch::tools::NamedFiles;
use crate::launch::{AgentTurn, HomeFile, PRIVATE_MODE, json_file, path_text};

/// How long one answer may take, in seconds: longer than a person is asked, and than the hook
/// itself waits, so that no CLI gives it up and lets the tool run.
const ANSWER_S: u32 = 120;
/// Claude Code's file, beside whatever its home holds.
const CLAUDE_FILE: &str = ".claude/kapi-gate.json";
/// What asks for Pi, which has no hooks that are programs.
const PI_FILE: &str = ".pi/agent/kapi/gate.js";
const PI_EXTENSION: &str = include_str!("gate/pi.js");

/// Where a run asks before its tools, as the agent sees it.
#[derive(Debug, Clone, Copy)]
pub struct GateSocket<'a> {
    /// This executable.
    pub program: &'a Path,
    /// The socket of the gate.
    pub socket: &'a Path,
}

/// Returns the files of a home, relative to it, that hold an agent's hooks: it must not write them.
#[must_use]
pub fn sealed_file(kind: &AgentKind) -> Option<&'static str> {
    match kind {
        AgentKind::Claude => Some(CLAUDE_FILE),
        AgentKind::Codex => Some(".codex/config.toml"),
        AgentKind::Gemini => Some(".gemini/settings.json"),
        AgentKind::Pi => Some(PI_FILE),
        // Their turn comes on standard input.
        AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => None,
    }
}

/// Adds Claude Code's settings with the hook: they outrank those of its home.
pub(super) fn claude(
    turn: &AgentTurn<'_>,
    mut named: NamedFiles,
) -> Result<NamedFiles, AgentError> {
    let Some(gate) = turn.gate else {
        return Ok(named);
    };
    let hook = json!({
        "type": "command",
        "command": command_line(gate, "claude")?,
        "timeout": ANSWER_S,
    });
    let settings = json!({
        "disableAllHooks": false,
        "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]},
    });
    named.files.push(json_file(CLAUDE_FILE, &settings));
    named.args.push("--settings".to_owned());
    named
        .args
        .push(path_text("claude", &turn.home.join(CLAUDE_FILE))?);
    Ok(named)
}

/// Adds the hook to Codex' configuration, and returns the arguments without which it is skipped.
pub(super) fn codex(turn: &AgentTurn<'_>, config: &mut Table) -> Result<Vec<String>, AgentError> {
    let Some(gate) = turn.gate else {
        return Ok(Vec::new());
    };
    let text = |text: &str| toml::Value::from(text);
    let table = |pairs: Vec<(&str, toml::Value)>| {
        let owned = pairs.into_iter();
        let table: Table = owned.map(|(name, it)| (name.to_owned(), it)).collect();
        toml::Value::Table(table)
    };
    let hook = table(vec![
        ("type", text("command")),
        ("command", text(&command_line(gate, "codex")?)),
        ("timeout", toml::Value::from(i64::from(ANSWER_S))),
    ]);
    let group = table(vec![
        ("matcher", text(".*")),
        ("hooks", toml::Value::Array(vec![hook])),
    ]);
    let hooks = table(vec![("PreToolUse", toml::Value::Array(vec![group]))]);
    config.insert("hooks".to_owned(), hooks);
    let features = config.get_mut("features").and_then(|it| it.as_table_mut());
    if let Some(features) = features {
        features.insert("hooks".to_owned(), true.into());
        // What is typed into a program that runs already is not asked about: none has a terminal.
        features.insert("unified_exec_tty".to_owned(), false.into());
    }
    Ok(vec!["--dangerously-bypass-hook-trust".to_owned()])
}

/// Adds the hook to Gemini CLI's settings.
pub(super) fn gemini(turn: &AgentTurn<'_>, settings: &mut Value) -> Result<(), AgentError> {
    let Some(gate) = turn.gate else {
        return Ok(());
    };
    let hook = json!({
        "name": "kapi-gate",
        "type": "command",
        "command": command_line(gate, "gemini")?,
        "timeout": ANSWER_S * 1_000,
    });
    settings["hooksConfig"] = json!({"enabled": true});
    settings["hooks"] = json!({"BeforeTool": [{"matcher": "*", "hooks": [hook]}]});
    Ok(())
}

/// Adds Pi's extension.
pub(super) fn pi(turn: &AgentTurn<'_>, mut named: NamedFiles) -> Result<NamedFiles, AgentError> {
    let Some(gate) = turn.gate else {
        return Ok(named);
    };
    let words = words(gate, "pi")?;
    let wanted = json!({"words": words, "timeout": ANSWER_S * 1_000});
    let content = PI_EXTENSION.replace("\"{{gate}}\"", &wanted.to_string());
    named.files.push(HomeFile {
        path: PathBuf::from(PI_FILE),
        content: content.into_bytes(),
        mode: PRIVATE_MODE,
    });
    named.args.push("-e".to_owned());
    named.args.push(path_text("pi", &turn.home.join(PI_FILE))?);
    Ok(named)
}

/// Returns the words that a script's player asks by.
pub(super) fn script(turn: &AgentTurn<'_>) -> Result<Option<Vec<String>>, AgentError> {
    turn.gate.map(|gate| words(gate, "script")).transpose()
}

pub(super) fn words(gate: GateSocket<'_>, agent: &'static str) -> Result<Vec<String>, AgentError> {
    let (program, socket) = (
        path_text(agent, gate.program)?,
        path_text(agent, gate.socket)?,
    );
    let plain = ["hook", "--agent", agent, "--gate"].map(str::to_owned);
    Ok([vec![program], plain.into(), vec![socket]].concat())
}

/// Returns the hook for the shell that CLIs run it in. They let a tool run whose hook is missing,
/// crashes or is killed, and only one exit code stops them.
fn command_line(gate: GateSocket<'_>, agent: &'static str) -> Result<String, AgentError> {
    let words = words(gate, agent)?;
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    Ok(format!("{} || exit 2", quoted.join(" ")))
}
