//! A program that the person chose, such as their editor or pager, run with their terminal.
//!
//! What it is started for is the caller's affair.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kapi_sys::process::{self, ProcessEnd, ProcessError, ProcessLimits, Program};

use crate::context::Context;

/// The longest somebody may take.
const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the path of the person's terminal; `None` where standard input is none.
pub(crate) fn terminal() -> Option<PathBuf> {
    let link = fs::read_link("/proc/self/fd/0").ok()?;
    let is_terminal = link.starts_with("/dev") && link.as_os_str() != OsStr::new("/dev/null");
    is_terminal.then_some(link)
}

/// Runs a line of shell with arguments, `$1` and on, until it ends.
///
/// # Errors
/// When the shell cannot be started.
pub(crate) fn run<const N: usize>(
    context: &Context,
    line: &str,
    args: [OsString; N],
) -> Result<ProcessEnd, ProcessError> {
    let leading = ["-c", line, "sh"].map(OsString::from);
    let program = Program {
        path: PathBuf::from("/bin/sh"),
        args: leading.into_iter().chain(args).collect(),
        env: context.env.clone(),
        cwd: context.cwd.clone(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: DEADLINE,
            idle: None,
            tail_bytes_max: 4096,
            line_bytes_max: 4096,
        },
    };
    Ok(process::run_quiet(program)?.end)
}
