//! What an agent's own hooks tell: the payloads of Claude Code, Codex CLI and Gemini CLI.
//!
//! The second source of status, for agents whose output the harness does not read. Everything
//! here was sent from inside a sandbox: it is capped, cleaned, and says what is shown, never
//! what is true. Knows nothing of sockets or status files.

pub mod agent_type;
pub mod gate;
pub mod inject;
pub mod instruction;

use kapi_core::quote::{head, shell_word};
use serde_json::Value;

use crate::agent::AgentKind;
use crate::json_line;
use crate::text::{one_line, without_controls};

/// The variable that names the socket a hook reports to, inside the sandbox.
pub const SOCKET_VARIABLE: &str = "KAPI_HOOK_SOCKET";
/// The name of the socket in its directory.
pub const SOCKET_NAME: &str = "hook.sock";
/// Bytes of one message; longer ones come without their end, and are understood without it.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a call's detail that are kept.
const DETAIL_BYTES_MAX: usize = 4 * 1024;

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAgent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookToolCall {
    /// The tool, as the agent calls it; one clean line.
    pub name: String,
    /// The command, path or question it was called with; clean, may have several lines.
    pub detail: String,
}

/// Something a hook reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// A session began or was resumed.
    SessionStarted,
    /// A session ended.
    SessionEnded,
    /// The agent was given something to do.
    Prompted,
    /// A tool is about to run.
    ToolStarted(HookToolCall),
    /// A tool has run.
    ToolFinished {
        /// The call.
        call: HookToolCall,
        /// Whether the agent says that it failed.
        is_failed: bool,
    },
    /// The agent says that its turn is over. No evidence of anything.
    Stopped,
    /// Anything else.
    Other,
}

impl HookAgent {
    /// Every agent that has hooks.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// Returns the agent of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    /// Returns the agent of this kind, if it has hooks.
    #[must_use]
    pub const fn from_kind(kind: &AgentKind) -> Option<Self> {
        match kind {
            AgentKind::Claude => Some(Self::Claude),
            AgentKind::Codex => Some(Self::Codex),
            AgentKind::Gemini => Some(Self::Gemini),
            AgentKind::Pi | AgentKind::Acp(_) | AgentKind::Command(_) | AgentKind::Script(_) => {
                None
            }
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }
}

/// Returns the command line of the hook for an agent, for the shell the agent runs it in.
///
/// `binary` and `socket` are paths inside the sandbox. The socket is named in the command, too,
/// because an agent may not hand its environment on to its hooks.
#[must_use]
pub fn command_line(agent: HookAgent, binary: &str, socket: &str) -> String {
    let (binary, socket) = (shell_word(binary), shell_word(socket));
    format!("{binary} hook --agent {} --socket {socket}", agent.name())
}

/// Returns the same for settings that outlive the run: where `binary` is gone, nothing is reported
/// and the agent sees no failure.
#[must_use]
pub fn lasting_command_line(agent: HookAgent, binary: &str, socket: &str) -> String {
    let line = command_line(agent, binary, socket);
    format!("[ ! -x {} ] || {line}", shell_word(binary))
}

/// Reads what a hook was given; `None` when it is not even the beginning of a JSON object.
#[must_use]
pub fn parse(agent: HookAgent, payload: &[u8]) -> Option<HookEvent> {
    let line = json_line::parse(capped(payload))?;
    Some(event_of(agent, &line.value))
}

/// Reads a message of `kapi hook`: `{"agent": …, "payload": …}`, maybe without its end.
#[must_use]
pub fn parse_message(message: &[u8]) -> Option<(HookAgent, HookEvent)> {
    let line = json_line::parse(capped(message))?;
    let agent = HookAgent::from_name(json_line::text(&line.value, "/agent"))?;
    let payload = line
        .value
        .get("payload")
        .filter(|value| value.is_object())?;
    Some((agent, event_of(agent, payload)))
}

fn capped(bytes: &[u8]) -> &[u8] {
    bytes.get(..MESSAGE_BYTES_MAX).unwrap_or(bytes)
}

fn event_of(agent: HookAgent, payload: &Value) -> HookEvent {
    let name = json_line::text(payload, "/hook_event_name");
    match (agent, name) {
        (_, "SessionStart") => HookEvent::SessionStarted,
        (_, "SessionEnd") => HookEvent::SessionEnded,
        (HookAgent::Claude | HookAgent::Codex, "UserPromptSubmit")
        | (HookAgent::Gemini, "BeforeAgent") => HookEvent::Prompted,
        (HookAgent::Claude | HookAgent::Codex, "PreToolUse")
        | (HookAgent::Gemini, "BeforeTool") => HookEvent::ToolStarted(call_of(payload)),
        (HookAgent::Claude, "PostToolUseFailure") => HookEvent::ToolFinished {
            call: call_of(payload),
            is_failed: true,
        },
        (HookAgent::Claude | HookAgent::Codex, "PostToolUse")
        | (HookAgent::Gemini, "AfterTool") => HookEvent::ToolFinished {
            call: call_of(payload),
            is_failed: is_failed(payload),
        },
        (HookAgent::Claude | HookAgent::Codex, "Stop") | (HookAgent::Gemini, "AfterAgent") => {
            HookEvent::Stopped
        }
        // Codex's other way to tell has no event name but a type.
        (HookAgent::Codex, "") if json_line::text(payload, "/type") == "agent-turn-complete" => {
            HookEvent::Stopped
        }
        (_, _) => HookEvent::Other,
    }
}

fn is_failed(payload: &Value) -> bool {
    let response = payload.get("tool_response");
    let flag = |name: &str| {
        response
            .and_then(|response| response.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    };
    let has_error = response
        .and_then(|response| response.get("error"))
        .is_some_and(|error| !error.is_null());
    flag("isError") || flag("is_error") || has_error
}

fn call_of(payload: &Value) -> HookToolCall {
    let name = one_line(json_line::text(payload, "/tool_name"));
    let input = payload.get("tool_input").unwrap_or(&Value::Null);
    let detail = if name == "apply_patch" {
        one_line(patched_file(json_line::text(input, "/command")))
    } else {
        without_controls(head(&detail_of(input), DETAIL_BYTES_MAX))
    };
    HookToolCall { name, detail }
}

/// Returns what a tool was called with, in the one field that tells most.
fn detail_of(input: &Value) -> String {
    const TELLING: &[&str] = &[
        "command",
        "cmd",
        "file_path",
        "absolute_path",
        "notebook_path",
        "path",
        "dir_path",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let telling = TELLING.iter().find_map(|key| match input.get(key)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(words) => words_of(words),
        _ => None,
    });
    telling.unwrap_or_default()
}

/// Returns a command given as a list of words, quoted so that it reads as the same words.
fn words_of(words: &[Value]) -> Option<String> {
    let words: Vec<String> = words
        .iter()
        .filter_map(Value::as_str)
        .map(shell_word)
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the first file that a patch in Codex's format changes.
fn patched_file(patch: &str) -> &str {
    const HEADERS: &[&str] = &["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    let file_of = |line| {
        let headers = HEADERS.iter();
        headers
            .filter_map(|header| str::strip_prefix(line, header))
            .next()
    };
    patch.lines().find_map(file_of).unwrap_or_default()
}
