//! OpenAI Responses.
//!
//! Knows the shapes of requests, usage and errors, and nothing else.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::json;

use super::{RequestPurpose, models_purpose};
use crate::model::pick::Path;

/// In the event that ends a stream, and on top of a whole answer.
pub(super) const USAGE: &[Path] = &[&["response", "usage"], &["usage"]];

#[derive(Deserialize)]
struct ResponsesCounts {
    input_tokens: u64,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<ResponsesTokenDetails>,
}

#[derive(Deserialize)]
struct ResponsesTokenDetails {
    cached_tokens: Option<u64>,
}

pub(super) fn purpose(method: &str, tail: &str) -> Option<RequestPurpose> {
    match (method, tail) {
        // Compaction is a model's work too.
        ("POST", "/responses" | "/responses/compact") => Some(RequestPurpose::ModelCall),
        ("POST", "/responses/input_tokens") => Some(RequestPurpose::Inquiry),
        _ => models_purpose(method, tail),
    }
}

pub(super) fn usage(text: &[u8]) -> Option<TokenCounts> {
    let counts: ResponsesCounts = serde_json::from_slice(text).ok()?;
    let beyond_input = counts
        .total_tokens
        .unwrap_or(0)
        .saturating_sub(counts.input_tokens);
    let output = counts.output_tokens.unwrap_or(0).max(beyond_input);
    let cached = counts.input_tokens_details;
    let cached = cached.and_then(|cached| cached.cached_tokens).unwrap_or(0);
    Some(TokenCounts::with_cached(
        counts.input_tokens,
        cached,
        output,
    ))
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
