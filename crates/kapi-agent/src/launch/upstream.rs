//! The server a run's model is asked at, outside of the sandbox.
//!
//! The agent itself only ever learns of the gateway: its address and a placeholder for the key.
//! Knows nothing of how the gateway works.

use std::fmt;

/// The gateway, as the agent sees it.
#[derive(Debug, Clone, Copy)]
pub struct GatewayAddress<'a> {
    /// Its address without a path: `http://127.0.0.1:8377`.
    pub url: &'a str,
    /// What stands for the key; the gateway takes nothing else.
    pub placeholder: &'a str,
}

/// Where the gateway sends what an agent asks of its model, and how it proves itself there.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentUpstream {
    /// The server and the part of the path that every request begins with.
    pub base_url: String,
    /// The key; `None` for a server that wants none.
    pub key: Option<String>,
    /// Where the key stands in a request.
    pub key_location: KeyLocation,
    /// The language spoken.
    pub dialect: UpstreamDialect,
}

/// Where a key stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLocation {
    /// `x-api-key: KEY`.
    XApiKey,
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-goog-api-key: KEY`.
    XGoogApiKey,
}

/// The languages in which models are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamDialect {
    /// Anthropic's messages.
    Anthropic,
    /// `OpenAI`'s responses.
    Responses,
    /// Chat completions, as `OpenAI` began them and many servers speak them.
    Chat,
    /// Google's `generateContent`.
    Gemini,
}

impl fmt::Debug for AgentUpstream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key must not get into a log by way of a derived implementation.
        out.debug_struct("Upstream")
            .field("base_url", &self.base_url)
            .field("has_key", &self.key.is_some())
            .field("key_place", &self.key_location)
            .field("dialect", &self.dialect)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentUpstream, KeyLocation, UpstreamDialect};

    #[test]
    fn a_key_is_never_shown() {
        let upstream = AgentUpstream {
            base_url: "https://a.b".to_owned(),
            key: Some("sk-secret".to_owned()),
            key_location: KeyLocation::Bearer,
            dialect: UpstreamDialect::Chat,
        };
        assert!(!format!("{upstream:?}").contains("sk-secret"));
    }
}
