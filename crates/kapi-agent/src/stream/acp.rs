//! Reads what the client of an ACP agent prints: the agent's own messages, and the client's few words
//! about them.
//!
//! The answer is what comes after the last tool call, in pieces. A tool may be told of first when it
//! asks for permission, so it counts when its id is first seen.

use std::collections::BTreeSet;

use kapi_core::quote::head;
use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd, tool_detail};
use crate::failure;
use crate::json_line::{count, text};
use crate::text::MESSAGE_BYTES_MAX;

/// Calls whose ids are remembered; one more is counted each time it is told of.
const CALLS_MAX: usize = 10_000;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct AcpStream {
    /// The answer under way.
    answer: String,
    calls: BTreeSet<String>,
    terminal: Option<TurnEnd>,
}

impl AcpStream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        if text(value, "/type") == "acp_session" {
            tally.begin_session(text(value, "/session"));
        } else if let Some(call) = value.pointer("/params/toolCall") {
            self.call(call, tally);
        } else if let Some(update) = value.pointer("/params/update") {
            self.update(update, tally);
        } else if let Some(error) = value.get("error") {
            self.flush(tally);
            self.terminal = Some(failed(error));
        } else if let Some(result) = value.get("result") {
            self.result(result, tally);
        }
    }

    pub(super) fn terminal(mut self, tally: &mut StreamTally) -> Option<TurnEnd> {
        // Without a result the answer is still under way.
        self.flush(tally);
        self.terminal
    }

    fn update(&mut self, update: &Value, tally: &mut StreamTally) {
        match text(update, "/sessionUpdate") {
            "agent_message_chunk" => {
                // Twice the cap, so that blank space around the message cannot eat it.
                let capacity = (2 * MESSAGE_BYTES_MAX).saturating_sub(self.answer.len());
                self.answer
                    .push_str(head(text(update, "/content/text"), capacity));
            }
            "tool_call" | "tool_call_update" => self.call(update, tally),
            _ => {}
        }
    }

    fn call(&mut self, call: &Value, tally: &mut StreamTally) {
        let id = text(call, "/toolCallId");
        let title = text(call, "/title");
        if self.calls.contains(id) || title.is_empty() {
            return;
        }
        if self.calls.len() < CALLS_MAX {
            self.calls.insert(id.to_owned());
        }
        self.flush(tally);
        let input = call.get("rawInput").filter(|input| input.is_object());
        let detail = input.map_or_else(|| title.to_owned(), tool_detail);
        // A kind says what it does to the world; the tools of servers have none.
        match text(call, "/kind") {
            "" | "other" => tally.tool(title, if detail == title { "" } else { &detail }),
            kind => tally.tool(kind, &detail),
        }
        // The answer is what is said after the tools.
        tally.message.clear();
    }

    fn flush(&mut self, tally: &mut StreamTally) {
        let answer = std::mem::take(&mut self.answer);
        tally.say(&answer);
    }

    fn result(&mut self, result: &Value, tally: &mut StreamTally) {
        self.flush(tally);
        tally.total = used(result);
        self.terminal = Some(match text(result, "/stopReason") {
            "end_turn" => TurnEnd::Finished,
            "max_tokens" | "max_turn_requests" => TurnEnd::LimitReached,
            "refusal" => TurnEnd::Refused,
            _ => TurnEnd::Broken,
        });
    }
}

/// Returns what an agent says that it used, where it says so: the protocol's own place, or that of
/// Gemini CLI.
fn used(result: &Value) -> Option<Usage> {
    let places = [
        ("/usage", "/inputTokens", "/outputTokens"),
        (
            "/_meta/quota/token_count",
            "/input_tokens",
            "/output_tokens",
        ),
    ];
    places.iter().find_map(|(place, input, output)| {
        let told = result.pointer(place).filter(|told| told.is_object())?;
        let thought = count(told, "/thoughtTokens");
        Some(Usage {
            input_tokens: count(told, input),
            output_tokens: count(told, output).saturating_add(thought),
            usd_micros: None,
            ..Usage::ZERO
        })
    })
}

fn failed(error: &Value) -> TurnEnd {
    let said = text(error, "/message");
    let details = text(error, "/data/details");
    let said = if details.is_empty() {
        said.to_owned()
    } else {
        format!("{said}: {details}")
    };
    if failure::is_refusal(&said) {
        return TurnEnd::Refused;
    }
    let code = error.get("code").and_then(Value::as_u64);
    // A status of HTTP, where the agent passes it on as the code.
    let status = code.filter(|code| (100..600).contains(code));
    TurnEnd::Provider(failure::reported(status, &said))
}
