//! Running one program to its end, with everything it may use stated up front.
//!
//! There is no default: directory, environment, deadline and output cap are fields, not options.
//! Knows nothing of sandboxes or agents, and never goes through a shell.

mod child;
mod output;
mod proc_table;
mod spawn;
mod watch;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::Pid;

use self::watch::{ProcessWatch, UnreapedChild, WatchOutcome};
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
    pub limits: ProcessLimits,
}

/// What ends a program, and how much of its output is kept.
#[derive(Debug, Clone, Copy)]
pub struct ProcessLimits {
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
pub enum ProcessEnd {
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
pub struct CapturedOutput {
    /// The last bytes, at most `ProcessLimits::tail_bytes_max`.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub bytes_total: u64,
}

impl CapturedOutput {
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
pub struct FinishedProcess {
    /// How it ended.
    pub end: ProcessEnd,
    /// Its standard output.
    pub stdout: CapturedOutput,
    /// Its standard error.
    pub stderr: CapturedOutput,
    /// How long it ran.
    pub duration: Duration,
}

/// One line of output, without its newline, cut to `ProcessLimits::line_bytes_max`.
#[derive(Debug, Clone, Copy)]
pub enum OutputLine<'a> {
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
    /// Its working directory cannot be entered.
    #[error("enter working directory {}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The system does not tell which program this process runs.
    #[error("find this program's own file")]
    OwnExecutable {
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
/// The child leads its own process group and session, dies with this process
/// (`PR_SET_PDEATHSIG`, so call from a thread that lives until the program ends), inherits no
/// descriptor but 0, 1, 2 and `pass_fds`, and is killed as a group on deadline, idle, cancel and
/// exit. What left the group but not the family is killed too where it can be found; a daemon
/// that hides from its ancestors is the sandbox's business.
///
/// Lines come on the calling thread. Limits are not looked at while `on_line` runs, so it must
/// not block. When the flag is raised already, nothing is started.
pub fn run(
    program: Program,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
) -> Result<FinishedProcess, ProcessError> {
    follow(program, None, cancel, on_line)?.wait()
}

/// Runs a program until it is over: like [`run`], but a program that has no more to say may be over
/// before it has ended. It tells so by hanging up: `over` is this side of a channel whose other sides
/// only the program has.
///
/// What a program does after it hung up is its own: it is left to end by itself, and nothing is read of
/// it any more.
pub fn run_until_over(
    program: Program,
    over: BorrowedFd<'_>,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
) -> Result<EndedProgram, ProcessError> {
    follow(program, Some(over), cancel, on_line)
}

fn follow(
    mut program: Program,
    over: Option<BorrowedFd<'_>>,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
) -> Result<EndedProgram, ProcessError> {
    let started = Instant::now();
    if cancel.is_raised() {
        return Ok(EndedProgram {
            path: program.path,
            watched: None,
            duration: Duration::ZERO,
        });
    }
    let spawned = spawn::spawn(&program, started)?;
    // The child has its own copies; ours would keep the other ends of pipes from closing.
    program.pass_fds.clear();
    let watch = ProcessWatch::new(spawned, program.stdin, program.limits, over);
    let watched = watch.finish(cancel, on_line);
    let watched = watched.map_err(|source| ProcessError::Watch {
        path: program.path.clone(),
        source,
    })?;
    Ok(EndedProgram {
        path: program.path,
        watched: Some(watched),
        duration: started.elapsed(),
    })
}

/// A program that is over, and may not have ended yet.
#[derive(Debug)]
pub struct EndedProgram {
    path: PathBuf,
    /// `None` when it was cancelled before it was started.
    watched: Option<WatchOutcome>,
    duration: Duration,
}

impl EndedProgram {
    /// Waits until it has ended and tells how.
    pub fn wait(self) -> Result<FinishedProcess, ProcessError> {
        let Some(mut watched) = self.watched else {
            return Ok(FinishedProcess {
                end: ProcessEnd::Cancelled,
                stdout: CapturedOutput::default(),
                stderr: CapturedOutput::default(),
                duration: self.duration,
            });
        };
        let own = watched.last.reap();
        let own = own.map_err(|source| ProcessError::Watch {
            path: self.path,
            source,
        })?;
        Ok(FinishedProcess {
            end: watched.forced.unwrap_or(own),
            stdout: watched.stdout,
            stderr: watched.stderr,
            duration: self.duration,
        })
    }

    /// Takes it as having ended in this way, unless it was ended, and leaves its last moments to be
    /// waited for by whoever needs them over.
    pub fn without_waiting(
        self,
        end: ProcessEnd,
    ) -> Result<(FinishedProcess, EndingProcess), ProcessError> {
        match self.watched {
            Some(watched) if watched.forced.is_none() => Ok((
                FinishedProcess {
                    end,
                    stdout: watched.stdout,
                    stderr: watched.stderr,
                    duration: self.duration,
                },
                EndingProcess(Some(watched.last)),
            )),
            Some(_) | None => Ok((self.wait()?, EndingProcess(None))),
        }
    }
}

/// What is left of a program that is over: a process that is about to end. Dropping it waits for that.
#[derive(Debug)]
pub struct EndingProcess(Option<UnreapedChild>);

impl EndingProcess {
    /// Returns what is left of a program that has ended: nothing.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(None)
    }
}

impl Drop for EndingProcess {
    fn drop(&mut self) {
        if let Some(last) = &mut self.0 {
            // One that does not end is killed, and told of by nobody: all it said is known.
            drop(last.reap());
        }
    }
}

/// Runs a short tool to its end: nobody watches its lines and nobody cancels it.
pub fn run_quiet(program: Program) -> Result<FinishedProcess, ProcessError> {
    run(program, &Cancel::new(), &mut |_| {})
}

/// Returns the first executable file called `name` in the directories of `path_var`.
///
/// Relative directories in the list are passed over: what they find depends on where we stand.
/// A `name` with a slash is not searched for.
#[must_use]
pub fn find_in_path(name: &OsStr, path_var: &OsStr) -> Option<PathBuf> {
    if name.is_empty() || Path::new(name).components().count() != 1 {
        return None;
    }
    let directories = env::split_paths(path_var).filter(|directory| directory.is_absolute());
    directories
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Returns the environment this process was started with.
#[must_use]
pub fn environment() -> BTreeMap<OsString, OsString> {
    env::vars_os().collect()
}

/// Returns the path of the program this process runs.
pub fn current_exe() -> Result<PathBuf, ProcessError> {
    env::current_exe().map_err(|source| ProcessError::OwnExecutable { source })
}

/// A process this one descends from, as far as the system lets us see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AncestorProcess {
    /// Its process id.
    pub pid: u32,
    /// The environment it was started with, `NAME=value` entries each ended by a zero byte;
    /// `None` when we may not read it.
    pub environ: Option<Vec<u8>>,
    /// The program it runs; `None` when we may not know.
    pub exe: Option<PathBuf>,
}

/// A process of the machine, named so that no other is meant when its number is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessName {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub started_ticks: u64,
}

/// Returns the name of the live process with a number; nothing if there is none, or it has ended.
#[must_use]
pub fn process_name(pid: u32) -> Option<ProcessName> {
    let started_ticks = proc_table::started_ticks(raw_pid(pid)?)?;
    Some(ProcessName { pid, started_ticks })
}

/// Returns a descriptor that becomes readable when a process ends; nothing if it has ended.
#[must_use]
pub fn hold_process(name: ProcessName) -> Option<OwnedFd> {
    proc_table::hold_live(raw_pid(name.pid)?, name.started_ticks)
}

fn raw_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Returns this process and then each of its ancestors, nearest first.
#[must_use]
pub fn parent_chain() -> Vec<AncestorProcess> {
    proc_table::ancestors()
}
