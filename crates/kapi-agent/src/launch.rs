//! How an agent is started for one turn, as data.
//!
//! Turns a kind, its settings and a turn into a program, arguments, environment, standard input
//! and the files its private home must hold. The caller writes the files, adds `PATH`, `HOME`,
//! `LANG` and the like, and runs it; nothing is started or written here.
//!
//! Prompts travel on standard input: an argument is limited to 128 KiB, can be read by every
//! process of the machine, and is an option when it begins with a dash.

mod acp;
mod claude;
mod codex;
mod credentials;
pub mod gate;
mod gemini;
pub mod own_variable;
mod pi;
mod program;
mod script;
pub mod tools;
pub mod upstream;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::agent::{AgentError, AgentKind};
use crate::launch::gate::GateSocket;
use crate::launch::tools::Tools;
use crate::launch::upstream::{AgentUpstream, GatewayAddress};
use crate::settings::AgentSettings;

/// The program name that stands for this executable itself.
pub const SELF_EXE: &str = "kapi:self";
/// The hidden command of this executable that plays a script's turn.
pub const SCRIPT_AGENT_COMMAND: &str = "__script-agent";

/// The longest silence of an agent whose output we read: longer than any tool call they allow.
const IDLE_MS: u64 = 20 * 60 * 1000;
/// The mode of files that may hold a key.
const PRIVATE_MODE: u32 = 0o600;

/// What an adapter may read of the host.
#[derive(Debug, Clone, Copy)]
pub struct HostEnvironment<'a> {
    /// The environment, for keys and passed variables.
    pub env: &'a BTreeMap<OsString, OsString>,
}

/// What an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchPurpose {
    /// To work on the goal: all tools, a session that can be resumed.
    Work,
    /// To be asked one question after another: tools that only read, and a session that can be resumed.
    Converse,
    /// To judge: tools that only read where the CLI can be told so, and no session.
    ///
    /// That nothing is written is the sandbox's business, not the CLI's.
    Judge,
}

impl LaunchPurpose {
    /// Tells whether the agent works; else it only reads, and nothing that somebody left in the
    /// checkout must instruct it.
    #[must_use]
    pub const fn is_work(self) -> bool {
        match self {
            Self::Work => true,
            Self::Converse | Self::Judge => false,
        }
    }
}

/// One turn.
#[derive(Debug, Clone, Copy)]
pub struct AgentTurn<'a> {
    /// The whole prompt.
    pub prompt: &'a str,
    /// The file that holds the prompt, as the agent sees it.
    pub prompt_file: &'a Path,
    /// The session to resume, exactly as a run returned it; not used for a judge.
    pub session: Option<&'a str>,
    /// The turn, from 1.
    pub turn: u32,
    /// The run.
    pub run_id: &'a str,
    /// What it is for.
    pub purpose: LaunchPurpose,
    /// The agent's private home, as the agent sees it; the same for every turn of a session.
    pub home: &'a Path,
    /// The workspace, as the agent sees it; sessions are bound to it.
    pub workspace: &'a Path,
    /// The way to the model.
    pub gateway: GatewayAddress<'a>,
    /// The tools of the goal it works on, where it works on one.
    pub tools: Option<Tools<'a>>,
    /// Where it asks before each tool, where its contract has it ask.
    pub gate: Option<GateSocket<'a>>,
}

/// A file the agent's home must hold before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeFile {
    /// Where, relative to the home.
    pub path: PathBuf,
    /// What it holds; it replaces what is there.
    pub content: Vec<u8>,
    /// Its permission bits.
    pub mode: u32,
}

/// Everything needed to start an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLaunch {
    /// The program: a path, a name to be found on the host's `PATH`, or [`SELF_EXE`].
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables it needs besides `PATH`, `HOME`, `LANG` and `TERM`.
    pub env: BTreeMap<String, String>,
    /// Its standard input, which is then closed.
    pub stdin: Vec<u8>,
    /// Files to write into its home.
    pub files: Vec<HomeFile>,
    /// Files of the person's log-in to copy into its home, relative to both homes; one that the
    /// host does not have is left out.
    pub login_files: Vec<PathBuf>,
    /// What a person should know about this launch, as sentences.
    pub notes: Vec<String>,
    /// The longest silence before it counts as stuck; `None` for no limit.
    pub idle_ms: Option<u64>,
    /// Whether its usage comes with a cost.
    pub reports_usd: bool,
    /// The server the gateway asks; `None` when the agent asks no model, or asks it directly.
    pub upstream: Option<AgentUpstream>,
    /// Hosts the agent must reach by itself, besides what the gateway does for it.
    pub hosts: Vec<String>,
}

/// Returns how to start an agent for a turn.
///
/// The same arguments give the same launch. For `script:` the named file is read, and nothing
/// else is touched.
///
/// # Errors
/// When the settings or the script cannot be used; nothing has happened then.
pub fn launch(
    kind: &AgentKind,
    settings: &AgentSettings,
    host: &HostEnvironment<'_>,
    turn: &AgentTurn<'_>,
) -> Result<AgentLaunch, AgentError> {
    own_variable::check(kind, settings)?;
    let mut launch = match kind {
        AgentKind::Claude => claude::launch(settings, host, turn)?,
        AgentKind::Codex => codex::launch(settings, host, turn)?,
        AgentKind::Gemini => gemini::launch(settings, host, turn)?,
        AgentKind::Pi => pi::launch(settings, host, turn)?,
        AgentKind::Acp(command) => acp::launch(command, settings, host, turn)?,
        AgentKind::Command(shell) => program::launch(shell, settings, turn)?,
        AgentKind::Script(file) => script::launch(file, turn)?,
    };
    for name in &settings.pass_env {
        match variable(host, name)? {
            Some(value) => drop(launch.env.insert(name.clone(), value)),
            None => launch.notes.push(format!(
                "The variable {name} of `pass_env` is not set here."
            )),
        }
    }
    launch.env.extend(settings.env.clone());
    Ok(launch)
}

/// Returns a variable of the host.
fn variable(host: &HostEnvironment<'_>, name: &str) -> Result<Option<String>, AgentError> {
    let Some(value) = host.env.get(OsStr::new(name)) else {
        return Ok(None);
    };
    match value.to_str() {
        Some(value) => Ok(Some(value.to_owned())),
        None => Err(AgentError::NotUtf8 {
            variable: name.to_owned(),
        }),
    }
}

/// Returns a path as text.
fn path_text(agent: &'static str, path: &Path) -> Result<String, AgentError> {
    let text = path.to_str().map(ToOwned::to_owned);
    text.ok_or_else(|| AgentError::PathNotUtf8 {
        agent,
        path: path.to_path_buf(),
    })
}

/// Returns the session to resume: a judge resumes none.
fn resumed<'a>(turn: &AgentTurn<'a>) -> Option<&'a str> {
    match turn.purpose {
        LaunchPurpose::Work | LaunchPurpose::Converse => turn.session,
        LaunchPurpose::Judge => None,
    }
}

/// Returns owned copies of constant arguments.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns a variable list from constant names.
fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Returns a JSON file of the home.
fn json_file(path: &str, value: &serde_json::Value) -> HomeFile {
    HomeFile {
        path: PathBuf::from(path),
        content: format!("{value:#}\n").into_bytes(),
        mode: PRIVATE_MODE,
    }
}
