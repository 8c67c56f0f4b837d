//! Where a run's gate is: its socket, the program that asks there, and the hooks that call it.
//!
//! Everything is shown to one sandbox, read-only. Knows no question.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use kapi_agent::agent::Kind;
use kapi_agent::launch::gate::{Gate as GateSeen, sealed_file};
use kapi_core::goal::contract::SandboxLevel;
use kapi_core::goal::outcome::Failure;
use kapi_git::owned_dir;
use kapi_sandbox::spec::Mount;

use super::Gate;
use crate::book::Book;
use crate::confine::{self, Cell, KAPI_INSIDE};
use crate::failure;
use crate::tools::counter::PODMAN_PROGRAM;

/// The socket's name.
pub(super) const SOCKET: &str = "gate.sock";
/// A file of the repository that outranks Gemini CLI's own hooks.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";

impl Gate<'_> {
    /// Returns what is mounted into the sandbox: the socket's directory, the program, and over the
    /// agent's hooks themselves, so that it cannot write them.
    pub(crate) fn mounts(&self, kind: &Kind, cell: &Cell<'_>, book: &Book) -> Vec<Mount> {
        let program = match self.level {
            SandboxLevel::None => return Vec::new(),
            SandboxLevel::Native => book.self_exe.clone(),
            SandboxLevel::Podman => self.directory.join("bin").join("kapi"),
        };
        let mut mounts = vec![
            confine::read_only(
                &self.directory.join("socket"),
                &seen(self.level, &self.directory, "socket"),
            ),
            confine::read_only(&program, &self.program),
        ];
        let sealed = sealed_file(kind);
        mounts.extend(sealed.map(|file| {
            confine::read_only(&cell.home.join(file), &cell.home_seen(book).join(file))
        }));
        mounts
    }

    /// Returns the gate, as the agent sees it.
    pub(crate) fn seen_inside(&self) -> GateSeen<'_> {
        GateSeen {
            program: &self.program,
            socket: &self.socket,
        }
    }
}

/// Returns where a part of the gate's directory is for the agent.
pub(super) fn seen(level: SandboxLevel, directory: &Path, name: &str) -> PathBuf {
    match level {
        SandboxLevel::Native | SandboxLevel::Podman => {
            Path::new(KAPI_INSIDE).join("gate").join(name)
        }
        SandboxLevel::None => directory.join(name),
    }
}

/// Makes the directory of a gate anew and listens in it.
pub(super) fn make(
    directory: &Path,
    level: SandboxLevel,
    self_exe: &Path,
) -> Result<UnixListener, Failure> {
    owned_dir::wipe(directory).map_err(|error| failure::plain(&error))?;
    let make = || {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(directory.join("bin"))?;
        private.create(directory.join("socket"))?;
        let program = directory.join("bin").join("kapi");
        match level {
            SandboxLevel::Native => {}
            SandboxLevel::None => symlink(self_exe, &program)?,
            SandboxLevel::Podman => {
                File::create(&program)?.write_all(PODMAN_PROGRAM.as_bytes())?;
                fs::set_permissions(&program, Permissions::from_mode(0o755))?;
            }
        }
        listen(&directory.join("socket"))
    };
    make().map_err(|error| failure::file("listen in", directory, &error))
}

/// Removes the directory of a gate.
pub(super) fn remove(directory: &Path) {
    // What stays behind leads nowhere, and the next run's gate replaces it.
    drop(owned_dir::wipe(directory));
}

/// Refuses a repository whose own settings would outrank the hooks, where they cannot be covered.
pub(super) fn check_settings(
    kind: &Kind,
    level: SandboxLevel,
    workspace: &Path,
) -> Result<(), Failure> {
    let theirs = workspace.join(GEMINI_SETTINGS);
    let is_there = theirs.symlink_metadata().is_ok();
    if *kind != Kind::Gemini || level != SandboxLevel::None || !is_there {
        return Ok(());
    }
    Err(Failure {
        message: format!("ask before what gemini runs: {GEMINI_SETTINGS} outranks its hooks"),
        hint: Some("run it in a sandbox, where that file is covered.".to_owned()),
    })
}

/// Listens at a socket, which is named through its open directory: addresses are short.
fn listen(directory: &Path) -> io::Result<UnixListener> {
    let handle = File::open(directory)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(SOCKET);
    let listener = UnixListener::bind(&short)?;
    fs::set_permissions(&short, Permissions::from_mode(0o600))?;
    Ok(listener)
}
