//! `kapi goal reject`: turn a contract down that nobody has approved. The goal ends with it.

use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal reject`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal [default: the only one awaiting approval]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// The reason to record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Turns a contract down.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("reject a contract")?;
    let picked = pick::one_of(
        context,
        args.reference.as_deref(),
        "waiting for approval",
        &|status| matches!(status, GoalStatus::Setup | GoalStatus::Proposed),
    )?;
    if picked.goal.approval.is_some() {
        return Err(Error::new(
            Exit::Denied,
            format!(
                "the contract of goal {} was approved, so it cannot be rejected",
                picked.id
            ),
        )
        .with_hint(format!(
            "cancel it with `kapi cancel {}`.",
            picked.id.reference()
        )));
    }
    let reason = match &args.reason {
        Some(reason) => format!("the contract was rejected: {reason}"),
        None => "the contract was rejected".to_owned(),
    };
    let command = GoalCommand::Cancel {
        reason: Some(reason),
    };
    let goal = picked.submit(context, &command)?;
    let line = format!(
        "Rejected the contract of goal {}; the goal has ended.",
        goal.id
    );
    Ok(answer::give(context, &goal, &[line]))
}
