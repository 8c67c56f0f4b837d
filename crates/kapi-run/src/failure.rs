//! From an adapter's error to the failure the engine records.
//!
//! Keeps every cause in the message and the advice apart from it.

use std::error::Error;

use kapi_agent::agent::AgentError;
use kapi_core::failure::Failure;
use kapi_sandbox::error::SandboxError;

/// Bytes of a failure's message that are kept.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// Returns the failure for an error without advice.
pub fn plain(error: &dyn Error) -> Failure {
    Failure {
        message: chain(error),
        hint: None,
    }
}

/// Returns the failure for a sandbox that could not be made.
pub fn sandbox(error: &SandboxError) -> Failure {
    Failure {
        message: chain(error),
        hint: error.hint().map(str::to_owned),
    }
}

/// Returns the failure for an agent that could not be launched.
pub fn agent(error: &AgentError) -> Failure {
    Failure {
        message: chain(error),
        hint: error.hint(),
    }
}

/// Returns the failure for a file that could not be read or written.
pub fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure {
        message: format!("{what} {}: {error}", path.display()),
        hint: None,
    }
}

/// Returns an error and its causes in one line, capped.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    let mut end = text.len().min(MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
