//! OpenAI Chat Completions, and whoever speaks like it.
//!
//! Knows the shapes of requests, usage and errors, and nothing else.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GatewayErrorKind, RequestPurpose, models_purpose};
use crate::model::pick::Path;

/// On top of an answer, and of the last chunk of a stream; one provider has a corner of its own.
pub(super) const USAGE: &[Path] = &[&["usage"], &["x_groq", "usage"]];

#[derive(Deserialize)]
struct ChatCounts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<ChatTokenDetails>,
}

#[derive(Deserialize)]
struct ChatTokenDetails {
    cached_tokens: Option<u64>,
}

pub(super) fn purpose(method: &str, tail: &str) -> Option<RequestPurpose> {
    match (method, tail) {
        ("POST", "/chat/completions") => Some(RequestPurpose::ModelCall),
        _ => models_purpose(method, tail),
    }
}

pub(super) fn usage(text: &[u8]) -> Option<TokenCounts> {
    let counts: ChatCounts = serde_json::from_slice(text).ok()?;
    let input_tokens = counts.prompt_tokens?;
    // Some providers leave reasoning out of the completion and only the total has it.
    let beyond_input = counts
        .total_tokens
        .unwrap_or(0)
        .saturating_sub(input_tokens);
    let output_tokens = counts.completion_tokens.unwrap_or(0).max(beyond_input);
    let cached = counts.prompt_tokens_details;
    let cached = cached.and_then(|cached| cached.cached_tokens).unwrap_or(0);
    Some(TokenCounts::with_cached(
        input_tokens,
        cached,
        output_tokens,
    ))
}

pub(super) fn error_body(fault: GatewayErrorKind, message: &str) -> Value {
    let (kind, code) = match fault {
        GatewayErrorKind::Forbidden => ("invalid_request_error", "forbidden"),
        GatewayErrorKind::BadRequest | GatewayErrorKind::TooLarge => {
            ("invalid_request_error", "bad_request")
        }
        GatewayErrorKind::Spent => ("insufficient_quota", "insufficient_quota"),
        GatewayErrorKind::Unreachable => ("server_error", "provider_unreachable"),
        GatewayErrorKind::Stalled => ("server_error", "provider_stalled"),
        GatewayErrorKind::Busy => ("server_error", "gateway_busy"),
        GatewayErrorKind::NotRecorded => ("invalid_request_error", "not_recorded"),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
