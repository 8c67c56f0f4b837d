//! Where an amount is booked: which project, goal, agent and model, and in what part.
//!
//! Names only; whether they exist is the business of those who give them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In what part a model was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// It worked on the goal.
    Executor,
    /// It judged the work.
    Judge,
}

/// The provider of a person's own programs, which may or may not ask a model.
pub const PROGRAM: &str = "program";

/// Where an amount is booked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The project's key.
    pub project: String,
    /// The goal's id within the project; empty in sums that no longer keep goals apart.
    pub goal: String,
    /// The agent that asked, as the contract names it.
    pub agent: String,
    /// In what part.
    pub role: ModelRole,
    /// Whose price list holds (`anthropic`, `openai`, `gemini`, `local`, `subscription`, [`PROGRAM`] …).
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
}

/// Who serves a model to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider<'a> {
    /// The vendor itself, paid by the token, by its name in the price list.
    ByVendor(&'a str),
    /// A server that was named by its base URL.
    At(&'a str),
    /// The vendor, under a flat subscription that the agent is logged in to.
    BySubscription,
}

/// The name of one reservation. Made from what it is for, so that doing the same again finds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReservationId(String);

impl ModelProvider<'_> {
    /// Returns the name under which prices are looked up.
    ///
    /// A server on this machine is `local`: whether it costs anything only the person knows.
    #[must_use]
    pub fn provider(self) -> String {
        let url = match self {
            Self::ByVendor(vendor) => return vendor.to_owned(),
            Self::BySubscription => return "subscription".to_owned(),
            Self::At(url) => url,
        };
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            Some(_) | None => authority,
        };
        let host = host.to_ascii_lowercase();
        let known = [
            ("api.anthropic.com", "anthropic"),
            ("api.openai.com", "openai"),
            ("generativelanguage.googleapis.com", "gemini"),
            ("openrouter.ai", "openrouter"),
        ];
        let is_address = host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let is_own =
            host == "localhost" || host == "[::1]" || (is_address && host.starts_with("127."));
        match known.into_iter().find(|(name, _)| *name == host) {
            Some((_, provider)) => provider.to_owned(),
            None if is_own => "local".to_owned(),
            None => host,
        }
    }
}

impl fmt::Display for ModelRole {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Executor => "executor",
            Self::Judge => "judge",
        })
    }
}

impl ReservationId {
    /// Names the reservation for one effect of a goal.
    #[must_use]
    pub fn new(project: &str, goal: &str, effect: &str) -> Self {
        Self(format!("{project}/{goal}/{effect}"))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::ModelProvider;

    #[test]
    fn a_server_is_known_by_its_host() {
        for (served, provider) in [
            (ModelProvider::ByVendor("anthropic"), "anthropic"),
            (ModelProvider::BySubscription, "subscription"),
            (ModelProvider::At("https://api.openai.com/v1"), "openai"),
            (
                ModelProvider::At("https://API.Anthropic.com:443"),
                "anthropic",
            ),
            (ModelProvider::At("http://127.0.0.1:11434/v1"), "local"),
            (ModelProvider::At("http://localhost:1234"), "local"),
            (ModelProvider::At("http://[::1]:8080/v1"), "local"),
            (
                ModelProvider::At("https://llm.example.org:8443/v1"),
                "llm.example.org",
            ),
            (
                ModelProvider::At("http://127.example.org"),
                "127.example.org",
            ),
        ] {
            assert_eq!(served.provider(), provider, "{served:?}");
        }
    }
}
