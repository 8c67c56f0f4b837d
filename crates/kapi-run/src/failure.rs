//! From an adapter's error to the failure the engine records.
//!
//! Keeps every cause in the message and the advice apart from it.

use std::error::Error;

use kapi_agent::agent::AgentError;
use kapi_core::failure::Failure;
use kapi_core::quote::head;
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
    let text = kapi_core::failure::chain(error);
    head(&text, MESSAGE_BYTES_MAX).to_owned()
}
