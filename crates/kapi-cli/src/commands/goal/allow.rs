//! `kapi goal allow`: give consent to an entry of the ask-before list, or to what is waited for.

use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::wait::WaitFor;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal allow`.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Args {
    /// Goal [default: the only unfinished one]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// The 'ask before' entry of the contract, or the approval that the goal waits for
    #[arg(value_name = "WHAT", required = true)]
    what: String,
}

/// Allows what was asked about, for the rest of the goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("approve a request of the agent")?;
    let picked = pick::to_change(context, args.reference.as_deref())?;
    let can_be = askable(&picked.goal);
    let what = args.what.clone();
    let allow = GoalCommand::Person(PersonCommand::Allow { what });
    let goal = picked.submit(context, &allow).map_err(|error| {
        let is_unknown = error.exit == Exit::Denied && error.hint.is_none();
        match (is_unknown, can_be.is_empty()) {
            (true, false) => {
                let list = can_be.join(", ");
                error.with_hint(format!("what can be approved here: {list}."))
            }
            (_, _) => error,
        }
    })?;
    let mut lines = vec![format!("Goal {} may now: {}.", goal.id, args.what)];
    if !goal.is_driven() {
        lines.push(format!(
            "Resume it with `kapi resume {}`.",
            goal.id.reference()
        ));
    }
    Ok(answer::give(context, &goal, &lines))
}

fn askable(goal: &Goal) -> Vec<String> {
    let listed = goal.contract.working.ask_before.iter();
    let mut all: Vec<String> = listed.map(|entry| format!("{entry:?}")).collect();
    if let Some(WaitFor::Approval { what }) = goal.wait.as_ref().map(|wait| &wait.until) {
        all.push(format!("{what:?}"));
    }
    all
}
