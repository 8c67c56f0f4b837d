//! Reads Gemini CLI's `stream-json`.
//!
//! The answer is what comes after the last tool call, in pieces. Thinking counts as output and
//! shows only in the difference between the total and the input.

use kapi_core::quote::head;
use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd, tool_detail};
use crate::failure;
use crate::json_line::{count, text};
use crate::text::MESSAGE_BYTES_MAX;

/// What it warns of when it takes its model for stuck and stops.
const LOOP: &str = "Loop detected";

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct GeminiStream {
    /// The answer under way.
    answer: String,
    terminal: Option<TurnEnd>,
    /// The last error that did not end the run by itself.
    last_error: String,
}

impl GeminiStream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        match text(value, "/type") {
            "init" => tally.begin_session(text(value, "/session_id")),
            "message" if text(value, "/role") == "assistant" => {
                // Twice the cap, so that blank space around the message cannot eat it.
                let capacity = (2 * MESSAGE_BYTES_MAX).saturating_sub(self.answer.len());
                self.answer
                    .push_str(head(text(value, "/content"), capacity));
            }
            "tool_use" => {
                self.flush(tally);
                let detail = tool_detail(value.get("parameters").unwrap_or(&Value::Null));
                tally.tool(text(value, "/tool_name"), &detail);
                // The answer is what is said after the tools.
                tally.message.clear();
            }
            "error" => text(value, "/message").clone_into(&mut self.last_error),
            "result" => self.result(value, tally),
            _ => {}
        }
    }

    pub(super) fn terminal(mut self, tally: &mut StreamTally) -> Option<TurnEnd> {
        // Without a result the answer is still under way.
        self.flush(tally);
        match self.terminal {
            // What stops a turn without failing it is told only by a warning.
            Some(TurnEnd::Finished) if self.last_error.contains(LOOP) => {
                Some(TurnEnd::LimitReached)
            }
            Some(TurnEnd::Finished) if failure::is_refusal(&self.last_error) => {
                Some(TurnEnd::Refused)
            }
            other => other,
        }
    }

    fn flush(&mut self, tally: &mut StreamTally) {
        let answer = std::mem::take(&mut self.answer);
        tally.say(&answer);
    }

    fn result(&mut self, value: &Value, tally: &mut StreamTally) {
        self.flush(tally);
        tally.total = value.get("stats").map(|stats| {
            let input_tokens = count(stats, "/input_tokens");
            let all_but_input = count(stats, "/total_tokens").saturating_sub(input_tokens);
            let output_tokens = count(stats, "/output_tokens").max(all_but_input);
            Usage {
                input_tokens,
                output_tokens,
                usd_micros: None,
                ..Usage::ZERO
            }
        });
        self.terminal = Some(match text(value, "/status") {
            "success" => TurnEnd::Finished,
            _ => {
                let said = text(value, "/error/message");
                let said = if said.is_empty() {
                    &self.last_error
                } else {
                    said
                };
                failed(text(value, "/error/type"), said)
            }
        });
    }
}

fn failed(kind: &str, said: &str) -> TurnEnd {
    if kind.contains("TurnLimit") || kind.contains("MaxSessionTurns") {
        return TurnEnd::LimitReached;
    }
    if kind.contains("Cancel") {
        return TurnEnd::Broken;
    }
    if failure::is_refusal(said) {
        return TurnEnd::Refused;
    }
    TurnEnd::Provider(failure::reported(None, said))
}
