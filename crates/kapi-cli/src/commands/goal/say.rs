//! `kapi goal say`: tell the agent something. It cuts into the turn, and the loop goes on with it.

use kapi_goal::rules::command::{GoalCommand, PersonCommand};

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal say`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// Goal [default: the only unfinished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// The message
    #[arg(value_name = "TEXT", required = true)]
    text: String,
}

/// Says something to the agent.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("send the agent a message")?;
    if args.text.trim().is_empty() {
        return Err(Error::usage("the message is empty")
            .with_hint("give a text: `kapi goal say <GOAL> \"<text>\"`."));
    }
    let picked = pick::to_change(context, args.reference.as_deref())?;
    let text = args.text.clone();
    let goal = picked.submit(context, &GoalCommand::Person(PersonCommand::Say { text }))?;
    let reference = goal.id.reference();
    let line = if goal.is_driven() {
        format!(
            "Goal {} gets the message at the start of its next turn.",
            goal.id
        )
    } else {
        format!(
            "Goal {} is {}; it gets the message when you resume it: `kapi resume {reference}`.",
            goal.id, goal.status
        )
    };
    Ok(answer::give(context, &goal, &[line]))
}
