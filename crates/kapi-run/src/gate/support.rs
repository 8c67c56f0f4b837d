//! Whether an agent can be stopped before a tool runs: its hooks, and what would outrank them.
//!
//! Looks at the kind of agent and at its workspace; no run is under way yet.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::gate::asks;
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;

/// A file of the repository that outranks Gemini CLI's own hooks.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";

/// Says why an agent cannot have a contract with an ask-before list, if it cannot.
///
/// # Errors
/// When nothing asks before what the agent runs: the list would be words.
pub fn check(kind: &AgentKind, ask_before: &[String]) -> Result<(), Failure> {
    if ask_before.is_empty() || asks(kind) {
        return Ok(());
    }
    Err(Failure {
        message: format!(
            "ask before a {} agent runs commands: it has no permission hook",
            kind.name()
        ),
        hint: Some(
            "use claude, codex, gemini, pi or a script, which support this, or remove the \
             ask-before list."
                .to_owned(),
        ),
    })
}

/// Refuses a repository whose own settings would outrank the hooks, where they cannot be covered.
pub(super) fn check_settings(
    kind: &AgentKind,
    level: SandboxLevel,
    workspace: &Path,
) -> Result<(), Failure> {
    let theirs = workspace.join(GEMINI_SETTINGS);
    let is_there = theirs.symlink_metadata().is_ok();
    if *kind != AgentKind::Gemini || level != SandboxLevel::None || !is_there {
        return Ok(());
    }
    Err(Failure {
        message: format!("ask before gemini runs commands: {GEMINI_SETTINGS} overrides its hooks"),
        hint: Some("run it in a sandbox, which hides that file.".to_owned()),
    })
}
