//! Handing the goal's tools to each CLI, in its own way of naming a server of tools.
//!
//! The server is this executable as the agent sees it. What the tools are is asked of it at the start;
//! nothing here knows a tool.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml::Table;

use crate::agent::AgentError;
use crate::launch::{AgentTurn, HomeFile, LaunchPurpose, PRIVATE_MODE, json_file, path_text};

/// The name of the server; each CLI puts it before the tools' names.
pub const SERVER: &str = "kapi";
/// The words of this executable that enter the server.
pub(super) const SERVER_ARGS: [&str; 1] = ["mcp"];
/// How long the server may take to start, in seconds: a busy machine is no failure.
const START_S: u32 = 60;
/// How long one call may take, in seconds: longer than the host waits for a lock.
const CALL_S: u32 = 60;
/// What registers the tools with Pi, which has no servers of tools.
const PI_EXTENSION: &str = include_str!("tools/pi.js");

/// The tools of a run, as the agent sees them.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    /// This executable.
    pub program: &'a Path,
    /// The variables by which it finds the run: CLIs pass few on to their servers.
    pub env: &'a BTreeMap<String, String>,
}

/// Returns the tools that a run is handed: one that only reads has none.
pub(super) const fn of_turn<'a>(turn: &AgentTurn<'a>) -> Option<Tools<'a>> {
    match turn.purpose {
        LaunchPurpose::Work => turn.tools,
        LaunchPurpose::Converse | LaunchPurpose::Judge => None,
    }
}

/// Files of the home, and the arguments that name them; nothing where there are no tools.
#[derive(Default)]
pub(super) struct NamedFiles {
    /// The files.
    pub(super) files: Vec<HomeFile>,
    /// The arguments.
    pub(super) args: Vec<String>,
}

/// Returns Claude Code's file of servers.
pub(super) fn claude(turn: &AgentTurn<'_>) -> Result<NamedFiles, AgentError> {
    const FILE: &str = ".claude/kapi-tools.json";
    let Some(tools) = of_turn(turn) else {
        return Ok(NamedFiles::default());
    };
    let server = server(tools, "claude")?;
    let file = json_file(FILE, &json!({"mcpServers": {SERVER: server}}));
    let args = [
        "--mcp-config".to_owned(),
        path_text("claude", &turn.home.join(FILE))?,
        "--allowedTools".to_owned(),
        format!("mcp__{SERVER}"),
    ];
    Ok(NamedFiles {
        files: vec![file],
        args: args.into(),
    })
}

/// Returns Codex' table of servers.
pub(super) fn codex(tools: Tools<'_>) -> Result<Table, AgentError> {
    let env: Table = tools
        .env
        .iter()
        .map(|(name, value)| (name.clone(), toml::Value::from(value.as_str())))
        .collect();
    let words = SERVER_ARGS.map(toml::Value::from);
    let server: Table = [
        ("command", path_text("codex", tools.program)?.into()),
        ("args", toml::Value::Array(words.into())),
        ("env", toml::Value::Table(env)),
        ("startup_timeout_sec", i64::from(START_S).into()),
        ("tool_timeout_sec", i64::from(CALL_S).into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    Ok([(SERVER.to_owned(), toml::Value::Table(server))]
        .into_iter()
        .collect())
}

/// Returns Gemini CLI's servers: trusted, for nobody is there to confirm a call.
pub(super) fn gemini(tools: Tools<'_>) -> Result<Value, AgentError> {
    let mut server = server(tools, "gemini")?;
    server["trust"] = json!(true);
    server["timeout"] = json!(CALL_S * 1_000);
    Ok(json!({SERVER: server}))
}

/// Returns Pi's extension.
pub(super) fn pi(turn: &AgentTurn<'_>) -> Result<NamedFiles, AgentError> {
    // Not among the extensions that Pi finds by itself: those are off.
    const FILE: &str = ".pi/agent/kapi/tools.js";
    let Some(tools) = of_turn(turn) else {
        return Ok(NamedFiles::default());
    };
    let wanted = json!({
        "program": path_text("pi", tools.program)?,
        "env": tools.env,
        "timeout": CALL_S * 1_000,
    });
    let content = PI_EXTENSION.replace("\"{{kapi}}\"", &wanted.to_string());
    let file = HomeFile {
        path: PathBuf::from(FILE),
        content: content.into_bytes(),
        mode: PRIVATE_MODE,
    };
    let args = ["-e".to_owned(), path_text("pi", &turn.home.join(FILE))?];
    Ok(NamedFiles {
        files: vec![file],
        args: args.into(),
    })
}

fn server(tools: Tools<'_>, agent: &'static str) -> Result<Value, AgentError> {
    Ok(json!({
        "command": path_text(agent, tools.program)?,
        "args": SERVER_ARGS,
        "env": tools.env,
    }))
}
