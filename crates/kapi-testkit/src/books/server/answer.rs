//! Answers of the four APIs, whole, with the usage that they tell.
//!
//! Pure: texts of what is sent, down to the HTTP around it.

use std::fmt::Write as _;

use kapi_agent::launch::upstream::UpstreamDialect;
use kapi_spend::rules::tokens::TokenCounts;
use serde_json::{Value, json};

use crate::books::story::CallFault;

/// A refusal that costs nothing.
pub(super) const OVERLOADED: &[u8] =
    b"HTTP/1.1 529 Overloaded\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Returns an answer, which has a word for each token.
pub(super) fn text(dialect: UpstreamDialect, counts: &TokenCounts, fault: CallFault) -> Vec<u8> {
    let is_told = fault != CallFault::NotTold;
    match dialect {
        UpstreamDialect::Gemini => whole(&gemini(counts, is_told)),
        UpstreamDialect::Anthropic => events(&anthropic(counts, is_told)),
        UpstreamDialect::Responses => events(&responses(counts, is_told)),
        UpstreamDialect::Chat => events(&chat(counts, is_told)),
    }
}

fn anthropic(counts: &TokenCounts, is_told: bool) -> Vec<Value> {
    let usage = json!({ "input_tokens": counts.input, "output_tokens": 1 });
    let start = if is_told { usage } else { Value::Null };
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": start } })];
    let word = json!({ "type": "content_block_delta", "delta": { "text": "word" } });
    events.extend((0..counts.output).map(|_| word.clone()));
    if is_told {
        let usage = json!({ "output_tokens": counts.output });
        events.push(json!({ "type": "message_delta", "usage": usage }));
    }
    events.push(json!({ "type": "message_stop" }));
    events
}

fn responses(counts: &TokenCounts, is_told: bool) -> Vec<Value> {
    let word = json!({ "type": "response.output_text.delta", "delta": "word" });
    let mut events: Vec<Value> = (0..counts.output).map(|_| word.clone()).collect();
    let usage = json!({ "input_tokens": counts.input, "output_tokens": counts.output });
    let usage = if is_told { usage } else { Value::Null };
    events.push(json!({ "type": "response.completed", "response": { "usage": usage } }));
    events
}

fn chat(counts: &TokenCounts, is_told: bool) -> Vec<Value> {
    let word = json!({ "choices": [{ "delta": { "content": "word" } }] });
    let mut events: Vec<Value> = (0..counts.output).map(|_| word.clone()).collect();
    if is_told {
        let usage = json!({
            "prompt_tokens": counts.input,
            "completion_tokens": counts.output,
        });
        events.push(json!({ "choices": [], "usage": usage }));
    }
    events
}

fn gemini(counts: &TokenCounts, is_told: bool) -> Value {
    let words = "word ".repeat(usize::try_from(counts.output).unwrap_or(0));
    let candidates = json!([{ "content": { "parts": [{ "text": words }] } }]);
    if is_told {
        let usage = json!({
            "promptTokenCount": counts.input,
            "candidatesTokenCount": counts.output,
        });
        json!({ "candidates": candidates, "usageMetadata": usage })
    } else {
        json!({ "candidates": candidates })
    }
}

fn events(events: &[Value]) -> Vec<u8> {
    let mut text = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n"
        .to_owned();
    for event in events {
        let event = format!("data: {event}\n\n");
        // A string takes all that is written into it.
        let _written: std::fmt::Result = write!(text, "{:x}\r\n{event}\r\n", event.len());
    }
    text.push_str("0\r\n\r\n");
    text.into_bytes()
}

fn whole(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
