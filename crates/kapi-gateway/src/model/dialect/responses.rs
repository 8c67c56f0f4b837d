//! OpenAI Responses.
//!
//! Knows the shapes of requests, usage and errors, and nothing else.

use kapi_core::usage::Usage;
use serde::Deserialize;
use serde_json::json;

use super::{Purpose, models_purpose};
use crate::model::pick::Path;

/// In the event that ends a stream, and on top of a whole answer.
pub(super) const USAGE: &[Path] = &[&["response", "usage"], &["usage"]];

#[derive(Deserialize)]
struct Counts {
    input_tokens: u64,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

pub(super) fn purpose(method: &str, tail: &str) -> Option<Purpose> {
    match (method, tail) {
        // Compaction is a model's work too.
        ("POST", "/responses" | "/responses/compact") => Some(Purpose::ModelCall),
        ("POST", "/responses/input_tokens") => Some(Purpose::Inquiry),
        _ => models_purpose(method, tail),
    }
}

pub(super) fn usage(text: &[u8]) -> Option<Usage> {
    let counts: Counts = serde_json::from_slice(text).ok()?;
    let beyond_input = counts
        .total_tokens
        .unwrap_or(0)
        .saturating_sub(counts.input_tokens);
    Some(Usage {
        input_tokens: counts.input_tokens,
        output_tokens: counts.output_tokens.unwrap_or(0).max(beyond_input),
        usd_micros: None,
    })
}

/// Ends a stream the way that the CLI knows as final.
pub(super) fn error_event(message: &str) -> String {
    let event = json!({
        "type": "response.failed",
        "response": {
            "id": "resp_kapi",
            "object": "response",
            "status": "failed",
            "output": [],
            "error": { "code": "insufficient_quota", "message": message },
        },
    });
    format!("event: response.failed\ndata: {event}\n\n")
}
