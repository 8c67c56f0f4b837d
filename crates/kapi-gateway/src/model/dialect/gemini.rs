//! Google's Gemini.
//!
//! Knows the shapes of requests, usage and errors, and nothing else.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GatewayErrorKind, RequestPurpose};
use crate::model::pick::{ELEMENT, Path};

/// In a whole answer, in each event, and in each element where a stream is one JSON array.
pub(super) const USAGE: &[Path] = &[&["usageMetadata"], &[ELEMENT, "usageMetadata"]];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCounts {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

pub(super) fn purpose(method: &str, tail: &str) -> Option<RequestPurpose> {
    if method == "GET" && !tail.contains(':') {
        return super::models_purpose(method, tail);
    }
    let (_, verb) = model_and_verb(tail)?;
    match (method, verb) {
        ("POST", "generateContent" | "streamGenerateContent") => Some(RequestPurpose::ModelCall),
        ("POST", "countTokens") => Some(RequestPurpose::Inquiry),
        _ => None,
    }
}

/// Tells whether an answer to a query has the form, and the fields, that usage is read from.
pub(super) fn allows_query(query: &str) -> bool {
    let mut pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.all(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "alt" => matches!(value, "sse" | "json"),
            "key" | "pageSize" | "pageToken" => true,
            _ => false,
        }
    })
}

/// Splits `/models/NAME:verb`.
pub(super) fn model_and_verb(tail: &str) -> Option<(&str, &str)> {
    let (model, verb) = tail.strip_prefix("/models/")?.split_once(':')?;
    (!model.is_empty() && !model.contains('/')).then_some((model, verb))
}

pub(super) fn usage(text: &[u8]) -> Option<TokenCounts> {
    let counts: GeminiCounts = serde_json::from_slice(text).ok()?;
    let known = [
        counts.prompt_token_count,
        counts.candidates_token_count,
        counts.total_token_count,
    ];
    if known.iter().all(Option::is_none) {
        return None;
    }
    let prompt = counts.prompt_token_count.unwrap_or(0);
    let input_tokens = prompt.saturating_add(counts.tool_use_prompt_token_count.unwrap_or(0));
    let written = [counts.candidates_token_count, counts.thoughts_token_count];
    let output = written.into_iter().flatten().fold(0, u64::saturating_add);
    let beyond_input = counts
        .total_token_count
        .unwrap_or(0)
        .saturating_sub(input_tokens);
    let cached = counts.cached_content_token_count.unwrap_or(0);
    let output = output.max(beyond_input);
    Some(TokenCounts::with_cached(input_tokens, cached, output))
}

pub(super) fn error_body(fault: GatewayErrorKind, message: &str) -> Value {
    let status = match fault {
        GatewayErrorKind::Forbidden => "PERMISSION_DENIED",
        GatewayErrorKind::BadRequest | GatewayErrorKind::TooLarge => "INVALID_ARGUMENT",
        GatewayErrorKind::Spent => "FAILED_PRECONDITION",
        GatewayErrorKind::Unreachable | GatewayErrorKind::Busy => "UNAVAILABLE",
        GatewayErrorKind::Stalled => "DEADLINE_EXCEEDED",
        GatewayErrorKind::NotRecorded => "UNIMPLEMENTED",
    };
    json!({ "error": { "code": fault.status(), "message": message, "status": status } })
}
