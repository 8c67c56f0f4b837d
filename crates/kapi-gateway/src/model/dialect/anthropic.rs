//! Anthropic Messages.
//!
//! Knows the shapes of Anthropic's requests, usage and errors, and nothing else.

use kapi_spend::rules::tokens::TokenCounts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GatewayErrorKind, RequestPurpose, models_purpose};
use crate::model::pick::Path;

/// `message_start` tells the input, `message_delta` the totals; a whole answer has them on top.
pub(super) const USAGE: &[Path] = &[&["message", "usage"], &["usage"]];
/// The path of the totals.
pub(super) const FINAL_IDX: usize = 1;

#[derive(Deserialize)]
struct AnthropicCounts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

/// Where a call was several passes, the totals leave some of them out.
#[derive(Deserialize)]
struct CallIterations {
    iterations: Option<Vec<AnthropicCounts>>,
}

impl AnthropicCounts {
    fn total(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
        }
    }
}

pub(super) fn purpose(method: &str, tail: &str) -> Option<RequestPurpose> {
    match (method, tail) {
        ("POST", "/messages") => Some(RequestPurpose::ModelCall),
        ("POST", "/messages/count_tokens") => Some(RequestPurpose::Inquiry),
        _ => models_purpose(method, tail),
    }
}

pub(super) fn usage(text: &[u8]) -> Option<TokenCounts> {
    let counts: AnthropicCounts = serde_json::from_slice(text).ok()?;
    if counts.input_tokens.is_none() && counts.output_tokens.is_none() {
        return None;
    }
    let usage = counts.total();
    let passes: CallIterations = serde_json::from_slice(text).ok()?;
    let mut all = TokenCounts::default();
    for pass in passes.iterations.iter().flatten() {
        all.add(&pass.total());
    }
    Some(usage.larger(&all))
}

pub(super) fn error_body(fault: GatewayErrorKind, message: &str) -> Value {
    let kind = match fault {
        GatewayErrorKind::Forbidden => "permission_error",
        GatewayErrorKind::BadRequest | GatewayErrorKind::Spent | GatewayErrorKind::NotRecorded => {
            "invalid_request_error"
        }
        GatewayErrorKind::TooLarge => "request_too_large",
        GatewayErrorKind::Unreachable => "api_error",
        GatewayErrorKind::Stalled => "timeout_error",
        GatewayErrorKind::Busy => "overloaded_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
