//! `kapi goal budget`: set the number of turns, up or down. A large number is asked about.

use kapi_core::goal::command::{Command, PersonCommand};
use kapi_core::goal::contract::TURNS_MAX;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The most turns that are set without being asked.
const TURNS_ASKED_ABOVE: u32 = 500;

/// Options of `kapi goal budget`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// The goal; may be left out when one goal is unfinished
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// Turns from now on, those taken included (1 to 20000)
    #[arg(value_name = "N", required = true)]
    turns: String,
    /// Set more than 500 turns without being asked at the terminal
    #[arg(short, long)]
    yes: bool,
}

/// Sets the turn budget.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let is_number = args.turns.bytes().all(|byte| byte.is_ascii_digit());
    let turns = args.turns.parse().unwrap_or(u64::MAX);
    if !is_number {
        return Err(
            Error::usage(format!("{:?} is no number of turns", args.turns))
                .with_hint("the turn budget is a whole number from 1 to 20000."),
        );
    }
    set(context, args.reference.as_deref(), turns, args.yes)
}

/// Sets the turn budget to a number that may be far too large.
pub(super) fn set(
    context: &Context,
    reference: Option<&str>,
    turns: u64,
    yes: bool,
) -> Result<Exit, Error> {
    context.require_human("set the number of turns")?;
    let within = u32::try_from(turns)
        .ok()
        .filter(|turns| (1..=TURNS_MAX).contains(turns));
    let Some(turns) = within else {
        return Err(Error::usage(format!(
            "the turn budget must be 1 to {TURNS_MAX}"
        )));
    };
    let picked = pick::to_change(context, reference)?;
    if turns > TURNS_ASKED_ABOVE && !yes {
        let question = format!("{turns} turns may cost much time and money. Set them?");
        match context.ui.confirm(&question) {
            Some(true) => {}
            Some(false) => return Err(Error::new(Exit::Denied, "the turn budget was kept")),
            None => {
                return Err(Error::new(
                    Exit::Denied,
                    format!(
                        "more than {TURNS_ASKED_ABOVE} turns need a yes, and nobody is at a terminal"
                    ),
                )
                .with_hint("add `--yes` if you mean it."));
            }
        }
    }
    let command = Command::Person(PersonCommand::SetTurns { turns });
    let goal = picked.submit(context, &command)?;
    let line = format!(
        "Goal {} may take {turns} turns; {} are taken.",
        goal.id, goal.spent.turns
    );
    Ok(answer::give(context, &goal, &[line]))
}
