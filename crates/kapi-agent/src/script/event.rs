//! What the embedded script agent prints, one JSON object a line.
//!
//! Written by `script::runner` and read by the stream parser; nobody else depends on it.

use kapi_core::agent_end::Claim;
use serde::{Deserialize, Serialize};

/// One line of the script agent's standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ScriptEvent {
    /// A step that acts begins.
    Tool {
        /// `write` or `bash`.
        name: String,
        /// The path or the command.
        detail: String,
    },
    /// What a shell command printed, and how it ended.
    Output {
        /// The end of both outputs, capped.
        text: String,
        /// The exit code; `None` when it was killed.
        exit_code: Option<i32>,
    },
    /// Something said.
    Say {
        /// The words.
        text: String,
    },
    /// A claim.
    Claim {
        /// What is claimed.
        claim: Claim,
    },
    /// Usage.
    Used {
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
        /// Cost in millionths of a US dollar.
        usd_micros: Option<u64>,
    },
    /// The turn is over.
    End,
}
