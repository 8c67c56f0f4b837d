//! The four ways in which providers speak: which requests are model calls, where an answer tells
//! its usage, and how an error is worded.
//!
//! Pure: it knows nothing of connections, keys or budgets.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use kapi_spend::rules::tokens::TokenCounts;
use serde_json::Value;

use crate::model::pick::Path;

/// One of the four ways to speak to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelDialect {
    /// Anthropic Messages, as Claude Code speaks it.
    Anthropic,
    /// OpenAI Responses, as Codex speaks it.
    Responses,
    /// OpenAI Chat Completions, as nearly every other server speaks it.
    Chat,
    /// Gemini, as Google's own CLI speaks it.
    Gemini,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPurpose {
    /// It makes a model work, and so costs.
    ModelCall,
    /// It lists models or counts tokens, and costs nothing.
    Inquiry,
}

/// An allowed request: what it is for, and its path below the provider's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderRequest {
    pub(crate) purpose: RequestPurpose,
    /// The version the agent wrote before the path, such as `v1`.
    pub(crate) version: Option<String>,
    /// The path after the version, with its first slash.
    pub(crate) tail: String,
}

/// The kinds of error that the gateway answers with by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayErrorKind {
    /// The request is not allowed; asking again will not help.
    Forbidden,
    /// The request cannot be read.
    BadRequest,
    /// The request is too large.
    TooLarge,
    /// The budget is spent. Not a rate limit: agents wait minutes for one of those.
    Spent,
    /// The provider cannot be reached; asking again may help.
    Unreachable,
    /// The provider does not go on; asking again may help.
    Stalled,
    /// The gateway is busy; asking again will help.
    Busy,
    /// There is nothing recorded for this request.
    NotRecorded,
}

impl GatewayErrorKind {
    /// Returns the status code that agents act rightly on.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::BadRequest | Self::Spent => 400,
            Self::TooLarge => 413,
            Self::Unreachable => 502,
            Self::Stalled => 504,
            Self::Busy => 503,
            Self::NotRecorded => 501,
        }
    }

    /// Tells whether the agent does well to ask again.
    pub(crate) const fn is_passing(self) -> bool {
        matches!(self, Self::Unreachable | Self::Stalled | Self::Busy)
    }
}

impl ModelDialect {
    /// Returns what a request is for, or nothing where it is none that an agent needs.
    pub(crate) fn request(self, method: &str, path: &str) -> Option<ProviderRequest> {
        if !path.starts_with('/') || path.contains("//") || path.split('/').any(is_dots) {
            return None;
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.:".contains(&byte);
        if !path.bytes().all(is_plain) {
            return None;
        }
        let (version, tail) = split_version(path);
        let purpose = match self {
            Self::Anthropic => anthropic::purpose(method, tail),
            Self::Responses => responses::purpose(method, tail),
            Self::Chat => chat::purpose(method, tail),
            Self::Gemini => gemini::purpose(method, tail),
        }?;
        Some(ProviderRequest {
            purpose,
            version: version.map(str::to_owned),
            tail: tail.to_owned(),
        })
    }

    /// Tells whether a request may have this query. Google lets a query change the form of an
    /// answer, and leave its usage out.
    pub(crate) fn allows_query(self, query: &str) -> bool {
        match self {
            Self::Anthropic | Self::Responses | Self::Chat => true,
            Self::Gemini => gemini::allows_query(query),
        }
    }

    /// Returns the version in the paths of a provider whose base URL names none.
    pub(crate) const fn default_version(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Responses | Self::Chat => "v1",
            Self::Gemini => "v1beta",
        }
    }

    /// Returns where the objects with usage are in an answer, or in one event of it.
    pub(crate) const fn usage_paths(self) -> &'static [Path] {
        match self {
            Self::Anthropic => anthropic::USAGE,
            Self::Responses => responses::USAGE,
            Self::Chat => chat::USAGE,
            Self::Gemini => gemini::USAGE,
        }
    }

    /// Reads an object with usage: what the call has used in all so far, as far as it tells.
    pub(crate) fn usage(self, text: &[u8]) -> Option<TokenCounts> {
        match self {
            Self::Anthropic => anthropic::usage(text),
            Self::Responses => responses::usage(text),
            Self::Chat => chat::usage(text),
            Self::Gemini => gemini::usage(text),
        }
    }

    /// Tells whether usage found by one of the paths is the last word on it, in a stream that
    /// told some first in the event `first_reported_at`.
    pub(crate) const fn is_final(self, wanted_idx: usize, first_reported_at: u64) -> bool {
        match self {
            Self::Anthropic => wanted_idx == anthropic::FINAL_IDX,
            Self::Responses => true,
            // Some servers tell the usage so far with each chunk, from the first on.
            Self::Chat => first_reported_at > 0,
            Self::Gemini => false,
        }
    }

    /// Words an error as the provider would.
    pub(crate) fn error_body(self, fault: GatewayErrorKind, message: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::error_body(fault, message),
            Self::Responses | Self::Chat => chat::error_body(fault, message),
            Self::Gemini => gemini::error_body(fault, message),
        }
    }

    /// Words an error as an event of a running stream.
    pub(crate) fn error_event(self, fault: GatewayErrorKind, message: &str) -> String {
        match self {
            Self::Anthropic => format!(
                "event: error\ndata: {}\n\n",
                anthropic::error_body(fault, message)
            ),
            Self::Responses => responses::error_event(message),
            Self::Chat => format!("data: {}\n\n", chat::error_body(fault, message)),
            Self::Gemini => format!("data: {}\n\n", gemini::error_body(fault, message)),
        }
    }
}

fn is_dots(segment: &str) -> bool {
    segment == "." || segment == ".."
}

/// Tells whether a path's segment is a version: `v1`, `v1beta`, `v4`.
pub(crate) fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else {
        return false;
    };
    rest.starts_with(|first: char| first.is_ascii_digit())
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

fn split_version(path: &str) -> (Option<&str>, &str) {
    let without = path.strip_prefix('/').unwrap_or(path);
    match without.split_once('/') {
        Some((version, _)) if is_version(version) => {
            let tail = without.get(version.len()..).unwrap_or_default();
            (Some(version), tail)
        }
        Some(_) | None => (None, path),
    }
}

/// Returns what a request that every provider but Google's knows in this form is for.
fn models_purpose(method: &str, tail: &str) -> Option<RequestPurpose> {
    let is_list = tail == "/models" || tail.starts_with("/models/");
    (method == "GET" && is_list).then_some(RequestPurpose::Inquiry)
}

#[cfg(test)]
mod tests;
