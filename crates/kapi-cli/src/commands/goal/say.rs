//! `kapi goal say`: tell the agent something. It cuts into the turn, and the loop goes on with it.

use kapi_goal::rules::command::{Command, PersonCommand};

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal say`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// The goal; may be left out when one goal is unfinished
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// What the agent is told
    #[arg(value_name = "TEXT", required = true)]
    text: String,
}

/// Says something to the agent.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("speak to the agent")?;
    if args.text.trim().is_empty() {
        return Err(Error::usage("there is nothing to say")
            .with_hint("give it as a text: `kapi goal say <GOAL> \"<text>\"`."));
    }
    let picked = pick::to_change(context, args.reference.as_deref())?;
    let text = args.text.clone();
    let goal = picked.submit(context, &Command::Person(PersonCommand::Say { text }))?;
    let reference = goal.id.reference();
    let line = if goal.is_driven() {
        format!("Goal {} hears it first thing in its next turn.", goal.id)
    } else {
        format!(
            "Goal {} is {}; it hears it when it goes on: `kapi resume {reference}`.",
            goal.id, goal.status
        )
    };
    Ok(answer::give(context, &goal, &[line]))
}
