//! The last steps before the program itself: session, signals, limits, directory, descriptors, exec.
//!
//! Runs in the payload's own process. Does not know in which kind of sandbox.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{chdir, ioctl_tiocsctty, setsid, umask};

use super::{PAYLOAD_FDS_FROM, limit, notify, privilege};
use crate::order::{PayloadProgram, SystemText};
use crate::status::{LauncherMessage, StepFailure};
use crate::syscall::{
    close_later_from, execute, location_descriptor, reset_signals, take_descriptor,
};

/// The exit code of a payload that could not be executed; the status message tells why.
const NOT_EXECUTED: i32 = 127;
/// The first descriptor of a program after the standard ones.
const FIRST_FD: i32 = 3;
/// The most descriptors a payload is given.
const PAYLOAD_FDS_MAX: usize = 250;

/// Becomes the program, or tells why not and returns the exit code to end with.
pub(super) fn become_payload(payload: &PayloadProgram, status: &OwnedFd) -> i32 {
    match above_all(payload, status) {
        Ok(high) => {
            let failure = start(payload);
            notify(high.as_fd(), &LauncherMessage::Failed(failure));
        }
        Err(errno) => {
            let failure = StepFailure::new("fcntl(F_DUPFD_CLOEXEC)", "the status socket", errno);
            notify(status.as_fd(), &LauncherMessage::Failed(failure));
        }
    }
    NOT_EXECUTED
}

/// Copies the status socket to where it waits for exec: above any descriptor the payload is given, and
/// not far above, because the payload's limit on open files is in force.
fn above_all(payload: &PayloadProgram, status: &OwnedFd) -> Result<OwnedFd, Errno> {
    let n_fds = payload.n_fds + usize::from(payload.has_terminal);
    if n_fds > PAYLOAD_FDS_MAX {
        return Err(Errno::MFILE);
    }
    let n_fds = i32::try_from(n_fds).map_err(|_| Errno::MFILE)?;
    rustix::io::fcntl_dupfd_cloexec(status, PAYLOAD_FDS_FROM + n_fds)
}

fn start(payload: &PayloadProgram) -> StepFailure {
    prepare(payload).map_or_else(
        |failure| failure,
        |program| {
            let errno = execute(&program.path, &program.args, &program.env);
            StepFailure::new("execve", &payload.path.path().display().to_string(), errno)
        },
    )
}

/// A program in the form the kernel takes.
struct ExecArguments {
    path: CString,
    args: Vec<CString>,
    env: Vec<CString>,
}

fn prepare(payload: &PayloadProgram) -> Result<ExecArguments, StepFailure> {
    let path = c_string(payload.path.as_bytes(), "path")?;
    let args = payload
        .args
        .iter()
        .map(|arg| c_string(arg.as_bytes(), "argument"));
    let args = std::iter::once(Ok(path.clone()))
        .chain(args)
        .collect::<Result<_, StepFailure>>()?;
    let env = payload
        .env
        .iter()
        .map(|(name, value)| variable(name, value))
        .collect::<Result<_, StepFailure>>()?;
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the payload", errno);
    setsid().map_err(failed("setsid"))?;
    reset_signals();
    privilege::forbid_core_files()?;
    umask(Mode::from_raw_mode(0o022));
    let cwd = payload.cwd.path();
    chdir(&cwd).map_err(|errno| StepFailure::new("chdir", &cwd.display().to_string(), errno))?;
    if payload.has_terminal {
        take_terminal(payload.n_fds)?;
    }
    location_descriptors(payload.n_fds)?;
    limit::lower_open_files(payload.open_files)?;
    Ok(ExecArguments { path, args, env })
}

/// Makes the terminal behind the payload's descriptors its controlling terminal and standard streams.
fn take_terminal(n_fds: usize) -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the terminal", errno);
    let number = i32::try_from(n_fds)
        .map(|n_fds| PAYLOAD_FDS_FROM + n_fds)
        .map_err(|_| failed("dup2")(Errno::MFILE))?;
    let terminal = take_descriptor(number).map_err(failed("fcntl"))?;
    ioctl_tiocsctty(&terminal).map_err(failed("ioctl(TIOCSCTTY)"))?;
    rustix::stdio::dup2_stdin(&terminal).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stdout(&terminal).map_err(failed("dup2"))?;
    rustix::stdio::dup2_stderr(&terminal).map_err(failed("dup2"))
}

/// Moves the payload's descriptors down over the launcher's and closes the rest at exec.
fn location_descriptors(n_fds: usize) -> Result<(), StepFailure> {
    let failed =
        |call: &'static str| move |errno: Errno| StepFailure::new(call, "the payload", errno);
    let n_fds = i32::try_from(n_fds).map_err(|_| failed("dup2")(Errno::MFILE))?;
    // Every number moves down, so none is overwritten before it was read.
    for index in 0..n_fds {
        location_descriptor(PAYLOAD_FDS_FROM + index, FIRST_FD + index).map_err(failed("dup2"))?;
    }
    let first = u32::try_from(FIRST_FD + n_fds).map_err(|_| failed("close_range")(Errno::INVAL))?;
    close_later_from(first).map_err(failed("close_range"))
}

fn variable(name: &SystemText, value: &SystemText) -> Result<CString, StepFailure> {
    let mut line = name.as_bytes().to_vec();
    line.push(b'=');
    line.extend_from_slice(value.as_bytes());
    c_string(&line, "environment variable")
}

fn c_string(bytes: &[u8], what: &str) -> Result<CString, StepFailure> {
    CString::new(bytes).map_err(|_| {
        StepFailure::new(
            "execve",
            &format!("an {what} with a NUL byte"),
            Errno::INVAL,
        )
    })
}
