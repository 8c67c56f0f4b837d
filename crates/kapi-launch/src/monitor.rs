//! What git asks inside of a sandbox instead of looking at every file.
//!
//! Runs at every `git status`, so it reads no configuration. Whatever goes wrong, it says nothing and
//! fails: git then looks at everything by itself.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

use kapi_git::reachable::frozen::written;
use kapi_run::confine;
use kapi_run::confine::{KAPI_INSIDE, WORKSPACE_INSIDE};
use kapi_sandbox::spec::Mount;
use kapi_sys::process;

use crate::error::LaunchError;

/// The word that enters it.
pub const ARGUMENT: &str = "fsmonitor";

/// Answers git, of a layer's upper directory and an index; git adds the version of its question and a token.
pub fn enter(mut args: impl Iterator<Item = OsString>) -> i32 {
    let (Some(upper), Some(index)) = (args.next(), args.next()) else {
        return 1;
    };
    // The first version has no token in its answer.
    if args.next().is_none_or(|version| version != "2") {
        return 1;
    }
    let Some(touched) = written::touched(Path::new(&upper), Path::new(&index)) else {
        return 1;
    };
    let mut answer = written::TOKEN.as_bytes().to_vec();
    answer.push(0);
    for path in touched {
        answer.extend(path);
        answer.push(0);
    }
    match io::stdout().write_all(&answer) {
        Ok(()) => 0,
        Err(_closed) => 1,
    }
}

/// Returns what it needs inside, and its command there.
pub(crate) fn shown(upper: &Path) -> Result<([Mount; 2], String), LaunchError> {
    let at = Path::new(KAPI_INSIDE).join(ARGUMENT);
    let (kapi, shown) = (at.join("kapi"), at.join("upper"));
    let program = process::current_exe().map_err(|error| LaunchError::failed(&error))?;
    let index = Path::new(WORKSPACE_INSIDE).join(".git/index");
    let line = format!(
        "{} {ARGUMENT} {} {}",
        kapi.display(),
        shown.display(),
        index.display()
    );
    let mounts = [
        confine::read_only(&program, &kapi),
        confine::read_only(upper, &shown),
    ];
    Ok((mounts, line))
}
