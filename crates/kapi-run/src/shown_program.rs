//! Programs that a person named inside a command, made visible in the sandbox of an agent.
//!
//! The program that the launch itself names is shown by whoever starts it; these are behind a shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kapi_agent::acp::PROGRAM_VARIABLE;
use kapi_agent::agent::AgentKind;
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_sandbox::expose;
use kapi_sandbox::spec::Mount;

use crate::host_grants::HostGrants;
use crate::{confine, failure};

/// What makes a program usable inside.
#[derive(Debug, Default)]
pub(crate) struct ShownProgram {
    /// What must be mounted.
    pub(crate) mounts: Vec<Mount>,
    /// Directories for the front of `PATH`.
    pub(crate) path_first: Vec<PathBuf>,
    /// Variables by which it is found.
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl ShownProgram {
    /// Shows what an agent's command names; nothing for agents that are no commands.
    pub(crate) fn of(
        kind: &AgentKind,
        grants: &HostGrants,
        level: SandboxLevel,
    ) -> Result<Self, Failure> {
        match kind {
            AgentKind::Command(shell) => Ok(Self {
                mounts: program_of(shell, grants),
                ..Self::default()
            }),
            AgentKind::Acp(command) => of_acp(kind, command, grants, level),
            AgentKind::Claude
            | AgentKind::Codex
            | AgentKind::Gemini
            | AgentKind::Pi
            | AgentKind::Script(_) => Ok(Self::default()),
        }
    }
}

/// Shows the program of an ACP agent, which is found as that of any other agent is.
fn of_acp(
    kind: &AgentKind,
    command: &str,
    grants: &HostGrants,
    level: SandboxLevel,
) -> Result<ShownProgram, Failure> {
    // An image has programs of its own.
    let first = command.split_whitespace().next();
    let Some(name) = first.filter(|_| level != SandboxLevel::Podman) else {
        return Ok(ShownProgram::default());
    };
    let program = find_program(grants, kind, name)?;
    if level == SandboxLevel::None {
        return Ok(ShownProgram {
            env: vec![(PROGRAM_VARIABLE.into(), program.into())],
            ..ShownProgram::default()
        });
    }
    let exposed = expose::expose(&program, &grants.search_path(), &grants.home)
        .map_err(|error| failure::sandbox(&error))?;
    Ok(ShownProgram {
        mounts: exposed.mounts,
        path_first: exposed.path,
        env: vec![(PROGRAM_VARIABLE.into(), exposed.program.into())],
    })
}

/// Returns an agent's program on this host.
pub(crate) fn find_program(
    grants: &HostGrants,
    kind: &AgentKind,
    name: &str,
) -> Result<PathBuf, Failure> {
    grants.find_program(name).ok_or_else(|| Failure {
        message: format!("find the program of agent {}: {name}", kind.name()),
        hint: Some(format!(
            "install it, or set `command` under [agents.{}] in the configuration; see `kapi \
             doctor --agents`.",
            kind.name()
        )),
    })
}

/// Makes the program that a command agent is visible inside: a path that begins the command, or
/// that follows an interpreter. The person typed it to be run; nothing else it names is shown.
fn program_of(shell: &str, grants: &HostGrants) -> Vec<Mount> {
    const INTERPRETERS: &[&str] = &[
        "sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby", "exec",
    ];
    let mut words = shell.split_whitespace();
    let program = match words.next() {
        Some(first) if INTERPRETERS.contains(&first) => words.next(),
        first => first,
    };
    let is_file = |path: &&Path| path.is_absolute() && path.is_file();
    let Some(path) = program.map(Path::new).filter(is_file) else {
        return Vec::new();
    };
    let mut mounts = expose::expose(path, &grants.search_path(), &grants.home)
        .map(|exposed| exposed.mounts)
        .unwrap_or_default();
    if mounts.is_empty() && !path.starts_with("/usr") {
        mounts.push(confine::read_only(path, path));
    }
    mounts
}
