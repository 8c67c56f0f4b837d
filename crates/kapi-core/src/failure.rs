//! What the world could not do, and what to do about it.

use std::error::Error;

use serde::{Deserialize, Serialize};

/// A refusal of the world: neither the agent's fault nor a rule's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What could not be done and why, as a fragment after "failed to".
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Returns an error and its causes in one line; a cause that the text before ends with is not repeated.
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
    text
}
