//! Running one program to its end, with everything it may use stated up front.
//!
//! There is no default: directory, environment, deadline and output cap are fields, not options.
//! Knows nothing of sandboxes or agents, and never goes through a shell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::cancel::Cancel;

/// A program to run.
#[derive(Debug)]
pub struct Program {
    /// The executable: an absolute path.
    pub path: PathBuf,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Bytes for standard input, which is then closed; empty means `/dev/null`.
    pub stdin: Vec<u8>,
    /// Descriptors the child sees as 3, 4, … in this order.
    pub pass_fds: Vec<OwnedFd>,
    /// What ends it and what is kept.
    pub limits: Limits,
}

/// What ends a program, and how much of its output is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest it may run.
    pub deadline: Duration,
    /// The longest it may stay silent on both outputs; `None` means as long as the deadline.
    pub idle: Option<Duration>,
    /// Bytes kept of the end of each output stream.
    pub tail_bytes_max: usize,
    /// Bytes of one line handed to the line callback; the rest of a longer line is dropped.
    pub line_bytes_max: usize,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signaled(i32),
    /// It passed its deadline and was killed.
    DeadlinePassed,
    /// It was silent too long and was killed.
    IdlePassed,
    /// The cancel flag was raised and it was killed.
    Cancelled,
}

/// What is left of an output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The last bytes, at most `Limits::tail_bytes_max`.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub bytes_total: u64,
}

impl Captured {
    /// Returns the tail as text, with a marker line when the beginning was dropped.
    #[must_use]
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let dropped = self.bytes_total.saturating_sub(self.tail.len() as u64);
        if dropped == 0 {
            text.into_owned()
        } else {
            format!("[{dropped} earlier bytes left out]\n{text}")
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// How long it ran.
    pub duration: Duration,
}

/// One line of output, without its newline, cut to `Limits::line_bytes_max`.
#[derive(Debug, Clone, Copy)]
pub enum Line<'a> {
    /// From standard output.
    Stdout(&'a [u8]),
    /// From standard error.
    Stderr(&'a [u8]),
}

/// A program that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such program.
    #[error("find program {}", path.display())]
    NotFound {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The system would not start it.
    #[error("start {}", path.display())]
    Start {
        /// The path that was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The system failed while it ran; it was killed.
    #[error("watch {}", path.display())]
    Watch {
        /// The program's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Runs a program to its end and returns how it ended.
///
/// The child leads its own process group and session, dies with this process (`PR_SET_PDEATHSIG`, so call
/// from a thread that lives until the program ends), inherits no descriptor but 0, 1, 2 and
/// `pass_fds`, and is killed as a group on deadline, idle, cancel and exit.
pub fn run(
    program: Program,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(Line<'_>),
) -> Result<Finished, ProcessError> {
    let _ = (program, cancel, on_line);
    unimplemented!()
}
