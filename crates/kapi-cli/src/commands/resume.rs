//! `kapi resume`: let a goal go on, after a stop, an interruption or a crash.
//!
//! A goal whose contract was never approved is approved here first.

use kapi_core::goal::command::Command;
use kapi_core::goal::state::Status;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{contract, driving};

/// Options of `kapi resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both (7, fix-login, 007-fix-login)
    reference: String,
    /// Approve the contract without being asked, if it was not approved yet
    #[arg(short, long)]
    yes: bool,
}

/// Resumes a goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("resume a goal")?;
    let (project, id) = context.find_sound_goal(&args.reference, "kapi resume")?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let config = context.config(Some(project.layout.root()))?;
    let goal = project.load(&id).map_err(failed)?;
    if let Some(holder) = project.driver(&id).map_err(failed)? {
        return Err(
            Error::new(Exit::Busy, format!("goal {id} is being driven by {holder}"))
                .with_hint(format!("watch it with `kapi log {} -f`.", id.index())),
        );
    }
    let begun = if goal.status == Status::Proposed {
        let notes = contract::isolation::isolation_note(&goal.contract);
        contract::show(context, &goal.contract, &notes);
        let means = driving::approval(context, &goal.contract, args.yes)?;
        driving::approve(context, &project, &id, &goal.contract, means)?
    } else {
        project
            .submit(&id, &context.actor, &Command::Resume)
            .map_err(failed)?
            .recorded
    };
    let run = driving::Run {
        project: &project,
        id: &id,
        config: &config,
    };
    driving::drive_to_rest(context, &run, begun, &driving::interrupts()?)
}
