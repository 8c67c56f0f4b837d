//! The last steps before the program itself: session, signals, limits, directory, descriptors, exec.
//!
//! Runs in the payload's own process. Does not know in which kind of sandbox.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{chdir, setsid, umask};

use super::{PAYLOAD_FDS_FROM, privilege, tell};
use crate::order::{Payload, Text};
use crate::status::{Failure, Status};
use crate::syscall::{close_later_from, execute, exit_now, place_descriptor, reset_signals};

/// The exit code of a payload that could not be executed; the status message tells why.
const NOT_EXECUTED: i32 = 127;
/// The first descriptor of a program after the standard ones.
const FIRST_FD: i32 = 3;
/// Where the status socket waits for exec, above any descriptor a payload is given.
const STATUS_FD_FROM: i32 = 256;

/// Becomes the program, or tells why not and ends.
pub(super) fn become_payload(payload: &Payload, status: &OwnedFd) -> ! {
    match rustix::io::fcntl_dupfd_cloexec(status, STATUS_FD_FROM) {
        Ok(high) => {
            let failure = start(payload);
            tell(high.as_fd(), &Status::Failed(failure));
        }
        Err(errno) => {
            let failure = Failure::new(
                "fcntl(F_DUPFD_CLOEXEC)",
                &status.as_raw_fd().to_string(),
                errno,
            );
            tell(status.as_fd(), &Status::Failed(failure));
        }
    }
    exit_now(NOT_EXECUTED)
}

fn start(payload: &Payload) -> Failure {
    prepare(payload).map_or_else(
        |failure| failure,
        |program| {
            let errno = execute(&program.path, &program.args, &program.env);
            Failure::new("execve", &payload.path.path().display().to_string(), errno)
        },
    )
}

/// A program in the form the kernel takes.
struct Prepared {
    path: CString,
    args: Vec<CString>,
    env: Vec<CString>,
}

fn prepare(payload: &Payload) -> Result<Prepared, Failure> {
    let path = c_string(payload.path.as_bytes(), "path")?;
    let args = payload
        .args
        .iter()
        .map(|arg| c_string(arg.as_bytes(), "argument"));
    let args = std::iter::once(Ok(path.clone()))
        .chain(args)
        .collect::<Result<_, Failure>>()?;
    let env = payload
        .env
        .iter()
        .map(variable)
        .collect::<Result<_, Failure>>()?;
    let failed = |call: &'static str| move |errno: Errno| Failure::new(call, "the payload", errno);
    setsid().map_err(failed("setsid"))?;
    reset_signals();
    privilege::forbid_core_files()?;
    umask(Mode::from_raw_mode(0o022));
    let cwd = payload.cwd.path();
    chdir(&cwd).map_err(|errno| Failure::new("chdir", &cwd.display().to_string(), errno))?;
    place_descriptors(payload.n_fds)?;
    Ok(Prepared { path, args, env })
}

/// Moves the payload's descriptors down over the launcher's and closes the rest at exec.
fn place_descriptors(n_fds: usize) -> Result<(), Failure> {
    let failed = |call: &'static str| move |errno: Errno| Failure::new(call, "the payload", errno);
    let n_fds = i32::try_from(n_fds)
        .ok()
        .filter(|n| *n < STATUS_FD_FROM - PAYLOAD_FDS_FROM);
    let n_fds = n_fds.ok_or_else(|| failed("dup2")(Errno::MFILE))?;
    // Every number moves down, so none is overwritten before it was read.
    for index in 0..n_fds {
        place_descriptor(PAYLOAD_FDS_FROM + index, FIRST_FD + index).map_err(failed("dup2"))?;
    }
    let first = u32::try_from(FIRST_FD + n_fds).map_err(|_| failed("close_range")(Errno::INVAL))?;
    close_later_from(first).map_err(failed("close_range"))
}

fn variable((name, value): &(Text, Text)) -> Result<CString, Failure> {
    let mut line = name.as_bytes().to_vec();
    line.push(b'=');
    line.extend_from_slice(value.as_bytes());
    c_string(&line, "environment variable")
}

fn c_string(bytes: &[u8], what: &str) -> Result<CString, Failure> {
    CString::new(bytes).map_err(|_| {
        Failure::new(
            "execve",
            &format!("an {what} with a NUL byte"),
            Errno::INVAL,
        )
    })
}
