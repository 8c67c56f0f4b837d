//! What the scripted model server remembers of each request.
//! It keeps no key: only its length and hash.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::model_server::fault::FaultKind;

/// The API that a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI chat completions.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Gemini `generateContent` and `streamGenerateContent`.
    Gemini,
}

/// One request, recorded before it is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The API; absent for probes and unknown paths.
    pub api: Option<Api>,
    /// The HTTP method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The model asked for; empty for probes.
    pub model: String,
    /// The index of the step that the request stands at, where it plays one.
    pub step: Option<usize>,
    /// What the server made of it.
    pub answer: ServedAnswer,
    /// The key presented; absent where none was.
    pub key_fingerprint: Option<KeyFingerprint>,
    /// The names of the tools the client offers.
    pub tools: Vec<String>,
    /// The last user message, without tool results and reminders.
    pub last_user: String,
    /// The last tool result.
    pub last_tool_result: String,
    /// The whole body; null where it is not JSON.
    pub body: Value,
}

/// What a request was answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedAnswer {
    /// A step of the scenario or of a route.
    Step,
    /// A judge rule's verdict.
    Judge,
    /// A request that offers no tools: some text, no step used.
    Side,
    /// An injected failure.
    Fault(FaultKind),
    /// Status 401: not the required key.
    Denied,
    /// A token count.
    Count,
    /// A model list or a sign of life.
    Probe,
    /// An error status, because the server does not know the path or cannot read the body.
    Refused(u16),
}

/// A key's length and hash, enough to tell which key was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFingerprint {
    /// The length in bytes.
    pub len: usize,
    /// SHA-256 in lowercase hex.
    pub sha256: String,
}

impl KeyFingerprint {
    /// Returns the fingerprint of a key.
    pub fn of(key: &str) -> Self {
        let sha256 = Sha256::digest(key.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            len: key.len(),
            sha256,
        }
    }
}
