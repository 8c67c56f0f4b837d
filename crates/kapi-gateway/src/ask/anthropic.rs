//! One question in Anthropic Messages: the body asked, the body answered.
//!
//! Knows shapes only.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ask::answer::{AnswerChannel, AnswerText, ParsedAnswer, parse, said};
use crate::ask::error::AskError;
use crate::ask::{ModelQuestion, Wording, schema_of, system_text};

#[derive(Deserialize)]
struct AnthropicMessage {
    #[serde(default)]
    content: Vec<ContentBlock>,
    stop_reason: Option<String>,
    model: Option<String>,
    id: Option<String>,
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

pub(super) fn body(question: &ModelQuestion<'_>, model: &str, wording: Wording) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": question.output_tokens_max,
        "messages": [{ "role": "user", "content": question.user }],
    });
    let system = system_text(question, wording.channel);
    if !system.is_empty() {
        body["system"] = json!(system);
    }
    if let Some((form, schema)) = schema_of(question) {
        match wording.channel {
            AnswerChannel::Tool => {
                body["tools"] = json!([{
                    "name": form.name, "description": form.purpose, "input_schema": schema,
                }]);
                body["tool_choice"] = json!({ "type": "tool", "name": form.name });
            }
            AnswerChannel::Format => {
                body["output_config"] =
                    json!({ "format": { "type": "json_schema", "schema": schema } });
            }
            AnswerChannel::Text => {}
        }
    }
    body
}

pub(super) fn read(host: &str, channel: AnswerChannel, body: &[u8]) -> ParsedAnswer {
    let message: AnthropicMessage = match parse(host, body) {
        Ok(message) => message,
        Err(error) => return ParsedAnswer::nothing(error),
    };
    let usage = message.usage.as_ref().and_then(AnthropicUsage::counts);
    ParsedAnswer {
        said: said_in(host, channel, &message),
        usage,
        model: message.model,
        request_id: message.id,
    }
}

fn said_in(
    host: &str,
    channel: AnswerChannel,
    message: &AnthropicMessage,
) -> Result<AnswerText, AskError> {
    let host_name = || host.to_owned();
    match message.stop_reason.as_deref() {
        Some("refusal") => {
            return Err(AskError::Refused {
                host: host_name(),
                reason: "refusal".to_owned(),
            });
        }
        Some("max_tokens" | "model_context_window_exceeded") => {
            return Err(AskError::CutShort { host: host_name() });
        }
        None => {
            return Err(AskError::Malformed {
                host: host_name(),
                source: None,
            });
        }
        Some(_) => {}
    }
    let mut calls = message
        .content
        .iter()
        .filter(|block| block.kind == "tool_use");
    if let (AnswerChannel::Tool, Some(call)) = (channel, calls.next()) {
        let input = call.input.as_ref().map(|input| input.get().to_owned());
        // Two verdicts would be a contradiction that nobody may settle by choosing.
        return match (input, calls.next()) {
            (Some(text), None) => said(host, text, AnswerChannel::Tool),
            _ => Err(AskError::Malformed {
                host: host_name(),
                source: None,
            }),
        };
    }
    let texts: Vec<&str> = message
        .content
        .iter()
        .filter(|block| block.kind == "text")
        .filter_map(|block| block.text.as_deref())
        .collect();
    let channel = match channel {
        AnswerChannel::Tool | AnswerChannel::Text => AnswerChannel::Text,
        AnswerChannel::Format => AnswerChannel::Format,
    };
    said(host, texts.concat(), channel)
}

impl AnthropicUsage {
    fn counts(&self) -> Option<TokenCounts> {
        Some(TokenCounts {
            input: self.input_tokens?,
            output: self.output_tokens?,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
        })
    }
}
