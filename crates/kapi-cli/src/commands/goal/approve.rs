//! `kapi goal approve`: a person approves the contract of a goal, and the goal begins.
//!
//! At a terminal after it was shown, with `--yes`, or by naming its hash. Nothing else approves. A
//! goal that was approved elsewhere, or before approvals were kept in the person's home, is approved
//! anew: of exactly what it says of itself now.

use kapi_goal::record::approvals::approval::GoalLack;
use kapi_goal::record::contract_hash::contract_hash;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent};
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::logged::EventRecord;

use crate::commands::goal::pick::{self, GoalChoice};
use crate::commands::goal::{answer, resume, unfinished};
use crate::config::Config;
use crate::context::Context;
use crate::contract::{self, approval, isolation, words};
use crate::error::Error;
use crate::exit_code::Exit;

/// Options of `kapi goal approve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Goal [default: the only one awaiting approval]
    #[arg(value_name = "GOAL")]
    reference: Option<String>,
    /// Approve only the contract with this hash (at least 12 digits)
    #[arg(long, value_name = "HASH", conflicts_with = "yes")]
    hash: Option<String>,
    /// Approve whatever contract is shown; the log records this
    #[arg(short, long)]
    yes: bool,
    /// Cancel this goal once the new contract is approved
    #[arg(long, value_name = "GOAL")]
    replace: Option<String>,
    /// Approve without starting the goal
    #[arg(long)]
    no_run: bool,
}

/// Approves a contract and lets the goal begin.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("approve a contract")?;
    let picked = pick::one_of(
        context,
        args.reference.as_deref(),
        "waiting for approval",
        &|status| status == GoalStatus::Proposed,
    )?;
    let choice = unfinished::named(&picked.project, args.replace.as_deref(), &picked.id)?;
    if picked.goal.status != GoalStatus::Proposed {
        let lack = picked.project.unapproved(&picked.goal);
        return match lack.map_err(|error| Error::engine(&error, &picked.id.to_string()))? {
            Some(lack) if picked.goal.approval.is_some() => {
                anew(context, args, &picked, &lack)?;
                unfinished::carry_out(context, &picked.project, &choice, &picked.id)?;
                let lines = [
                    format!(
                        "The contract of goal {} is now approved on this machine.",
                        picked.id
                    ),
                    format!("Resume it with `kapi resume {}`.", picked.id.reference()),
                ];
                Ok(answer::give(context, &picked.goal, &lines))
            }
            // The core's own refusal names the status.
            Some(_) | None => Err(refusal(context, &picked)),
        };
    }
    let contract = &picked.goal.contract;
    let notes = isolation::isolation_note(contract);
    words::show_whole(context, contract, &notes);
    words::show_given(context, &picked.goal);
    context
        .ui
        .say(&format!("  hash      {}", picked.goal.contract_hash));
    let means = means(context, args, &picked)?;
    let config = context.config(Some(picked.project.layout.root()))?;
    let begun = record(context, &config, &picked, means)?;
    unfinished::carry_out(context, &picked.project, &choice, &picked.id)?;
    if args.no_run {
        let goal = reload(&picked)?;
        let lines = [
            format!("The contract of goal {} is approved.", goal.id),
            format!("Start it with `kapi resume {}`.", goal.id.reference()),
        ];
        return Ok(answer::give(context, &goal, &lines));
    }
    resume::drive(context, &picked, begun)
}

/// Approves a goal that says it was approved, and that this person's home knows nothing of.
fn anew(
    context: &Context,
    args: &Args,
    picked: &GoalChoice<'_>,
    lack: &GoalLack,
) -> Result<(), Error> {
    let goal = &picked.goal;
    let contract = &goal.contract;
    let mut notes = isolation::isolation_note(contract);
    notes.push(format!(
        "the goal is marked as approved, but {lack}. An older version or somebody else created \
         it, or it was moved: approve it only if it is yours."
    ));
    words::show_whole(context, contract, &notes);
    words::show_given(context, goal);
    // The name of the hash comes from the same files as the contract, so it is made again.
    let hash = contract_hash(contract).map_err(|error| Error::engine(&error, ""))?;
    context.ui.say(&format!("  hash      {hash}"));
    if hash != goal.contract_hash {
        let text = format!(
            "the contract of goal {} does not match its recorded hash ({})",
            picked.id, goal.contract_hash
        );
        return Err(Error::new(Exit::Denied, text).with_hint("start your own goal instead."));
    }
    means(context, args, picked)?;
    let config = context.config(Some(picked.project.layout.root()))?;
    contract::check(context, &config, contract)?;
    picked
        .project
        .adopt(&context.actor, goal)
        .map_err(|error| Error::engine(&error, &picked.id.reference()))
}

fn means(context: &Context, args: &Args, picked: &GoalChoice<'_>) -> Result<ApprovalMeans, Error> {
    if let Some(hash) = &args.hash {
        approval::check_hash(hash, &picked.goal.contract_hash)?;
        return Ok(ApprovalMeans::NamedHash);
    }
    if args.yes {
        return Ok(ApprovalMeans::YesFlag);
    }
    match context.ui.confirm("Approve this contract?") {
        Some(true) => Ok(ApprovalMeans::Terminal),
        Some(false) => Err(
            Error::new(Exit::Denied, "the contract was not approved").with_hint(format!(
                "reject it with `kapi goal reject {}`.",
                picked.id.reference()
            )),
        ),
        None => Err(
            Error::usage("a contract needs approval, and there is no terminal to ask on")
                .with_hint(format!(
                    "read the contract above, then run `{}`.",
                    approval::line(&picked.id, &picked.goal.contract_hash)
                )),
        ),
    }
}

/// Records the approval of the contract that was shown, once its parties could begin.
pub(super) fn record(
    context: &Context,
    config: &Config,
    picked: &GoalChoice<'_>,
    means: ApprovalMeans,
) -> Result<Vec<EventRecord<GoalEvent>>, Error> {
    let contract = &picked.goal.contract;
    contract::check(context, config, contract)?;
    approval::approve(context, &picked.project, &picked.id, contract, means)
}

fn refusal(context: &Context, picked: &GoalChoice<'_>) -> Error {
    let command = GoalCommand::Approve {
        contract_hash: picked.goal.contract_hash.clone(),
        means: ApprovalMeans::NamedHash,
    };
    match picked.submit(context, &command) {
        Err(error) => error,
        // It was proposed again in between; nobody has looked at that contract.
        Ok(goal) => Error::new(
            Exit::Internal,
            format!("goal {} was approved although it was not proposed", goal.id),
        ),
    }
}

fn reload(picked: &GoalChoice<'_>) -> Result<kapi_goal::rules::state::Goal, Error> {
    picked
        .project
        .load(&picked.id)
        .map_err(|error| Error::engine(&error, &picked.id.to_string()))
}
