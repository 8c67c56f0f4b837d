//! What a provider's failure is, from a status or from words.
//!
//! The CLIs pass on their provider's errors as prose. What is recognised here was seen in real
//! runs or is the documented wording of a provider; everything else stays unknown, and the caller
//! decides what an unknown failure is. Knows nothing of who retries when.

use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_core::quote::head;

use crate::text::one_line;

/// Bytes of a message that are looked at.
const LOOKED_AT_BYTES_MAX: usize = 8 * 1024;
/// The longest wait a message may ask for, in milliseconds: one week.
const WAIT_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;

/// Returns the failure that a status or a message names, or none.
pub(crate) fn known(status: Option<u64>, message: &str) -> Option<ProviderFailure> {
    let lower = head(message, LOOKED_AT_BYTES_MAX).to_lowercase();
    let status = status.or_else(|| status_in(&lower));
    let kind = status
        .and_then(kind_of_status)
        .or_else(|| kind_of_words(&lower))?;
    Some(ProviderFailure {
        kind,
        message: one_line(message),
        retry_after_ms: retry_after_ms(&lower),
    })
}

/// Returns the failure that an agent reports as its provider's, whatever its words.
///
/// What nobody can classify is taken for a server's error: it may pass, and waits are bounded.
#[must_use]
pub fn reported(status: Option<u64>, message: &str) -> ProviderFailure {
    known(status, message).unwrap_or_else(|| ProviderFailure {
        kind: ProviderFailureKind::ServerError,
        message: one_line(message),
        retry_after_ms: None,
    })
}

/// Returns the failure that the end of standard error names.
///
/// Standard error also carries output of tools, so only the last lines count and only lines that
/// call themselves an error of the API or of the connection.
pub(crate) fn said_on_stderr(tail: &str) -> Option<ProviderFailure> {
    const LINES_MAX: usize = 40;
    let lines: Vec<&str> = tail.lines().collect();
    let last = lines.iter().rev().take(LINES_MAX);
    last.filter(|line| is_api_error(line))
        .find_map(|line| known(None, line))
}

fn is_api_error(line: &str) -> bool {
    const MARKS: &[&str] = &[
        "api error",
        "apierror",
        "unexpected status",
        "econnrefused",
        "fetch failed",
        "api key",
    ];
    let lower = line.to_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
}

/// Tells whether a message says that the model, or its provider's filter, refused the content.
pub(crate) fn is_refusal(message: &str) -> bool {
    const SIGNS: &[&str] = &[
        "usage policy",
        "usage policies",
        "content_filter",
        "content filter",
        "content_policy",
        "safety",
        "prohibited_content",
        "prohibited content",
        "promptfeedback",
        "block_reason",
        "blockreason",
        "blocked the prompt",
        "request blocked",
        "response blocked",
        "cyber_policy",
        "refusal",
        "recitation",
    ];
    let lower = head(message, LOOKED_AT_BYTES_MAX).to_lowercase();
    SIGNS.iter().any(|sign| lower.contains(sign))
}

fn kind_of_status(status: u64) -> Option<ProviderFailureKind> {
    match status {
        429 => Some(ProviderFailureKind::RateLimited),
        401 | 403 => Some(ProviderFailureKind::Unauthorized),
        // A time-out or a conflict is the server's state, not the request's fault.
        408 | 409 | 425 | 500..=599 => Some(ProviderFailureKind::ServerError),
        400..=499 => Some(ProviderFailureKind::BadRequest),
        _ => None,
    }
}

/// Returns the HTTP status a message names.
fn status_in(lower: &str) -> Option<u64> {
    const MARKS: &[&str] = &[
        "api error: ",
        "unexpected status ",
        "last status: ",
        "status code: ",
        "status code ",
        "status: ",
        "\"code\":",
        "\"code\": ",
        "\\\"code\\\":",
        "\\\"code\\\": ",
        "http ",
        "http/1.1 ",
        "error code: ",
        "rejected (",
    ];
    let after_mark = |mark: &str| {
        let (_, rest) = lower.split_once(mark)?;
        status_at_start(rest)
    };
    status_at_start(lower).or_else(|| MARKS.iter().find_map(|mark| after_mark(mark)))
}

