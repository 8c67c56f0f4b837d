//! The host's end of an agent's hooks: a socket in a directory that is mounted into the sandbox.
//!
//! Datagrams, so that there are no connections to hold open and no half messages. What comes is
//! foreign: it is read in bounded portions, and all it can move is a [`StatusWriter`]'s tools and
//! notes. A flood finds the queue full and waits or gives up on its own side.

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use kapi_agent::hook::{self, HookEvent, HookToolCall, MESSAGE_BYTES_MAX, SOCKET_NAME};
use kapi_sys::cancel::Cancel;
use rustix::fs::OFlags;

use super::writer::StatusWriter;
use super::{StatusError, private_file};

/// The time in which the two following numbers of messages are taken.
const TICK: Duration = Duration::from_millis(100);
/// Messages of one tick that are understood.
const UNDERSTOOD_MAX: u32 = 25;
/// Messages of one tick that are taken off the queue.
const TAKEN_MAX: u32 = 1_000;
/// The longest that what is queued at the end is taken: on a busy machine a tick is not enough for it.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Messages of one run that are understood: two hundred thousand hooks are nobody's work.
const MESSAGES_MAX: u64 = 200_000;

/// Calls under way that are remembered.
const BEGUN_MAX: usize = 32;

/// A socket that hooks report to.
#[derive(Debug)]
pub struct HookListener {
    socket: UnixDatagram,
    directory: PathBuf,
    /// Keeps `/proc/self/fd/N` meaning the directory, whatever is renamed.
    handle: File,
}

/// What a listener did in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookTotals {
    /// Messages that meant something.
    pub n_understood: u64,
    /// Messages that meant nothing.
    pub n_malformed: u64,
    /// Messages that were thrown away unread because there were too many.
    pub n_dropped: u64,
}

impl HookListener {
    /// Makes the socket `hook.sock` in `directory`, which is made for it if it is missing.
    ///
    /// The directory may be mounted read-only: a socket is sent to, not written.
    ///
    /// # Errors
    /// When the directory is anybody else's too, or the socket cannot be made.
    pub fn bind(directory: &Path) -> Result<Self, StatusError> {
        private_file::make_dir(directory)?;
        private_file::check_dir(directory)?;
        let handle = open_directory(directory).map_err(StatusError::at("open", directory))?;
        // A socket's address is short and paths are not: it is named through the open directory.
        let path = short_path(&handle);
        let bind = || {
            remove_socket(&path)?;
            let socket = UnixDatagram::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            socket.set_read_timeout(Some(TICK))?;
            Ok(socket)
        };
        let socket = bind().map_err(StatusError::at("make a socket in", directory))?;
        Ok(Self {
            socket,
            directory: directory.to_path_buf(),
            handle,
        })
    }

    /// Returns the directory to mount.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Tells `writer` what hooks report, until `stop` is raised; then what is queued, once.
    ///
    /// # Errors
    /// When the status file cannot be replaced, or the socket breaks.
    pub fn serve(
        &self,
        writer: &StatusWriter<'_>,
        stop: &Cancel,
    ) -> Result<HookTotals, StatusError> {
        let mut ear = ListenerSession {
            writer,
            stop,
            buffer: vec![0; MESSAGE_BYTES_MAX],
            heard: HookTotals::default(),
            begun: VecDeque::new(),
        };
        while !stop.is_raised() {
            let began = Instant::now();
            let n_taken = self.take(&mut ear, UNDERSTOOD_MAX, TICK)?;
            if n_taken >= TAKEN_MAX {
                // The rest of the tick belongs to others; senders wait at a full queue.
                thread::sleep(TICK.saturating_sub(began.elapsed()));
            }
        }
        let drain = self.socket.set_nonblocking(true);
        drain.map_err(StatusError::at("listen in", &self.directory))?;
        self.take(&mut ear, TAKEN_MAX, DRAIN_MAX)?;
        Ok(ear.heard)
    }

    /// Makes [`Self::serve`] look at its `stop` now.
    pub fn wake(&self) {
        let woken = || {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.send_to(b"", short_path(&self.handle))
        };
        // If it fails the listener is awake, or looks within a tick.
        drop(woken());
    }

    /// Takes messages until the time is over or enough were taken; returns how many.
    fn take(
        &self,
        ear: &mut ListenerSession<'_>,
        understood_max: u32,
        time_max: Duration,
    ) -> Result<u32, StatusError> {
        let began = Instant::now();
        let mut n_taken = 0;
        while n_taken < TAKEN_MAX && began.elapsed() < time_max {
            let Some(length) = self.receive(&mut ear.buffer)? else {
                break;
            };
            n_taken += 1;
            if length == 0 && ear.stop.is_raised() {
                break;
            }
            if n_taken > understood_max || ear.heard.n_understood >= MESSAGES_MAX {
                ear.heard.n_dropped += 1;
            } else {
                ear.hear(length)?;
            }
        }
        Ok(n_taken)
    }

    /// Returns the length of the next message; `None` if none came within a tick.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, StatusError> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(StatusError::at("listen in", &self.directory)(error)),
            },
        }
    }
}

impl Drop for HookListener {
    fn drop(&mut self) {
        // If it stays behind, nobody listens there, and the next run replaces it.
        drop(remove_socket(&short_path(&self.handle)));
    }
}

/// One life of a listener.
struct ListenerSession<'a> {
    writer: &'a StatusWriter<'a>,
    stop: &'a Cancel,
    buffer: Vec<u8>,
    heard: HookTotals,
    /// The last calls whose beginning was reported: their end is not counted again.
    begun: VecDeque<HookToolCall>,
}

impl ListenerSession<'_> {
    /// Understands the message of this length in the buffer.
    fn hear(&mut self, length: usize) -> Result<(), StatusError> {
        let message = self.buffer.get(..length).unwrap_or_default();
        let Some((_, event)) = hook::parse_message(message) else {
            self.heard.n_malformed += 1;
            return Ok(());
        };
        self.heard.n_understood += 1;
        self.notify(event)
    }

    /// Tells the writer what an event means. An agent that says it has stopped has only said so.
    fn notify(&mut self, event: HookEvent) -> Result<(), StatusError> {
        match event {
            HookEvent::SessionStarted => self.writer.note("The agent started a session")?,
            HookEvent::SessionEnded => self.writer.note("The agent ended its session")?,
            HookEvent::Prompted => self.writer.note("The agent is reading its task")?,
            HookEvent::Stopped => self.writer.note("The agent ended its turn")?,
            HookEvent::ToolStarted(call) => {
                let written = self.writer.tool(&call.name, &call.detail)?;
                self.begun.truncate(BEGUN_MAX - 1);
                self.begun.push_front(call);
                written
            }
            HookEvent::ToolFinished { call, .. } => {
                match self.begun.iter().position(|begun| *begun == call) {
                    Some(at) => {
                        self.begun.remove(at);
                        return Ok(());
                    }
                    None => self.writer.tool(&call.name, &call.detail)?,
                }
            }
            HookEvent::Other => return Ok(()),
        };
        Ok(())
    }
}

fn open_directory(directory: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(directory)
}

fn short_path(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(SOCKET_NAME)
}

/// Removes a socket that an earlier run left; anything else there is an error.
fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the name is in use",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
