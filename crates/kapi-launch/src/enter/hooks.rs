//! The hooks of an agent on its own screen: where they report, and how its settings come to have
//! them.
//!
//! Only the settings in the private home are touched. What hooks say moves a word and a number of
//! the run's own status; that is the listener's affair.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::inject::{Injection, inject, settings_file};
use kapi_agent::hook::{HookAgent, lasting_command_line};
use kapi_agent::launch::HomeFile;
use kapi_core::failure::Failure;
use kapi_machine::watch::Activity;
use kapi_run::confine::SandboxConfig;
use kapi_run::failure::chain;
use kapi_run::host_grants::HostGrants;
use kapi_run::run_socket::RunSocket;
use kapi_run::{failure, home};
use kapi_sandbox::spec::Mount;
use kapi_status::perform::listener::HookListener;
use kapi_status::perform::progress_file::ProgressFile;
use kapi_status::perform::watch::StatusSource;
use kapi_status::perform::writer::StatusWriter;
use kapi_status::perform::{StatusError, watch};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use serde_json::{Value, json};

/// Bytes of settings that are read; more are refused by whoever merges them.
const SETTINGS_BYTES_MAX: u64 = (4 << 20) + 1;
/// The mode of the settings: they may hold a key.
const PRIVATE_MODE: u32 = 0o600;

/// Where a project has hooks of its own.
const CODEX_DIR: &str = ".codex";
const GEMINI_DIR: &str = ".gemini";
const GEMINI_SETTINGS: &str = ".gemini/settings.json";

/// The socket of an agent that has hooks; when it is dropped, nobody listens there any more.
pub(super) struct Hooks {
    agent: HookAgent,
    run_socket: RunSocket<HookListener>,
}

/// What became of an agent's settings.
pub(super) struct HookSettings {
    /// Arguments without which the agent would not run its hooks.
    pub(super) args: &'static [&'static str],
    /// Why no status will come from them, as a sentence.
    pub(super) note: Option<String>,
}

impl Hooks {
    /// Opens the socket of an agent, if it has hooks and no others would run with them.
    pub(super) fn open(
        kind: &AgentKind,
        config: &SandboxConfig<'_>,
        scratch: &Path,
        grants: &HostGrants,
        notice: &(dyn Fn(Activity) + Sync),
    ) -> Result<Option<Self>, Failure> {
        let Some(agent) = HookAgent::from_kind(kind) else {
            return Ok(None);
        };
        if let Some(theirs) = rival(agent, config) {
            let text = format!(
                "Hooks do not report status, because they would also enable the project's own {theirs}."
            );
            notice(Activity::Note { text });
            return Ok(None);
        }
        let run_socket =
            RunSocket::open_for_hooks(config.level, &scratch.join("hook"), &grants.self_exe)?;
        Ok(Some(Self { agent, run_socket }))
    }

    /// Returns what is mounted into the sandbox: the socket's directory and the program.
    pub(super) fn mounts(hooks: Option<&Self>, grants: &HostGrants) -> Vec<Mount> {
        hooks.map_or_else(Vec::new, |hooks| hooks.run_socket.mounts(&grants.self_exe))
    }

    /// Turns hooks on where the adapter has turned them off for the project's sake, which has none
    /// here that are not covered.
    pub(super) fn unmute(&self, files: &mut [HomeFile]) -> Result<(), Failure> {
        let path = Path::new(settings_file(self.agent));
        let ours = files.iter_mut().find(|file| file.path == path);
        let (HookAgent::Gemini, Some(file)) = (self.agent, ours) else {
            return Ok(());
        };
        let settings = serde_json::from_slice::<Value>(&file.content);
        let mut settings = settings.map_err(|error| failure::plain(&error))?;
        settings["hooksConfig"] = json!({"enabled": true});
        file.content = format!("{settings:#}\n").into_bytes();
        Ok(())
    }

