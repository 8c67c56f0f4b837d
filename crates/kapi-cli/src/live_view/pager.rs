//! What changed, in the person's own pager at their terminal.
//!
//! The patch is made by `kapi diff`, so that it is the very one a person gets there.

use std::ffi::OsString;

use kapi_sys::process::ProcessEnd;

use crate::context::Context;
use crate::persons_program;

/// Pipes the patch into the person's words, with the terminal as the rest of their streams. Without
/// a terminal of its own, a pager reads keys from its standard error.
const START: &str = r#"exec 2<> "$1" > "$1"; "$2" diff "$3" 2>&1 | sh -c "$4""#;
/// What shows a text where nobody says anything: a pager that stays open for a short one as well.
const PAGER: &str = "less -+F -c";

/// Shows what a subject changed until the person has seen enough; returns what went wrong.
pub(super) fn show(context: &Context, reference: &str) -> Result<(), String> {
    let terminal = persons_program::terminal().ok_or("there is no terminal for a pager")?;
    let named = context.variable("PAGER").map(str::trim);
    let pager = named.filter(|words| !words.is_empty()).unwrap_or(PAGER);
    let args = [
        terminal.into_os_string(),
        context.self_exe.clone().into_os_string(),
        OsString::from(reference),
        OsString::from(pager),
    ];
    match persons_program::run(context, START, args) {
        Ok(ProcessEnd::Exited(0)) => Ok(()),
        Ok(end) => Err(format!("the pager `{pager}` ended with {end:?}")),
        Err(error) => Err(format!("failed to {error}")),
    }
}
