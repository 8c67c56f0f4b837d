//! What a run's agent is shown of its gate: the post where it asks, and hooks that it cannot change.
//!
//! Knows no question.

use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::gate::{GateSocket, sealed_file};
use kapi_core::goal::contract::SandboxLevel;
use kapi_core::goal::outcome::Failure;
use kapi_sandbox::spec::Mount;

use super::Gate;
use crate::book::Book;
use crate::confine::{self, Cell};

/// A file of the repository that outranks Gemini CLI's own hooks.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";

impl Gate<'_> {
    /// Returns what is mounted into the sandbox: the socket's directory, the program, and over the
    /// agent's hooks themselves, so that it cannot write them.
    pub(crate) fn mounts(&self, kind: &AgentKind, cell: &Cell<'_>, book: &Book) -> Vec<Mount> {
        let mut mounts = self.post.mounts(&book.self_exe);
        if mounts.is_empty() {
            return mounts;
        }
        let sealed = sealed_file(kind);
        mounts.extend(sealed.map(|file| {
            confine::read_only(&cell.home.join(file), &cell.home_seen(book).join(file))
        }));
        mounts
    }

    /// Returns the gate, as the agent sees it.
    pub(crate) fn seen_inside(&self) -> GateSocket<'_> {
        GateSocket {
            program: &self.program,
            socket: &self.socket,
        }
    }
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
        message: format!("ask before what gemini runs: {GEMINI_SETTINGS} outranks its hooks"),
        hint: Some("run it in a sandbox, where that file is covered.".to_owned()),
    })
}