    /// Merges the hooks into the settings in a private home. Settings that cannot be read are left
    /// as they are: the agent is not kept from its work for its status.
    pub(super) fn merge(&self, home: &Path) -> Result<HookSettings, Failure> {
        let (program, socket) = (self.run_socket.program(), self.run_socket.socket());
        let (Some(program), Some(socket)) = (program.to_str(), socket.to_str()) else {
            return Ok(HookSettings {
                args: &[],
                note: Some(
                    "Hooks do not report status, because their path is not UTF-8.".to_owned(),
                ),
            });
        };
        let command = lasting_command_line(self.agent, program, socket);
        let existing = read(home, settings_file(self.agent))?;
        let injection = match inject(self.agent, existing.as_deref(), &command) {
            Ok(injection) => injection,
            Err(error) => {
                let (message, hint) = (chain(&error), error.hint());
                return Ok(HookSettings {
                    args: &[],
                    note: Some(format!(
                        "Hooks do not report status: failed to {message}. {hint}"
                    )),
                });
            }
        };
        if injection.is_changed {
            let file = HomeFile {
                path: PathBuf::from(injection.file),
                content: injection.content.clone(),
                mode: PRIVATE_MODE,
            };
            home::write_home_file(home, &file)?;
        }
        Ok(HookSettings {
            args: injection.args,
            note: muted(&injection),
        })
    }
}

/// Runs an agent while its hooks and its progress file move its status, and returns what it did.
pub(super) fn follow<T>(
    hooks: Option<&Hooks>,
    workspace: &Path,
    writer: &StatusWriter<'_>,
    notice: &(dyn Fn(Activity) + Sync),
    run: impl FnOnce() -> T,
) -> T {
    let file = ProgressFile::new(workspace);
    let source = match hooks {
        Some(hooks) => StatusSource::Both(&hooks.run_socket.listener, &file),
        None => StatusSource::File(&file),
    };
    let watched = watch::during(writer, source, run);
    let lost = |error: StatusError| {
        let text = format!("The status did not update: failed to {}.", chain(&error));
        notice(Activity::Note { text });
    };
    watched.hooks.map_or_else(&lost, drop);
    watched.file.unwrap_or_else(&lost);
    watched.value
}

/// Returns what of the project could run hooks of its own once ours are let run.
fn rival(agent: HookAgent, config: &SandboxConfig<'_>) -> Option<&'static str> {
    let settings = Path::new(GEMINI_SETTINGS);
    let is_there = |path: &Path| config.workspace.join(path).symlink_metadata().is_ok();
    match agent {
        // It is told to read the home's settings alone.
        HookAgent::Claude => None,
        // Hooks are trusted all or none.
        HookAgent::Codex => is_there(Path::new(CODEX_DIR)).then_some(CODEX_DIR),
        // Hooks are on for all or none; plain settings are covered where there is an inside.
        HookAgent::Gemini => {
            let is_covered = config.mounts.iter().any(|it| it.inside.ends_with(settings));
            let is_link = config.workspace.join(GEMINI_DIR).is_symlink();
            (!is_covered && (is_link || is_there(settings))).then_some(GEMINI_SETTINGS)
        }
    }
}

fn muted(injection: &Injection) -> Option<String> {
    injection.muted_by.map(|key| {
        format!(
            "Hooks do not report status, because {key} in ~/{} turns them off.",
            injection.file
        )
    })
}

/// Reads a file of a private home, where an earlier run may have left anything: no link is
/// followed, nothing is waited for, and what is no file is as good as absent.
fn read(home: &Path, relative: &str) -> Result<Option<Vec<u8>>, Failure> {
    match read_beneath(home, relative) {
        Ok(bytes) => Ok(bytes),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => {
                Ok(None)
            }
            _ => Err(failure::file("read", &home.join(relative), &error)),
        },
    }
}

fn read_beneath(home: &Path, relative: &str) -> io::Result<Option<Vec<u8>>> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let home = openat(CWD, home, directory, Mode::empty())?;
    let alone = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(openat2(&home, relative, alone, Mode::empty(), how)?);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(SETTINGS_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
