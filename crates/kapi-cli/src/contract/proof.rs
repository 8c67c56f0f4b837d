//! What proves a goal: verify commands, protected files, hidden checks.
//!
//! Only what is said and what the repository holds; nothing is run.

use std::path::Path;

use kapi_core::goal::contract::{Base, Hidden};
use kapi_world::hidden;
use kapi_world::survey::Survey;

use crate::commands::run::Args;
use crate::config::GoalTable;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Returns the verify commands: the flags', or else the configuration's.
pub(super) fn verify_commands(args: &Args, table: &GoalTable) -> Vec<String> {
    match (args.unverified, args.verify.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => table.verify.clone().unwrap_or_default(),
        (false, false) => args.verify.clone(),
    }
}

/// Says it loudly where nothing will be proved.
pub(super) fn note_no_proof(verify: &[String], notes: &mut Vec<String>) {
    if verify.is_empty() {
        notes.push(
            "NO PROOF: there is no verify command, so the result will be \"done (unverified)\": the \
             agent's work, on your word. Add `--verify \"<command>\"` to have it proved."
                .to_owned(),
        );
    }
}

/// Returns what the agent must not change.
pub(super) fn protected(
    args: &Args,
    table: &GoalTable,
    survey: &Survey,
    (base, verify): (&Base, &[String]),
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let failed = |failure| Error::world(&failure);
    let mut protect = args.protect.clone();
    protect.extend(table.protect.iter().flatten().cloned());
    for glob in &protect {
        let files = survey
            .protected_files(base, std::slice::from_ref(glob))
            .map_err(failed)?;
        if files == 0 {
            notes.push(format!("--protect {glob} matches no file at the base."));
        }
    }
    let commands = if args.no_auto_protect { &[] } else { verify };
    for command in commands {
        for file in survey.files_named_in(base, command).map_err(failed)? {
            if !is_check(&file) || args.intent.contains(&file) || protect.contains(&file) {
                continue;
            }
            notes.push(format!(
                "{file} is protected because a verify command names it; `--no-auto-protect` if the \
                 task is to change it."
            ));
            protect.push(file);
        }
    }
    if protect.is_empty() && !verify.is_empty() {
        notes.push(
            "Nothing is protected: the agent may change whatever the verify commands run. Name it \
             with `--protect`."
                .to_owned(),
        );
    }
    Ok(protect)
}

/// Tells whether a file that a command names is a check, and not what is checked: code whose name
/// says so.
fn is_check(path: &str) -> bool {
    const DATA: &[&str] = &[
        "txt", "md", "json", "yaml", "yml", "toml", "csv", "log", "html",
    ];
    const SIGNS: &[&str] = &["test", "spec", "check", "verify"];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    !DATA.contains(&extension) && SIGNS.iter().any(|sign| name.contains(sign))
}

/// Returns the checks of a directory that the agent never sees.
pub(super) fn hidden_checks(
    context: &Context,
    dir: &Path,
    survey: &Survey,
    base: &Base,
) -> Result<Hidden, Error> {
    let absolute = context.cwd.join(dir);
    let seen = survey
        .hidden_in_plain_sight(base, &absolute)
        .map_err(|failure| Error {
            exit: Exit::Usage,
            ..Error::world(&failure)
        })?;
    if let Some(path) = seen {
        return Err(Error::usage(format!(
            "{} is in the repository, so the agent would see this hidden check",
            path.display()
        ))
        .with_hint("keep hidden checks outside of what git tracks."));
    }
    hidden::describe(&absolute).map_err(|failure| Error {
        exit: Exit::Usage,
        ..Error::world(&failure)
    })
}

#[cfg(test)]
mod tests {
    use super::is_check;

    #[test]
    fn a_check_is_code_that_says_so() {
        for check in [
            "test.sh",
            "tests/test_api.py",
            "src/a.spec.ts",
            "ci/Verify.rb",
            "check",
        ] {
            assert!(is_check(check), "{check}");
        }
        for subject in [
            "answer.txt",
            "main.py",
            "test.txt",
            "src/lib.rs",
            "tests/data.json",
        ] {
            assert!(!is_check(subject), "{subject}");
        }
    }
}
