//! Reads Codex CLI's `exec --json`.
//!
//! Codex counts tokens over the whole thread, and only at the end of a turn that went well. So
//! the session we hand out is the thread and what it had used: `<thread>` or
//! `<thread>+<input>/<output>`. A turn that failed reports nothing; its tokens show in the next.

use std::collections::BTreeSet;

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd, is_session_name};
use crate::failure;
use crate::json_line::{count, list, text};

/// Items that may be under way at once; more are counted when they begin and again at their end.
const OPEN_ITEMS_MAX: usize = 1_000;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct CodexStream {
    /// The thread that was resumed and what it had used.
    resumed: Option<(String, Usage)>,
    thread: String,
    before: Usage,
    terminal: Option<TurnEnd>,
    /// The items that were begun and have not ended; those that end without having begun count.
    open_items: BTreeSet<String>,
    /// The last error that was not an announcement of a retry.
    last_error: String,
}

/// Returns the thread of a session, for the command line.
pub(crate) fn thread_of(session: &str) -> &str {
    session
        .split_once('+')
        .map_or(session, |(thread, _)| thread)
}

fn used_before(session: &str) -> Usage {
    let counts = session
        .split_once('+')
        .and_then(|(_, counts)| counts.split_once('/'));
    let (input, output) = counts.unwrap_or_default();
    Usage {
        input_tokens: input.parse().unwrap_or(0),
        output_tokens: output.parse().unwrap_or(0),
        usd_micros: None,
        ..Usage::ZERO
    }
}

fn session_of(thread: &str, used: &Usage) -> String {
    if used.is_zero() {
        return thread.to_owned();
    }
    format!("{thread}+{}/{}", used.input_tokens, used.output_tokens)
}

impl CodexStream {
    pub(super) fn new(session: Option<&str>) -> Self {
        let resumed = session.map(|session| (thread_of(session).to_owned(), used_before(session)));
        Self {
            resumed,
            ..Self::default()
        }
    }

    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        match text(value, "/type") {
            "thread.started" => self.begin(text(value, "/thread_id"), tally),
            "item.started" => self.item_started(value, tally),
            "item.completed" => self.item_completed(value, tally),
            "turn.completed" => self.completed(value, tally),
            "turn.failed" => {
                let said = text(value, "/error/message");
                let said = if said.is_empty() {
                    self.last_error.clone()
                } else {
                    said.to_owned()
                };
                self.terminal = Some(failed(&said));
            }
            "error" => self.error(text(value, "/message"), tally),
            _ => {}
        }
    }

    pub(super) fn terminal(self) -> Option<TurnEnd> {
        let last_error = &self.last_error;
        let known = || failure::known(None, last_error).map(TurnEnd::Provider);
        self.terminal.or_else(known)
    }

    fn item_started(&mut self, value: &Value, tally: &mut StreamTally) {
        if self.open_items.len() < OPEN_ITEMS_MAX {
            self.open_items.insert(text(value, "/item/id").to_owned());
        }
        tool(value, tally);
    }

    fn item_completed(&mut self, value: &Value, tally: &mut StreamTally) {
        let was_begun = self.open_items.remove(text(value, "/item/id"));
        if text(value, "/item/type") == "agent_message" {
            tally.say(text(value, "/item/text"));
        } else if !was_begun {
            tool(value, tally);
        }
    }

    fn begin(&mut self, thread: &str, tally: &mut StreamTally) {
        if !is_session_name(thread) {
            return;
        }
        thread.clone_into(&mut self.thread);
        if let Some((resumed, used)) = &self.resumed
            && resumed == thread
        {
            self.before = *used;
        }
        tally.begin_session(&session_of(thread, &self.before));
    }

    fn completed(&mut self, value: &Value, tally: &mut StreamTally) {
        self.terminal = Some(TurnEnd::Finished);
        let so_far = Usage {
            input_tokens: count(value, "/usage/input_tokens"),
            output_tokens: count(value, "/usage/output_tokens"),
            usd_micros: None,
            ..Usage::ZERO
        };
        // A count below the one before means that it was begun anew, as after a compaction.
        let is_continued = so_far.input_tokens >= self.before.input_tokens
            && so_far.output_tokens >= self.before.output_tokens;
        let before = if is_continued {
            self.before
        } else {
            Usage::default()
        };
        tally.total = Some(Usage {
            input_tokens: so_far.input_tokens - before.input_tokens,
            output_tokens: so_far.output_tokens - before.output_tokens,
            usd_micros: None,
            ..Usage::ZERO
        });
        tally.session = Some(session_of(&self.thread, &so_far)).filter(|_| !self.thread.is_empty());
    }

    fn error(&mut self, said: &str, tally: &mut StreamTally) {
        if said.starts_with("Reconnecting") {
            tally.retrying(said);
        } else {
            said.clone_into(&mut self.last_error);
        }
    }
}

fn tool(value: &Value, tally: &mut StreamTally) {
    match text(value, "/item/type") {
        "command_execution" => tally.tool("shell", text(value, "/item/command")),
        "file_change" => {
            let paths: Vec<&str> = list(value, "/item/changes")
                .iter()
                .map(|change| text(change, "/path"))
                .collect();
            tally.tool("apply_patch", &paths.join(", "));
        }
        "mcp_tool_call" => {
            let name = format!(
                "{}.{}",
                text(value, "/item/server"),
                text(value, "/item/tool")
            );
            let arguments = value.pointer("/item/arguments").unwrap_or(&Value::Null);
            tally.tool(&name, &super::tool_detail(arguments));
        }
        "web_search" => tally.tool("web_search", text(value, "/item/query")),
        _ => {}
    }
}

fn failed(said: &str) -> TurnEnd {
    const LIMITS: &[&str] = &["budget reached", "ran out of room", "context window"];
    let lower = said.to_lowercase();
    if LIMITS.iter().any(|limit| lower.contains(limit)) {
        return TurnEnd::LimitReached;
    }
    if failure::is_refusal(said) {
        return TurnEnd::Refused;
    }
    TurnEnd::Provider(failure::reported(None, said))
}
