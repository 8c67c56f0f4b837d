//! The socket at which one run is listened to: in a directory that only its sandbox is shown,
//! read-only, and the program that speaks there.
//!
//! What is said, and who answers, is not known here.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_gateway::serve::{ServeLimits, StopSignal, serve_unix};
use kapi_git::owned_dir;
use kapi_sandbox::spec::Mount;
use kapi_status::perform::listener::HookListener;

use crate::confine::{self, KAPI_INSIDE};
use crate::failure;

/// The program in a container: the launcher's own copy, with its loader where it needs one.
const PODMAN_PROGRAM: &str = "#!/bin/sh
ours=/run/.kapi
if [ -e $ours/loader ]; then exec $ours/loader --library-path $ours/lib $ours/kapi \"$@\"; fi
exec $ours/kapi \"$@\"
";

/// The name of the socket that hooks report to, as they know it.
const HOOK: &str = "hook";
/// The directory that the socket has to itself.
const SOCKET_DIR: &str = "socket";
/// Connections of one socket that are served at once.
const CONNECTIONS_MAX: usize = 8;
/// The longest path of a socket that the system takes.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// A run's socket; when it is dropped, nobody listens there any more.
pub struct RunSocket<Listener = UnixListener> {
    /// Where calls arrive.
    pub listener: Listener,
    name: &'static str,
    level: SandboxLevel,
    directory: PathBuf,
}

impl RunSocket {
    /// Opens a socket of this name in a directory, which is made anew.
    pub(crate) fn open(
        name: &'static str,
        level: SandboxLevel,
        directory: &Path,
        self_exe: &Path,
    ) -> Result<Self, Failure> {
        furnish(level, directory, self_exe)?;
        let listener = listen(&directory.join(SOCKET_DIR), &file_of(name));
        let listener = listener.map_err(|error| failure::file("listen in", directory, &error))?;
        Ok(Self {
            listener,
            name,
            level,
            directory: directory.to_path_buf(),
        })
    }
}

impl RunSocket {
    /// Answers whoever connects until the run is over. A listener that fails listens no more, which the
    /// other end learns by its own end.
    pub(crate) fn serve(
        &self,
        stop: &StopSignal,
        attend: &(dyn Fn(&UnixStream) -> io::Result<()> + Sync),
    ) {
        let limits = ServeLimits {
            connections_max: CONNECTIONS_MAX,
        };
        let serve = |stream: &UnixStream| drop(attend(stream));
        drop(serve_unix(&self.listener, stop, limits, &serve));
    }
}

impl RunSocket<HookListener> {
    /// Opens the socket of an agent's hooks in a directory, which is made anew.
    pub fn open_for_hooks(
        level: SandboxLevel,
        directory: &Path,
        self_exe: &Path,
    ) -> Result<Self, Failure> {
        furnish(level, directory, self_exe)?;
        let listener = HookListener::bind(&directory.join(SOCKET_DIR));
        Ok(Self {
            listener: listener.map_err(|error| failure::plain(&error))?,
            name: HOOK,
            level,
            directory: directory.to_path_buf(),
        })
    }
}

impl<Listener> RunSocket<Listener> {
    /// Returns what is mounted into the sandbox: the socket's directory and the program. Nothing
    /// where there is no sandbox.
    pub fn mounts(&self, self_exe: &Path) -> Vec<Mount> {
        let program = match self.level {
            SandboxLevel::None => return Vec::new(),
            SandboxLevel::Native => self_exe.to_path_buf(),
            SandboxLevel::Podman => self.directory.join("bin").join("kapi"),
        };
        vec![
            confine::read_only(&self.directory.join(SOCKET_DIR), &self.seen(SOCKET_DIR)),
            confine::read_only(&program, &self.program()),
        ]
    }

    /// Returns the directory of the program, as the agent sees it.
    pub(crate) fn programs(&self) -> PathBuf {
        self.seen("bin")
    }

    /// Returns the program, as the agent sees it.
    pub fn program(&self) -> PathBuf {
        self.programs().join("kapi")
    }

    /// Returns the socket, as the agent sees it.
    pub fn socket(&self) -> PathBuf {
        self.seen(SOCKET_DIR).join(file_of(self.name))
    }

    fn seen(&self, part: &str) -> PathBuf {
        match self.level {
            SandboxLevel::Native | SandboxLevel::Podman => {
                Path::new(KAPI_INSIDE).join(self.name).join(part)
            }
            SandboxLevel::None => self.directory.join(part),
        }
    }
}

impl<Listener> Drop for RunSocket<Listener> {
    fn drop(&mut self) {
        // What stays behind leads nowhere, and the next run's socket replaces it.
        drop(owned_dir::wipe(&self.directory));
    }
}

/// Makes a socket's directories anew, with the program where it is a file of their own.
fn furnish(level: SandboxLevel, directory: &Path, self_exe: &Path) -> Result<(), Failure> {
    owned_dir::wipe(directory).map_err(|error| failure::plain(&error))?;
    let make = || {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(directory.join("bin"))?;
        private.create(directory.join(SOCKET_DIR))?;
        let program = directory.join("bin").join("kapi");
        match level {
            SandboxLevel::Native => Ok(()),
            SandboxLevel::None => symlink(self_exe, &program),
            SandboxLevel::Podman => {
                File::create(&program)?.write_all(PODMAN_PROGRAM.as_bytes())?;
                fs::set_permissions(&program, Permissions::from_mode(0o755))
            }
        }
    };
    make().map_err(|error| failure::file("listen in", directory, &error))
}

fn file_of(name: &str) -> String {
    format!("{name}.sock")
}

/// Connects to a socket. Its address is short and paths are not: a long one is named through its open
/// directory.
pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return UnixStream::connect(socket);
    }
    let directory = File::open(parent)?;
    let short = format!("/proc/self/fd/{}", directory.as_raw_fd());
    UnixStream::connect(Path::new(&short).join(name))
}

/// Listens at a socket, which is named through its open directory: addresses are short.
fn listen(directory: &Path, file: &str) -> io::Result<UnixListener> {
    let handle = File::open(directory)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(file);
    let listener = UnixListener::bind(&short)?;
    fs::set_permissions(&short, Permissions::from_mode(0o600))?;
    Ok(listener)
}
