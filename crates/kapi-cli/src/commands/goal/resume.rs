//! `kapi goal resume`: let the loop go on.
//!
//! A goal out of turns gets its first number of turns again, which is said. What nobody approved is
//! not made active by it, and what is done is only taken up again by somebody who says why.

use kapi_core::goal::budget::Limit;
use kapi_core::goal::command::{Command, PersonCommand};
use kapi_core::goal::contract::TURNS_MAX;
use kapi_core::goal::event::Event;
use kapi_core::goal::state::Status;
use kapi_engine::machine::logged::Logged;

use crate::commands::goal::pick::{self, Picked};
use crate::commands::goal::{answer, approve, reopen};
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal; may be left out when one goal is unfinished
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// Record it and do not go on yet
    #[arg(long)]
    no_run: bool,
}

/// Lets a goal go on.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("resume a goal")?;
    let reference = args.reference.as_deref();
    let picked = match reference {
        Some(_) => pick::one_of(context, reference, "there", &|_| true)?,
        None => pick::to_change(context, None)?,
    };
    refuse_driven(&picked)?;
    match picked.goal.status {
        Status::Proposed => Err(approve::needed(&picked)),
        Status::Done | Status::Unverified if !picked.goal.is_driven() => {
            challenge(context, &picked, args.no_run)
        }
        Status::Setup
        | Status::Active
        | Status::Waiting
        | Status::Blocked
        | Status::Stalled
        | Status::Paused
        | Status::Impossible
        | Status::Cancelled
        | Status::Unverified
        | Status::Done => go_on(context, &picked, args.no_run),
    }
}

fn go_on(context: &Context, picked: &Picked<'_>, no_run: bool) -> Result<Exit, Error> {
    let mut begun = Vec::new();
    if !picked.goal.status.is_terminal() || picked.goal.is_driven() {
        driving::require_approved(&picked.project, &picked.id)?;
    }
    if !picked.goal.is_driven() {
        begun.extend(more_turns(context, picked)?);
        begun.extend(recorded(context, picked, &Command::Resume)?);
    }
    if no_run {
        let goal = picked
            .project
            .load(&picked.id)
            .map_err(|error| Error::engine(&error, &picked.id.to_string()))?;
        let line = format!("Goal {} is {}.", goal.id, goal.status);
        return Ok(answer::give(context, &goal, &[line]));
    }
    drive(context, picked, begun)
}

/// Adds the turns that the contract gave at first, where all are used up.
fn more_turns(context: &Context, picked: &Picked<'_>) -> Result<Vec<Logged<Event>>, Error> {
    let goal = &picked.goal;
    let is_out = goal.budget.used_up(&goal.spent) == Some(Limit::Turns);
    if !is_out || goal.status.is_terminal() {
        return Ok(Vec::new());
    }
    let first = goal.contract.budget.turns;
    let turns = goal.budget.turns.saturating_add(first).min(TURNS_MAX);
    if turns == goal.budget.turns {
        // The rule's own refusal says what is used up.
        return Ok(Vec::new());
    }
    let added = turns - goal.budget.turns;
    context.ui.say(&format!(
        "note: all {} turns are used up; {added} more are added, the number the contract gave at \
         first.",
        goal.budget.turns
    ));
    let command = Command::Person(PersonCommand::SetTurns { turns });
    recorded(context, picked, &command)
}

fn recorded(
    context: &Context,
    picked: &Picked<'_>,
    command: &Command,
) -> Result<Vec<Logged<Event>>, Error> {
    picked
        .project
        .submit(&picked.id, &context.actor, command)
        .map(|submitted| submitted.recorded)
        .map_err(|error| Error::engine(&error, &format!("{:03}", picked.id.index())))
}

/// A result that is done is only taken up again by somebody who does not accept it.
fn challenge(context: &Context, picked: &Picked<'_>, no_run: bool) -> Result<Exit, Error> {
    let id = &picked.id;
    let question = format!("Goal {id} is done. Not accept the result, and go on with it?");
    match context.ui.confirm(&question) {
        Some(true) => reopen::take_up(
            context,
            picked,
            "the person resumed it: they do not accept the result as it is",
            no_run,
        ),
        Some(false) => Err(Error::new(Exit::Denied, "the result stays accepted")),
        None => Err(Error::new(
            Exit::Denied,
            format!("goal {id} is {}, so it is not resumed", picked.goal.status),
        )
        .with_hint(format!(
            "say what is wrong with it: `kapi goal reopen {:03} \"<reason>\"`.",
            id.index()
        ))),
    }
}

/// Refuses where another process goes on with the goal already.
pub(super) fn refuse_driven(picked: &Picked<'_>) -> Result<(), Error> {
    let driver = picked
        .project
        .driver(&picked.id)
        .map_err(|error| Error::engine(&error, &picked.id.to_string()))?;
    match driver {
        None => Ok(()),
        Some(holder) => Err(Error::new(
            Exit::Busy,
            format!("goal {} is being driven by {holder}", picked.id),
        )
        .with_hint(format!(
            "watch it with `kapi log {} -f`.",
            picked.id.index()
        ))),
    }
}

/// Drives a goal to its rest.
pub(super) fn drive(
    context: &Context,
    picked: &Picked<'_>,
    begun: Vec<Logged<Event>>,
) -> Result<Exit, Error> {
    let config = context.config(Some(picked.project.layout.root()))?;
    let run = driving::Run {
        project: &picked.project,
        id: &picked.id,
        config: &config,
    };
    driving::drive_to_rest(context, &run, begun, &driving::interrupts()?)
}
