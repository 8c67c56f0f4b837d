//! Reads Claude Code's `stream-json`.
//!
//! The truth about usage is `result.modelUsage`, which includes sub-agents; what messages report
//! on the way is only a beginning and goes out early so that budgets see it.

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{StreamTally, TurnEnd, tool_detail, usd_micros};
use crate::failure;
use crate::json_line::{count, list, text};

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeStream {
    /// The message whose usage went out last; one message comes in several lines.
    counted_message: String,
    refused: bool,
    terminal: Option<TurnEnd>,
}

impl ClaudeStream {
    pub(super) fn line(&mut self, value: &Value, tally: &mut StreamTally) {
        match text(value, "/type") {
            "system" => match text(value, "/subtype") {
                "init" => tally.begin_session(text(value, "/session_id")),
                "api_retry" => tally.retrying(&retry_text(value)),
                _ => {}
            },
            "assistant" => self.assistant(value, tally),
            "stream_event" => {
                self.refused |= text(value, "/event/delta/stop_reason") == "refusal";
            }
            "result" => self.result(value, tally),
            _ => {}
        }
    }

    pub(super) fn terminal(self) -> Option<TurnEnd> {
        self.terminal
    }

    fn assistant(&mut self, value: &Value, tally: &mut StreamTally) {
        let id = text(value, "/message/id");
        if !id.is_empty() && id != self.counted_message {
            id.clone_into(&mut self.counted_message);
            tally.used(Usage {
                input_tokens: count(value, "/message/usage/input_tokens")
                    .saturating_add(count(value, "/message/usage/cache_creation_input_tokens"))
                    .saturating_add(count(value, "/message/usage/cache_read_input_tokens")),
                output_tokens: count(value, "/message/usage/output_tokens"),
                usd_micros: None,
                ..Usage::ZERO
            });
        }
        let is_sub_agent = value
            .get("parent_tool_use_id")
            .is_some_and(Value::is_string);
        if !is_sub_agent {
            self.refused |= text(value, "/message/stop_reason") == "refusal";
        }
        for block in list(value, "/message/content") {
            match text(block, "/type") {
                "tool_use" => {
                    let detail = tool_detail(block.get("input").unwrap_or(&Value::Null));
                    tally.tool(text(block, "/name"), &detail);
                }
                // What a sub-agent says is not the agent's answer.
                "text" if !is_sub_agent => tally.say(text(block, "/text")),
                _ => {}
            }
        }
    }

    fn result(&mut self, value: &Value, tally: &mut StreamTally) {
        tally.begin_session(text(value, "/session_id"));
        tally.total = total(value);
        let is_error = value.get("is_error").and_then(Value::as_bool) != Some(false);
        let said = text(value, "/result");
        self.refused |= text(value, "/stop_reason") == "refusal";
        if !said.trim().is_empty() {
            said.clone_into(&mut tally.message);
        }
        let errors: Vec<&str> = list(value, "/errors")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let errors = errors.join("; ");
        self.terminal = Some(match text(value, "/subtype") {
            _ if self.refused || (is_error && failure::is_refusal(said)) => TurnEnd::Refused,
            "success" if !is_error => TurnEnd::Finished,
            "success" => {
                let status = value.get("api_error_status").and_then(Value::as_u64);
                TurnEnd::Provider(failure::reported(status, said))
            }
            "error_during_execution" => {
                if tally.n_tools == 0 && !errors.is_empty() {
                    tally.message = errors;
                }
                TurnEnd::Broken
            }
            // `error_max_turns`, `error_max_budget_usd` and their kin.
            limit if limit.starts_with("error_max") => TurnEnd::LimitReached,
            _ => TurnEnd::Broken,
        });
    }
}

fn retry_text(value: &Value) -> String {
    let status = value.get("error_status").and_then(Value::as_u64);
    let status = status
        .map(|status| format!(", status {status}"))
        .unwrap_or_default();
    let attempt = count(value, "/attempt");
    format!("attempt {attempt} after {}{status}", text(value, "/error"))
}

/// Returns what all models used; `None` when the line was cut before it says so.
fn total(value: &Value) -> Option<Usage> {
    let models = value.get("modelUsage")?.as_object()?;
    let mut total = Usage {
        usd_micros: value.get("total_cost_usd").and_then(usd_micros),
        ..Usage::default()
    };
    for model in models.values() {
        total.add(&Usage {
            input_tokens: count(model, "/inputTokens")
                .saturating_add(count(model, "/cacheReadInputTokens"))
                .saturating_add(count(model, "/cacheCreationInputTokens")),
            output_tokens: count(model, "/outputTokens"),
            usd_micros: None,
            ..Usage::ZERO
        });
    }
    Some(total)
}
