//! What becomes of a goal that is unfinished when another one is set up: replaced, or kept.
//!
//! Goals can go on side by side, each with a branch of its own; so without a word both do.

use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;

use crate::commands::goal::pick;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// What a flag says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalFlag {
    /// The unfinished goal is ended.
    Replace,
    /// Both go on.
    Keep,
    /// The person is asked, where there is one.
    Ask,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApprovalChoice {
    /// The new goal stands beside what there is.
    Beside,
    /// The new goal takes the place of this one.
    Replace(GoalId),
}

/// Decides what becomes of unfinished goals.
pub(super) fn choose(
    context: &Context,
    project: &Project<'_>,
    wish: ApprovalFlag,
) -> Result<ApprovalChoice, Error> {
    let unfinished = pick::state_so(project, &|status| {
        matches!(
            status,
            GoalStatus::Active
                | GoalStatus::Paused
                | GoalStatus::Blocked
                | GoalStatus::Stalled
                | GoalStatus::Waiting
        )
    })?;
    let Some(last) = unfinished.last() else {
        return Ok(ApprovalChoice::Beside);
    };
    let names: Vec<String> = unfinished.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    match (wish, unfinished.len()) {
        (ApprovalFlag::Keep, _) => Ok(ApprovalChoice::Beside),
        (ApprovalFlag::Replace, 1) => Ok(ApprovalChoice::Replace(last.clone())),
        (ApprovalFlag::Replace, _) => Err(Error::new(
            Exit::Denied,
            format!(
                "goal_exists: several goals are unfinished and any of them could be replaced: {names}"
            ),
        )
        .with_hint("cancel the ones you mean with `kapi cancel`, then create the new one.")),
        (ApprovalFlag::Ask, 1) => asked(context, last),
        (ApprovalFlag::Ask, _) => {
            context.ui.say(&format!(
                "note: {names} are unfinished; the new goal runs alongside them."
            ));
            Ok(ApprovalChoice::Beside)
        }
    }
}

fn asked(context: &Context, unfinished: &GoalId) -> Result<ApprovalChoice, Error> {
    let question =
        format!("Goal {unfinished} is unfinished. Replace it, keep both, or cancel the new one?");
    match context.ui.choose(&question, &["replace", "keep", "cancel"]) {
        Some(0) => Ok(ApprovalChoice::Replace(unfinished.clone())),
        Some(1) => Ok(ApprovalChoice::Beside),
        Some(_) => Err(Error::new(Exit::Denied, "no new goal was created")),
        None => {
            context.ui.say(&format!(
                "note: goal {unfinished} is unfinished; the new goal runs alongside it \
                 (`--replace` cancels it)."
            ));
            Ok(ApprovalChoice::Beside)
        }
    }
}

/// Returns the choice that a person made by naming the goal to end.
pub(super) fn named(
    project: &Project<'_>,
    reference: Option<&str>,
    new: &GoalId,
) -> Result<ApprovalChoice, Error> {
    let Some(reference) = reference else {
        return Ok(ApprovalChoice::Beside);
    };
    let replaced = project
        .resolve(reference)
        .map_err(|error| Error::resolve(&error))?;
    if replaced == *new {
        return Err(Error::usage("a goal cannot replace itself"));
    }
    Ok(ApprovalChoice::Replace(replaced))
}

/// Ends the goal that a new one takes the place of, now that the new contract is approved. A crash
/// before this leaves both.
pub(super) fn carry_out(
    context: &Context,
    project: &Project<'_>,
    choice: &ApprovalChoice,
    new: &GoalId,
) -> Result<(), Error> {
    let ApprovalChoice::Replace(replaced) = choice else {
        return Ok(());
    };
    let failed = |error| Error::engine(&error, &replaced.reference());
    if project.load(replaced).map_err(failed)?.status.is_terminal() {
        context
            .ui
            .say(&format!("note: goal {replaced} had ended already."));
        return Ok(());
    }
    let command = GoalCommand::Cancel {
        reason: Some(format!("replaced by goal {new}")),
    };
    project
        .submit(replaced, &context.actor, &command)
        .map_err(failed)?;
    context.ui.say(&format!(
        "note: goal {replaced} is cancelled; its work and log are kept."
    ));
    Ok(())
}
