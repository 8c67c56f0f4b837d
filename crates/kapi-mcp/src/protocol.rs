//! The revisions of the protocol: how a client says which one it speaks and what it can do.
//!
//! Up to 2025-11-25 both are agreed on once, in a handshake; since 2026-07-28 each request carries
//! them. Both kinds are served side by side, each request as it says.

use serde_json::{Value, json};

use crate::message::{INVALID_PARAMS, RequestError};

/// The revisions that agree by a handshake, the newest first.
pub const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision whose requests say everything themselves.
pub const REQUEST_VERSION: &str = "2026-07-28";
/// The first revision whose questions to a person name their mode.
const MODES_SINCE: &str = "2025-11-25";
/// The code for a revision that is not spoken here.
const UNSUPPORTED_VERSION: i64 = -32_022;
/// Milliseconds for which a client may keep the list of tools: it changes with the program alone.
const LIST_TTL_MS: u64 = 3_600_000;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How versions and abilities are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolEra {
    /// Once, in a handshake.
    Handshake,
    /// By each request.
    PerRequest,
}

/// What holds for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTerms {
    /// How versions and abilities are told.
    pub era: ProtocolEra,
    /// Whether the client asks its person what a server wants to know.
    pub has_dialogs: bool,
    /// Whether a question names its mode.
    pub names_mode: bool,
}

impl ClientTerms {
    /// What holds before a client has said anything.
    pub const UNKNOWN: Self = Self {
        era: ProtocolEra::Handshake,
        has_dialogs: false,
        names_mode: false,
    };

    /// Returns what a handshake agrees on, and the version: one that both speak, or else the newest
    /// of ours, which the client may refuse.
    #[must_use]
    pub fn agreed(params: &Value) -> (Self, &'static str) {
        let wanted = params.get("protocolVersion").and_then(Value::as_str);
        let mut versions = HANDSHAKE_VERSIONS.into_iter();
        let version = versions
            .find(|version| Some(*version) == wanted)
            .unwrap_or(HANDSHAKE_VERSIONS[0]);
        let terms = Self {
            era: ProtocolEra::Handshake,
            has_dialogs: has_dialogs(&params["capabilities"]),
            names_mode: version >= MODES_SINCE,
        };
        (terms, version)
    }

    /// Returns what holds for a request: what it says itself, or else what was agreed on.
    ///
    /// # Errors
    /// When it names a version that is not spoken here, or leaves out what it must say.
    pub fn of_request(params: &Value, agreed: Self) -> Result<Self, RequestError> {
        let meta = &params["_meta"];
        let Some(version) = meta.get(VERSION_KEY) else {
            return Ok(agreed);
        };
        if version.as_str() != Some(REQUEST_VERSION) {
            let spoken = [&[REQUEST_VERSION][..], &HANDSHAKE_VERSIONS].concat();
            return Err(RequestError {
                code: UNSUPPORTED_VERSION,
                text: "unsupported protocol version".to_owned(),
                data: Some(json!({"supported": spoken, "requested": version})),
            });
        }
        let capabilities = meta.get(CAPABILITIES_KEY).filter(|it| it.is_object());
        let capabilities = capabilities.ok_or_else(|| {
            let text = format!("_meta must have {CAPABILITIES_KEY}");
            RequestError::new(INVALID_PARAMS, text)
        })?;
        Ok(Self {
            era: ProtocolEra::PerRequest,
            has_dialogs: has_dialogs(capabilities),
            names_mode: true,
        })
    }
}

/// Returns the answer to a handshake.
#[must_use]
pub fn initialized(version: &str, instructions: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": instructions,
    })
}

/// Returns the answer to a client that asks what there is before it asks for anything.
#[must_use]
pub fn discovered(instructions: &str) -> Value {
    let spoken = [&[REQUEST_VERSION][..], &HANDSHAKE_VERSIONS].concat();
    json!({
        "supportedVersions": spoken,
        "capabilities": {"tools": {}},
        "instructions": instructions,
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    })
}

/// Returns the list of tools as an answer.
#[must_use]
pub fn listed(era: ProtocolEra, tools: &[Value]) -> Value {
    let mut answer = json!({"tools": tools});
    if era == ProtocolEra::PerRequest {
        answer["ttlMs"] = json!(LIST_TTL_MS);
        answer["cacheScope"] = json!("private");
    }
    answer
}

/// Returns a result as its era has it: one that is whole by itself says what it is and whose.
#[must_use]
pub fn enveloped(era: ProtocolEra, mut result: Value) -> Value {
    if era == ProtocolEra::PerRequest {
        if result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        result["_meta"] = json!({ SERVER_KEY: server_info() });
    }
    result
}

fn server_info() -> Value {
    json!({"name": "kapi", "title": "Kapi", "version": env!("CARGO_PKG_VERSION")})
}

/// An empty ability is the one that came first: forms.
fn has_dialogs(capabilities: &Value) -> bool {
    match capabilities.get("elicitation").and_then(Value::as_object) {
        Some(modes) => modes.is_empty() || modes.contains_key("form"),
        None => false,
    }
}
