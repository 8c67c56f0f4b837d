//! `kapi goal cancel`: end a goal for good. Its work and record stay.

use kapi_core::goal::command::Command;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal; may be left out when one goal is unfinished
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End it without being asked at the terminal
    #[arg(short, long)]
    yes: bool,
}

/// Cancels a goal; a person at a terminal is asked once more.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("cancel a goal")?;
    let picked = pick::to_change(context, args.reference.as_deref())?;
    let question = format!("End goal {} for good?", picked.id);
    if !args.yes && context.ui.confirm(&question) == Some(false) {
        return Err(Error::new(Exit::Denied, "the goal was kept"));
    }
    let command = Command::Cancel {
        reason: args.reason.clone(),
    };
    let goal = picked.submit(context, &command)?;
    let mut lines = vec![format!("Goal {} is cancelled.", goal.id)];
    lines.extend(
        goal.workspace
            .as_ref()
            .map(|path| format!("Its work stays in {path}.")),
    );
    Ok(answer::give(context, &goal, &lines))
}