/// Returns the status a text begins with: exactly three digits from 400 to 599.
fn status_at_start(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits != 3 {
        return None;
    }
    text.get(..3)?
        .parse()
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// What messages without a status say, most telling first.
const WORDS: &[(ProviderFailureKind, &[&str])] = &[
    (
        ProviderFailureKind::Unauthorized,
        &[
            "invalid api key",
            "incorrect api key",
            "api key not valid",
            "api key not found",
            "no api key",
            "authentication",
            "unauthenticated",
            "unauthorized",
            "please run /login",
            "permission_denied",
        ],
    ),
    (
        ProviderFailureKind::RateLimited,
        &[
            "rate limit",
            "rate_limit",
            "too many requests",
            "usage limit",
            "quota",
            "resource_exhausted",
            "resource exhausted",
        ],
    ),
    (
        ProviderFailureKind::Unreachable,
        &[
            "error sending request",
            "econnrefused",
            "connectionrefused",
            "connection refused",
            "connection reset",
            "econnreset",
            "connectionreset",
            "unable to connect",
            "connection error",
            "connection failed",
            "fetch failed",
            "enotfound",
            "eai_again",
            "could not resolve",
            "socket hang up",
            "etimedout",
            "timed out",
            "timeout",
        ],
    ),
    (
        ProviderFailureKind::TruncatedStream,
        &[
            "stream disconnected",
            "stream closed",
            "stream ended",
            "terminated",
            "premature",
            "unexpected end",
            "error decoding response body",
            "other side closed",
            "without a finish reason",
            "incomplete",
            "aborted",
            "malformed",
            "unexpected token",
            "not valid json",
            "invalid json",
            "failed to parse json",
            "unterminated string",
        ],
    ),
    (
        ProviderFailureKind::EmptyAnswer,
        &[
            "empty response",
            "empty answer",
            "no content",
            "without any content",
        ],
    ),
    (
        ProviderFailureKind::ServerError,
        &[
            "overloaded",
            "internal server error",
            "bad gateway",
            "service unavailable",
            "server_error",
            "high demand",
        ],
    ),
    (
        ProviderFailureKind::BadRequest,
        &[
            "invalid_request",
            "model not found",
            "unknown model",
            "does not exist",
            "model is not supported",
            "credit balance",
            "prompt is too long",
            "invalid_argument",
        ],
    ),
];

fn kind_of_words(lower: &str) -> Option<ProviderFailureKind> {
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // "Stream ended with empty response" is about both; the content is what matters.
    if lower.contains("empty response") {
        return Some(ProviderFailureKind::EmptyAnswer);
    }
    // A connection that was there and went away broke an answer off.
    if lower.contains("was lost") {
        return Some(ProviderFailureKind::TruncatedStream);
    }
    WORDS
        .iter()
        .find(|(_, words)| says(words))
        .map(|(kind, _)| *kind)
}

/// Returns how long a message asks us to wait: "try again in 1.5s", `"retryDelay": "34s"`.
fn retry_after_ms(lower: &str) -> Option<u64> {
    const MARKS: &[&str] = &[
        "try again in ",
        "retry in ",
        "retry after ",
        "retry-after: ",
        "retrydelay",
    ];
    let rest = MARKS
        .iter()
        .find_map(|mark| lower.split_once(mark).map(|(_, rest)| rest))?;
    let rest = rest.trim_start_matches(['"', '\\', ':', ' ']);
    let mut wait_ms = 0_u64;
    let mut rest = rest;
    // At most hours, minutes and seconds.
    for _ in 0..3 {
        let digits = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let (number, after) = rest.split_at(digits);
        let unit_len = after.len()
            - after
                .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                .len();
        let (unit, after) = after.split_at(unit_len);
        let Some(part) = part_ms(number.trim_end_matches('.'), unit) else {
            break;
        };
        wait_ms = wait_ms.saturating_add(part);
        rest = after;
    }
    (wait_ms > 0).then(|| wait_ms.min(WAIT_MS_MAX))
}

fn part_ms(number: &str, unit: &str) -> Option<u64> {
    let unit_ms = match unit {
        "ms" => 1,
        // A bare number is seconds, as in the header.
        "" | "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let fraction_ms = thousandths.saturating_mul(unit_ms) / 1_000;
    Some(whole.saturating_mul(unit_ms).saturating_add(fraction_ms))
}

#[cfg(test)]
mod tests;
