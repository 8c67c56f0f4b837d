//! One question in Chat Completions: the body asked, the body answered.
//!
//! Knows shapes only, also those of servers that leave parts of them out.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::answer::{AnswerChannel, AnswerText, ParsedAnswer, parse, said};
use crate::ask::error::AskError;
use crate::ask::{LimitName, ModelQuestion, Wording, schema_of, system_text};

#[derive(Deserialize)]
struct ChatCompletion {
    choices: Option<Vec<ChatChoice>>,
    model: Option<String>,
    id: Option<String>,
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct ChatChoice {
    message: Option<ChatMessage>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatMessage {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ChatToolCall>>,
}

#[derive(Deserialize)]
struct ChatToolCall {
    function: ChatFunction,
}

#[derive(Deserialize)]
struct ChatFunction {
    arguments: String,
}

#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<TokenDetails>,
    /// One vendor's name for what it read from its cache.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct TokenDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

pub(super) fn body(question: &ModelQuestion<'_>, model: &str, wording: Wording) -> Value {
    let mut messages = Vec::new();
    let system = system_text(question, wording.channel);
    if !system.is_empty() {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.push(json!({ "role": "user", "content": question.user }));
    let limit = match wording.limit {
        LimitName::MaxTokens => "max_tokens",
        LimitName::MaxCompletionTokens => "max_completion_tokens",
    };
    let mut body = json!({ "model": model, "messages": messages, "stream": false });
    body[limit] = json!(question.output_tokens_max);
    if let Some((form, schema)) = schema_of(question) {
        match wording.channel {
            AnswerChannel::Format => {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": form.name, "strict": true, "schema": schema },
                });
            }
            AnswerChannel::Tool => {
                body["tools"] = json!([{
                    "type": "function",
                    "function": {
                        "name": form.name, "description": form.purpose, "parameters": schema,
                    },
                }]);
                body["tool_choice"] =
                    json!({ "type": "function", "function": { "name": form.name } });
            }
            AnswerChannel::Text => {}
        }
    }
    body
}

pub(super) fn read(host: &str, channel: AnswerChannel, body: &[u8]) -> ParsedAnswer {
    let completion: ChatCompletion = match parse(host, body) {
        Ok(completion) => completion,
        Err(error) => return ParsedAnswer::nothing(error),
    };
    let usage = completion.usage.as_ref().and_then(ChatUsage::counts);
    let choice = completion.choices.and_then(|mut choices| choices.pop());
    ParsedAnswer {
        said: said_in(host, channel, choice),
        usage,
        model: completion.model,
        request_id: completion.id,
    }
}

fn said_in(
    host: &str,
    channel: AnswerChannel,
    choice: Option<ChatChoice>,
) -> Result<AnswerText, AskError> {
    let malformed = || AskError::Malformed {
        host: host.to_owned(),
        source: None,
    };
    let refused = |reason: &str| AskError::Refused {
        host: host.to_owned(),
        reason: reason.chars().take(300).collect(),
    };
    let choice = choice.ok_or_else(malformed)?;
    let message = choice.message.ok_or_else(malformed)?;
    if let Some(reason) = message.refusal.filter(|reason| !reason.is_empty()) {
        return Err(refused(&reason));
    }
    match choice.finish_reason.as_deref() {
        Some("content_filter") => return Err(refused("content_filter")),
        Some("length") => {
            return Err(AskError::CutShort {
                host: host.to_owned(),
            });
        }
        Some(_) | None => {}
    }
    let mut calls = message.tool_calls.unwrap_or_default().into_iter();
    if let (AnswerChannel::Tool, Some(call)) = (channel, calls.next()) {
        // Two verdicts would be a contradiction that nobody may settle by choosing.
        return match calls.next() {
            None => said(host, call.function.arguments, AnswerChannel::Tool),
            Some(_) => Err(malformed()),
        };
    }
    let channel = match channel {
        AnswerChannel::Tool | AnswerChannel::Text => AnswerChannel::Text,
        AnswerChannel::Format => AnswerChannel::Format,
    };
    said(host, message.content.unwrap_or_default(), channel)
}

impl ChatUsage {
    fn counts(&self) -> Option<TokenCounts> {
        let prompt = self.prompt_tokens?;
        let details = self.prompt_tokens_details.as_ref();
        let reported = details.and_then(|details| details.cached_tokens);
        let cache_read = reported
            .or(self.prompt_cache_hit_tokens)
            .unwrap_or(0)
            .min(prompt);
        let uncached = prompt.saturating_sub(cache_read);
        let cache_write = details
            .and_then(|details| details.cache_write_tokens)
            .unwrap_or(0)
            .min(uncached);
        // Some servers leave reasoning out of the completion, and only the total has it.
        let beyond = self.total_tokens.unwrap_or(0).saturating_sub(prompt);
        Some(TokenCounts {
            input: uncached.saturating_sub(cache_write),
            output: self.completion_tokens.unwrap_or(0).max(beyond),
            cache_read,
            cache_write,
        })
    }
}
