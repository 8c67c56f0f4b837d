//! What an agent's output means: events while it runs, one account when it has ended.
//!
//! The exit code is never trusted alone: most of these CLIs exit 0 after an error. A terminal
//! event with the right content decides, and only without one does the way the process ended.
//! Lines may be cut, malformed or missing; none of that is an error here.

mod acp;
mod claude;
pub(crate) mod codex;
mod gemini;
mod pi;
pub mod score;
mod script;

use kapi_core::agent_end::{AgentEnd, AgentRun, Claim, ProviderFailure, ProviderFailureKind};
use kapi_core::quote::tail;
use kapi_core::usage::Usage;
use kapi_sys::process::ProcessEnd;
use serde_json::Value;

use crate::agent::AgentKind;
use crate::text::{MESSAGE_BYTES_MAX, message, one_line, without_controls};
use crate::{failure, json_line};

/// Something an agent did while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// Its session has a name; a crash from here on can resume it.
    Session(String),
    /// It called a tool.
    Tool {
        /// The tool, as the agent calls it; one clean line.
        name: String,
        /// What with: a command, a path; one clean line, at most 200 characters.
        detail: String,
    },
    /// It said something. Foreign text, capped.
    Text(String),
    /// It used this much more.
    Used(Usage),
    /// Its provider failed and it tries again by itself.
    Retrying {
        /// Why, as one clean line.
        message: String,
    },
}

/// Reads one agent's output.
#[derive(Debug)]
pub struct StreamParser {
    dialect: StreamDialect,
    tally: StreamTally,
}

#[derive(Debug)]
enum StreamDialect {
    Claude(claude::ClaudeStream),
    Codex(codex::CodexStream),
    Gemini(gemini::GeminiStream),
    Pi(pi::PiStream),
    Acp(acp::AcpStream),
    Command,
    Script(script::ScriptStream),
}

impl StreamParser {
    /// Returns a parser for one run. `session` is what the launch resumed, `None` for a new one.
    ///
    /// Codex counts tokens over the whole thread, so its session carries what was counted before;
    /// sessions are opaque to everyone else.
    #[must_use]
    pub fn new(kind: &AgentKind, session: Option<&str>) -> Self {
        let dialect = match kind {
            AgentKind::Claude => StreamDialect::Claude(claude::ClaudeStream::default()),
            AgentKind::Codex => StreamDialect::Codex(codex::CodexStream::new(session)),
            AgentKind::Gemini => StreamDialect::Gemini(gemini::GeminiStream::default()),
            AgentKind::Pi => StreamDialect::Pi(pi::PiStream::default()),
            AgentKind::Acp(_) => StreamDialect::Acp(acp::AcpStream::default()),
            AgentKind::Command(_) => StreamDialect::Command,
            AgentKind::Script(_) => StreamDialect::Script(script::ScriptStream::default()),
        };
        Self {
            dialect,
            tally: StreamTally::default(),
        }
    }

    /// Takes one line of standard output, possibly cut.
    pub fn stdout_line(&mut self, line: &[u8]) -> Vec<StreamEvent> {
        if matches!(self.dialect, StreamDialect::Command) {
            self.tally.say(&String::from_utf8_lossy(line));
            return std::mem::take(&mut self.tally.events);
        }
        if json_line::leading_type(line).is_some_and(is_repetition) {
            return Vec::new();
        }
        let Some(line) = json_line::parse(line) else {
            return Vec::new();
        };
        self.tally.was_cut |= line.is_cut;
        let value = line.value;
        let tally = &mut self.tally;
        match &mut self.dialect {
            StreamDialect::Claude(stream) => stream.line(&value, tally),
            StreamDialect::Codex(stream) => stream.line(&value, tally),
            StreamDialect::Gemini(stream) => stream.line(&value, tally),
            StreamDialect::Pi(stream) => stream.line(&value, tally),
            StreamDialect::Acp(stream) => stream.line(&value, tally),
            StreamDialect::Script(stream) => stream.line(&value, tally),
            StreamDialect::Command => {}
        }
        std::mem::take(&mut tally.events)
    }

    /// Takes one line of standard error, possibly cut.
    ///
    /// None of these CLIs reports progress there; what it says counts only when nothing else
    /// tells why a run failed, and then the tail is read.
    pub fn stderr_line(&mut self, _line: &[u8]) -> Vec<StreamEvent> {
        Vec::new()
    }

