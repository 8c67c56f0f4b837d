//! What proves a goal: verify commands, protected files, hidden checks.
//!
//! Only what is said and what the repository holds; nothing is run.

use std::path::Path;

use kapi_check::perform::hidden;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::rules::contract::{Base, Contract};

use crate::context::Context;
use crate::contract::flags::Args;
use crate::error::Error;
use crate::exit_code::Exit;

/// Says it loudly where nothing will be proved.
pub(super) fn note_no_proof(verify: &[String], notes: &mut Vec<String>) {
    if verify.is_empty() {
        notes.push(
            "NO PROOF: there is no verify command, so the result will be \"done (unverified)\". \
             Add `--verify \"<command>\"` to have it proved."
                .to_owned(),
        );
    }
}

/// Adds the scripts that verify commands name to what the agent must not change, and says what
/// matches nothing.
pub(super) fn protect_scripts(
    args: &Args,
    survey: &RepositorySurvey,
    contract: &mut Contract,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let failed = |failure| Error::world(&failure);
    let base = &contract.base;
    for glob in &contract.protect {
        let files = survey
            .protected_files(base, std::slice::from_ref(glob))
            .map_err(failed)?;
        if files == 0 {
            notes.push(format!("--protect {glob} matches no file in the base."));
        }
    }
    if !args.no_auto_protect {
        let checks = survey.checks_named_in(base, &contract.verify, &args.intent);
        for file in checks.map_err(failed)? {
            if contract.protect.contains(&file) {
                continue;
            }
            notes.push(format!(
                "{file} is protected because a verify command names it; use `--no-auto-protect` \
                 if the task is to change it."
            ));
            contract.protect.push(file);
        }
    }
    if contract.protect.is_empty() && !contract.verify.is_empty() {
        notes.push(
            "Nothing is protected: the agent may change whatever the verify commands run. \
             Protect files with `--protect`."
                .to_owned(),
        );
    }
    Ok(())
}

/// Returns the checks of a directory that the agent never sees.
pub(super) fn hidden_checks(
    context: &Context,
    dir: &Path,
    survey: &RepositorySurvey,
    base: &Base,
) -> Result<HiddenCheckSet, Error> {
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
        .with_hint("keep hidden checks outside the files that git tracks."));
    }
    hidden::describe(&absolute).map_err(|failure| Error {
        exit: Exit::Usage,
        ..Error::world(&failure)
    })
}
