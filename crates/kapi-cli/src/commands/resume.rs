//! `kapi resume`: let a goal go on, after a stop, an interruption or a crash.
//!
//! A goal whose contract was never approved is approved here first.

use kapi_core::goal::command::Command;
use kapi_core::goal::contract::NetworkMode;
use kapi_core::goal::state::Status;

use crate::commands::run::race;
use crate::context::Context;
use crate::contract::{isolation, words};
use crate::driving::{self, WhenParked};
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both (7, fix-login, 007-fix-login)
    reference: String,
    /// Approve the contract without being asked, if it was not approved yet
    #[arg(short, long)]
    yes: bool,
    /// End when the goal is parked, instead of staying with it; `kapi up` goes on then
    #[arg(long)]
    park: bool,
}

/// Resumes a goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("resume a goal")?;
    let (project, id) = context.find_sound_goal(&args.reference, "kapi resume")?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let config = context.config(Some(project.layout.root()))?;
    let goal = project.load(&id).map_err(failed)?;
    // The first goal of a race names it; another lane goes on alone.
    if goal
        .contract
        .race
        .as_ref()
        .is_some_and(|race| race.of == id.index())
    {
        let going = race::Going {
            of: id.index(),
            yes: args.yes,
            when_parked: WhenParked::asked(args.park),
        };
        return race::resume(context, &project, &config, going);
    }
    if let Some(holder) = project.driver(&id).map_err(failed)? {
        return Err(
            Error::new(Exit::Busy, format!("goal {id} is being driven by {holder}"))
                .with_hint(format!("watch it with `kapi log {} -f`.", id.index())),
        );
    }
    let begun = if goal.status == Status::Proposed {
        let notes = isolation::isolation_note(&goal.contract);
        words::show(context, &goal.contract, &notes);
        words::show_given(context, &goal);
        let means = driving::approval(context, &goal.contract, args.yes)?;
        driving::approve(context, &project, &id, &goal.contract, means)?
    } else {
        project
            .submit(&id, &context.actor, &Command::Resume)
            .map_err(failed)?
            .recorded
    };
    if goal.contract.network == NetworkMode::Open {
        context.ui.say(
            "note: the network of this goal is `open`: its sandbox reaches everything that this \
             machine does. Goals begin with `filtered` now; one that is to have it is begun anew.",
        );
    }
    let run = driving::Run {
        project: &project,
        id: &id,
        config: &config,
    };
    let when_parked = WhenParked::asked(args.park);
    driving::drive_and(context, &run, begun, &driving::interrupts()?, when_parked)
}
