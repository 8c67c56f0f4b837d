//! Reads Pi's `--mode json`.
//!
//! Every assistant message comes whole in `message_end` with its own usage and cost; the same
//! messages again in `turn_end` and `agent_end` are not counted. `agent_end` holds the whole
//! history and is often cut, so only its arrival counts, and the last message tells how it went.

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd, tool_detail};
use crate::failure;
use crate::json_line::{count, list, text};

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct PiStream {
    /// How the last assistant message stopped; empty when its line was cut.
    stop_reason: String,
    error: String,
    has_message: bool,
    has_ended: bool,
    /// The cost so far in dollars; summed before it is rounded.
    usd: f64,
}

impl PiStream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        match text(value, "/type") {
            "session" => tally.begin_session(text(value, "/id")),
            "agent_start" => self.has_ended = false,
            "message_end" if text(value, "/message/role") == "assistant" => {
                self.message(value, tally);
            }
            "tool_execution_start" => {
                let detail = tool_detail(value.get("args").unwrap_or(&Value::Null));
                tally.tool(text(value, "/toolName"), &detail);
            }
            "auto_retry_start" => {
                let attempt = count(value, "/attempt");
                tally.retrying(&format!(
                    "attempt {attempt} after {}",
                    text(value, "/errorMessage")
                ));
            }
            "agent_end" => self.has_ended = true,
            _ => {}
        }
    }

    pub(super) fn terminal(self) -> Option<TurnEnd> {
        if !self.has_ended || !self.has_message {
            return None;
        }
        Some(match self.stop_reason.as_str() {
            "error" if failure::is_refusal(&self.error) => TurnEnd::Refused,
            "error" => TurnEnd::Provider(failure::reported(None, &self.error)),
            "length" => TurnEnd::LimitReached,
            "aborted" => TurnEnd::Broken,
            // "stop", and what a cut line leaves open: the agent did come to its end.
            _ => TurnEnd::Finished,
        })
    }

    fn message(&mut self, value: &Value, tally: &mut StreamTally) {
        self.has_message = true;
        text(value, "/message/stopReason").clone_into(&mut self.stop_reason);
        text(value, "/message/errorMessage").clone_into(&mut self.error);
        let blocks = list(value, "/message/content").iter();
        let texts: Vec<&str> = blocks
            .filter(|block| text(block, "/type") == "text")
            .map(|block| text(block, "/text"))
            .collect();
        tally.say(&texts.join("\n"));
        let usd_micros = self.cost(value, tally);
        tally.used(Usage {
            input_tokens: count(value, "/message/usage/input")
                .saturating_add(count(value, "/message/usage/cacheRead"))
                .saturating_add(count(value, "/message/usage/cacheWrite")),
            output_tokens: count(value, "/message/usage/output"),
            usd_micros,
            ..Usage::ZERO
        });
    }

    /// Returns the cost since the last message; a cost of nothing is an unknown price.
    fn cost(&mut self, value: &Value, tally: &StreamTally) -> Option<u64> {
        let cost = value
            .pointer("/message/usage/cost/total")
            .and_then(Value::as_f64);
        self.usd += cost.filter(|cost| *cost > 0.0)?;
        let so_far = super::usd_micros(&Value::from(self.usd))?;
        Some(so_far.saturating_sub(tally.reported.usd_micros.unwrap_or(0)))
    }
}