    /// Returns the account of the run, once the process has ended and every line was taken.
    ///
    /// A run that was cancelled is reported as crashed with code 130; the caller knows better.
    #[must_use]
    pub fn finish(mut self, end: ProcessEnd, stderr_tail: &str, stdout_tail: &str) -> AgentRun {
        // A command's errors are its own, whatever words it uses.
        let provider_words = match &self.dialect {
            StreamDialect::Command | StreamDialect::Script(_) => "",
            StreamDialect::Claude(_)
            | StreamDialect::Codex(_)
            | StreamDialect::Gemini(_)
            | StreamDialect::Acp(_)
            | StreamDialect::Pi(_) => stderr_tail,
        };
        let is_seen = !matches!(
            self.dialect,
            StreamDialect::Command | StreamDialect::Script(_)
        );
        let terminal = match self.dialect {
            StreamDialect::Claude(stream) => stream.terminal(),
            StreamDialect::Codex(stream) => stream.terminal(),
            StreamDialect::Gemini(stream) => stream.terminal(&mut self.tally),
            StreamDialect::Pi(stream) => stream.terminal(),
            StreamDialect::Acp(stream) => stream.terminal(&mut self.tally),
            StreamDialect::Script(stream) => stream.terminal(),
            StreamDialect::Command => {
                tail(stdout_tail, MESSAGE_BYTES_MAX).clone_into(&mut self.tally.message);
                (end == ProcessEnd::Exited(0)).then_some(TurnEnd::Silent)
            }
        };
        let score = is_seen.then_some(self.tally.score);
        let said = message(&self.tally.message);
        let nothing_came = said.is_empty() && self.tally.n_tools == 0 && !self.tally.was_cut;
        let agent_end = match terminal {
            Some(TurnEnd::Finished) if nothing_came => AgentEnd::Provider(empty_answer()),
            Some(TurnEnd::Finished | TurnEnd::Silent) => AgentEnd::Finished,
            Some(TurnEnd::Refused) => AgentEnd::Refused,
            Some(TurnEnd::LimitReached) => AgentEnd::LimitReached,
            Some(TurnEnd::Provider(failure)) => AgentEnd::Provider(failure),
            Some(TurnEnd::Broken) | None => without_terminal(end, provider_words),
        };
        let is_crash = matches!(agent_end, AgentEnd::Crashed { .. });
        let last_words = if said.is_empty() && is_crash {
            message(tail(&without_controls(stderr_tail), MESSAGE_BYTES_MAX))
        } else {
            said
        };
        AgentRun {
            end: agent_end,
            claim: self.tally.claim,
            message: last_words,
            session: self.tally.session,
            usage: remainder(self.tally.total, &self.tally.reported),
            tools: self.tally.n_tools,
            isolation: None,
            score,
        }
    }
}

/// Tells whether an agent failed because the session it was to resume is gone, or cannot be read: what
/// is killed while it writes a session may leave an empty file.
///
/// Nothing was done then; the same turn can be launched with no session.
#[must_use]
pub fn is_session_lost(run: &AgentRun, stderr_tail: &str) -> bool {
    const SIGNS: &[&str] = &[
        "No conversation found with session ID",
        "thread/resume failed",
        "Error resuming session",
        "No session found matching",
    ];
    let is_crash = matches!(run.end, AgentEnd::Crashed { .. });
    let says_so = |sign: &str| stderr_tail.contains(sign) || run.message.contains(sign);
    is_crash && run.tools == 0 && SIGNS.iter().any(|sign| says_so(sign))
}

/// How an agent's own last event says that it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnEnd {
    /// The turn is over.
    Finished,
    /// The turn is over, and no word need have been said in it.
    Silent,
    /// The model refused.
    Refused,
    /// A limit of its own.
    LimitReached,
    /// The provider failed.
    Provider(ProviderFailure),
    /// It says that it broke off.
    Broken,
}

/// What every dialect counts and keeps.
#[derive(Debug, Default)]
struct StreamTally {
    events: Vec<StreamEvent>,
    session: Option<String>,
    /// The last message so far.
    message: String,
    n_tools: u32,
    /// What the tools amount to.
    score: u32,
    claim: Option<Claim>,
    /// Whether a line was cut: then what is missing may have been there.
    was_cut: bool,
    /// What went out as `Used`.
    reported: Usage,
    /// What the agent says it used in all.
    total: Option<Usage>,
}

