//! What changed, in the person's own pager at their terminal.
//!
//! The patch is made by `kapi diff`, so that it is the very one a person gets there.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};

use crate::context::Context;

/// The longest somebody may read.
const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
/// Pipes the patch into the person's words, with the terminal as the rest of their streams. Without
/// a terminal of its own, a pager reads keys from its standard error.
const START: &str = r#"exec 2<> "$1" > "$1"; "$2" diff "$3" 2>&1 | sh -c "$4""#;
/// What shows a text where nobody says anything: a pager that stays open for a short one as well.
const PAGER: &str = "less -+F -c";

/// Shows what a subject changed until the person has seen enough; returns what went wrong.
pub(super) fn show(context: &Context, reference: &str) -> Result<(), String> {
    let terminal = fs::read_link("/proc/self/fd/0").map_err(|error| error.to_string())?;
    let named = context.variable("PAGER").map(str::trim);
    let pager = named.filter(|words| !words.is_empty()).unwrap_or(PAGER);
    let finished = process::run_quiet(program(context, &terminal, reference, pager));
    let finished = finished.map_err(|error| format!("failed to {error}"))?;
    match finished.end {
        ProcessEnd::Exited(0) => Ok(()),
        end => Err(format!("the pager `{pager}` ended with {end:?}")),
    }
}

fn program(context: &Context, terminal: &Path, reference: &str, pager: &str) -> Program {
    let args = ["-c", START, "sh"].map(OsString::from).into_iter();
    let args = args.chain([
        terminal.as_os_str().to_owned(),
        context.self_exe.clone().into_os_string(),
        OsString::from(reference),
        OsString::from(pager),
    ]);
    Program {
        path: PathBuf::from("/bin/sh"),
        args: args.collect(),
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
    }
}
