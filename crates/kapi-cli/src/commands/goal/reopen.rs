//! `kapi goal reopen`: not accept a result that is done. The reason stands first in the next turn.

use kapi_core::id::GoalId;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::GoalStatus;

use crate::commands::goal::pick::{self, GoalChoice};
use crate::commands::goal::{answer, resume};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal reopen`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// Goal [default: the only finished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// What is wrong with the result
    #[arg(value_name = "REASON", required = true)]
    reason: String,
    /// Reopen without starting the goal
    #[arg(long)]
    no_run: bool,
}

/// Takes a goal up again that is done.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("reopen a goal")?;
    if args.reference.is_none() && is_a_reference(&args.reason) {
        let goal = &args.reason;
        return Err(
            Error::usage(format!("{goal:?} names a goal, and no reason was given")).with_hint(
                format!(
                    "say what is wrong with its result: `kapi goal reopen {goal} \"<reason>\"`."
                ),
            ),
        );
    }
    let picked = pick::one_of(context, args.reference.as_deref(), "done", &|status| {
        matches!(status, GoalStatus::Done | GoalStatus::Unverified)
    })?;
    take_up(context, &picked, &args.reason, args.no_run)
}

/// Tells whether a text can only be meant as the name of a goal: its number, or the whole of it.
fn is_a_reference(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit()) || GoalId::parse(text).is_ok()
}

/// Records that a result is not accepted, and goes on.
pub(crate) fn take_up(
    context: &Context,
    picked: &GoalChoice<'_>,
    reason: &str,
    no_run: bool,
) -> Result<Exit, Error> {
    resume::refuse_driven(picked)?;
    let reason = reason.to_owned();
    let goal = picked.submit(
        context,
        &GoalCommand::Person(PersonCommand::Reopen { reason }),
    )?;
    if no_run {
        let lines = [
            format!("Goal {} is {} again.", goal.id, goal.status),
            format!("Resume it with `kapi resume {}`.", goal.id.reference()),
        ];
        return Ok(answer::give(context, &goal, &lines));
    }
    resume::drive(context, picked, Vec::new())
}