impl StreamTally {
    fn begin_session(&mut self, session: &str) {
        if is_session_name(session) && self.session.as_deref() != Some(session) {
            self.session = Some(session.to_owned());
            self.events.push(StreamEvent::Session(session.to_owned()));
        }
    }

    fn tool(&mut self, name: &str, detail: &str) {
        self.n_tools = self.n_tools.saturating_add(1);
        self.score = self.score.saturating_add(score::of_tool(name));
        self.events.push(StreamEvent::Tool {
            name: one_line(name),
            detail: one_line(detail),
        });
    }

    /// Notes a message; it becomes the last one.
    fn say(&mut self, text: &str) {
        let text = message(text);
        if !text.is_empty() {
            self.message.clone_from(&text);
            self.events.push(StreamEvent::Text(text));
        }
    }

    fn used(&mut self, usage: Usage) {
        if !usage.is_zero() {
            self.reported.add(&usage);
            self.events.push(StreamEvent::Used(usage));
        }
    }

    fn retrying(&mut self, text: &str) {
        self.events.push(StreamEvent::Retrying {
            message: one_line(text),
        });
    }
}

/// Tells whether a name can stand on a command line as nothing but a session.
fn is_session_name(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 128;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte);
    let begins_plain = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_plain && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// Tells whether lines of this type only repeat a message that comes whole later.
///
/// Pi repeats the whole message with every few characters: a long answer makes gigabytes.
fn is_repetition(line_type: &str) -> bool {
    matches!(line_type, "message_update" | "tool_execution_update")
}

/// Tells what the process's own end means when the agent said nothing of its turn's end.
fn without_terminal(end: ProcessEnd, stderr_tail: &str) -> AgentEnd {
    let code = match end {
        ProcessEnd::DeadlinePassed => return AgentEnd::DeadlinePassed,
        ProcessEnd::IdlePassed => return AgentEnd::IdlePassed,
        ProcessEnd::Cancelled => return AgentEnd::Crashed { code: 130 },
        ProcessEnd::Exited(code) => code,
        ProcessEnd::Signaled(signal) => 128_i32.saturating_add(signal),
    };
    match failure::said_on_stderr(stderr_tail) {
        Some(failure) if code != 0 => AgentEnd::Provider(failure),
        Some(_) | None => AgentEnd::Crashed { code },
    }
}

fn empty_answer() -> ProviderFailure {
    ProviderFailure {
        kind: ProviderFailureKind::EmptyAnswer,
        message: "the turn ended without output or a tool call".to_owned(),
        retry_after_ms: None,
    }
}

/// Returns what of the total has not been reported yet.
fn remainder(total: Option<Usage>, reported: &Usage) -> Usage {
    let Some(total) = total else {
        return Usage::default();
    };
    let usd_micros = total
        .usd_micros
        .map(|all| all.saturating_sub(reported.usd_micros.unwrap_or(0)));
    Usage {
        input_tokens: total.input_tokens.saturating_sub(reported.input_tokens),
        output_tokens: total.output_tokens.saturating_sub(reported.output_tokens),
        usd_micros,
        ..Usage::ZERO
    }
}

/// Returns dollars as millionths; `None` for what is no amount of money.
pub(crate) fn usd_micros(dollars: &Value) -> Option<u64> {
    const DOLLARS_MAX: f64 = 1e9;
    let dollars = dollars
        .as_f64()
        .filter(|usd| (0.0..DOLLARS_MAX).contains(usd))?;
    // Through text, because a cast from a float says nothing when it is wrong.
    format!("{:.0}", dollars * 1e6).parse().ok()
}

/// Returns what a tool was called with, in the one field that tells most.
fn tool_detail(input: &Value) -> String {
    const TELLING: &[&str] = &[
        "command",
        "cmd",
        "file_path",
        "path",
        "absolute_path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
    ];
    let texts = TELLING
        .iter()
        .filter_map(|key| input.get(key).and_then(Value::as_str));
    match texts.into_iter().find(|text| !text.trim().is_empty()) {
        Some(text) => text.to_owned(),
        None => match input {
            Value::Null => String::new(),
            Value::Object(fields) if fields.is_empty() => String::new(),
            other => other.to_string(),
        },
    }
}
