//! The profiles that come with Kapi, written as a person would write them.
//!
//! Constant text, read by the same reader as every file: what is shown is what counts.

use std::path::Path;

use crate::error::Error;
use crate::profile::read::{self, ProfileOrigin};
use crate::profile::{ProfileFile, ProfileOwner};

/// The profile of a launch that names none.
pub(crate) const DEFAULT: &str = "claude";

/// One profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltIn {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its text, an `agent-sandbox.yaml`.
    pub(crate) text: &'static str,
}

/// The profiles.
pub(crate) const ALL: &[BuiltIn] = &[
    BuiltIn {
        name: "claude",
        text: include_str!("built_in/claude.yaml"),
    },
    BuiltIn {
        name: "codex",
        text: include_str!("built_in/codex.yaml"),
    },
    BuiltIn {
        name: "gemini",
        text: include_str!("built_in/gemini.yaml"),
    },
    BuiltIn {
        name: "aider",
        text: include_str!("built_in/aider.yaml"),
    },
    BuiltIn {
        name: "pi",
        text: include_str!("built_in/pi.yaml"),
    },
    BuiltIn {
        name: "interactive",
        text: include_str!("built_in/interactive.yaml"),
    },
];

/// Returns the profile of a name, which may be any that its agent goes by.
pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    use kapi_agent::hook::agent_type::AgentType;
    let exact = ALL.iter().find(|profile| profile.name == name);
    let of_kind = match AgentType::from_name(name) {
        AgentType::ClaudeCli => Some("claude"),
        AgentType::CodexCli => Some("codex"),
        AgentType::GeminiCli => Some("gemini"),
        AgentType::Aider => Some("aider"),
        AgentType::Interactive => Some("interactive"),
        AgentType::Python | AgentType::Unknown => None,
    };
    exact.or_else(|| ALL.iter().find(|profile| Some(profile.name) == of_kind))
}

/// Reads a built-in profile.
pub(crate) fn read(built_in: &BuiltIn, home: &Path) -> Result<ProfileFile, Error> {
    let location = ProfileOrigin {
        name: built_in.name,
        path: None,
        owner: ProfileOwner::Person,
        home,
        trust_hint: "",
    };
    read::read(built_in.text, &location)
}
