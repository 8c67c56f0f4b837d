//! What an answer with an error status means, whichever server sent it.
//!
//! Servers word errors in many ways: the status decides first, and a few words where it does not.

use serde_json::Value;

use crate::ask::error::AskError;
use crate::ask::line::{AskConnection, RawAnswer};
use crate::ask::reset;
use crate::model::secret::Scrubber;

/// Characters of a server's own words that are kept.
const MESSAGE_CHARS_MAX: usize = 300;

/// Words by which servers say that an account is empty; waiting does not help then.
const EMPTY_ACCOUNT: [&str; 4] = [
    "insufficient_quota",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
];
/// Words by which servers say that a key is wrong with a status that says otherwise.
const WRONG_KEY: [&str; 2] = ["api_key_invalid", "invalid_api_key"];

/// Returns what an answer that is none means.
pub(crate) fn error_of(line: &AskConnection<'_>, model: &str, raw: &RawAnswer) -> AskError {
    let host = line.host.clone();
    let shown = Scrubber::new(line.upstream.key.as_ref()).whole(&raw.body);
    let body: Value = serde_json::from_slice(&shown).unwrap_or(Value::Null);
    let message = message_of(&body, &shown);
    let lower = String::from_utf8_lossy(&shown).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let status = raw.status;
    if status == 402 || (matches!(status, 400 | 403 | 429) && says(&EMPTY_ACCOUNT)) {
        return AskError::OutOfCredit { host, message };
    }
    let is_key = matches!(status, 401 | 403) || (status == 400 && says(&WRONG_KEY));
    if is_key {
        return AskError::Unauthorised {
            host,
            status,
            message,
        };
    }
    // A 404 without such words is rather a path that the server does not have.
    let is_model = (status == 404 && says(&["model"])) || says(&["model_not_found"]);
    match status {
        400..=499 if is_model => AskError::UnknownModel {
            host,
            model: model.to_owned(),
        },
        429 => AskError::RateLimited {
            host,
            message,
            reset_after_ms: reset::after_ms(raw, &body),
        },
        408 | 425 | 500 | 502..=599 => AskError::Overloaded {
            host,
            status,
            message,
            retry_after_ms: reset::after_ms(raw, &body),
        },
        _ => AskError::Rejected {
            host,
            status,
            message,
        },
    }
}

/// Returns what a server says in words, capped and without control characters.
fn message_of(body: &Value, text: &[u8]) -> String {
    let first = body.get(0).unwrap_or(body);
    let locations = [
        &first["error"]["message"],
        &first["error"],
        &first["message"],
        &first["detail"],
    ];
    let worded = locations.into_iter().find_map(Value::as_str);
    let text = String::from_utf8_lossy(text);
    let message = worded.unwrap_or(&text);
    let plain = message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c });
    let capped: String = plain.take(MESSAGE_CHARS_MAX).collect();
    let trimmed = capped.trim();
    if trimmed.is_empty() {
        "it gave no reason".to_owned()
    } else {
        trimmed.to_owned()
    }
}
