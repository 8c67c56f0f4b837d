//! `/until-done resume`: let the loop go on.
//!
//! A goal out of turns gets its first number of turns again, which is said. What nobody approved is
//! not made active by it.

use kapi_goal::rules::budget::BudgetLimit;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::contract::TURNS_MAX;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::logged::EventRecord;

use crate::commands::goal::pick::{self, GoalChoice};
use crate::context::Context;
use crate::contract::approval;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;

/// Lets the unfinished goal go on.
pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    context.require_human("resume a goal")?;
    let picked = pick::to_change(context, None)?;
    refuse_driven(&picked)?;
    if picked.goal.status == GoalStatus::Proposed {
        return Err(needs_approval(&picked));
    }
    driving::require_approved(&picked.project, &picked.id)?;
    let mut begun = Vec::new();
    if !picked.goal.is_driven() {
        begun.extend(more_turns(context, &picked)?);
        begun.extend(recorded(context, &picked, &GoalCommand::Resume)?);
    }
    drive(context, &picked, begun)
}

/// Adds the turns that the contract gave at first, where all are used up.
fn more_turns(
    context: &Context,
    picked: &GoalChoice<'_>,
) -> Result<Vec<EventRecord<GoalEvent>>, Error> {
    let goal = &picked.goal;
    let Some(turns) = turns_anew(goal) else {
        return Ok(Vec::new());
    };
    let added = turns - goal.budget.turns;
    context.ui.say(&format!(
        "note: all {} turns are used up; adding {added} more, as many as the contract started with.",
        goal.budget.turns
    ));
    let command = GoalCommand::Person(PersonCommand::SetTurns { turns });
    recorded(context, picked, &command)
}

/// Returns the number of turns with those that the contract gave at first added, where all are used
/// up; nothing where there is no room for more, which the rule's own refusal says.
pub(crate) fn turns_anew(goal: &Goal) -> Option<u32> {
    let is_out = goal.budget.used_up(&goal.spent) == Some(BudgetLimit::Turns);
    if !is_out || goal.status.is_terminal() {
        return None;
    }
    let first = goal.contract.budget.turns;
    let turns = goal.budget.turns.saturating_add(first).min(TURNS_MAX);
    (turns > goal.budget.turns).then_some(turns)
}

fn recorded(
    context: &Context,
    picked: &GoalChoice<'_>,
    command: &GoalCommand,
) -> Result<Vec<EventRecord<GoalEvent>>, Error> {
    picked
        .project
        .submit(&picked.id, &context.actor, command)
        .map(|submitted| submitted.recorded)
        .map_err(|error| Error::engine(&error, &picked.id.reference()))
}

/// Refuses where another process goes on with the goal already.
pub(crate) fn refuse_driven(picked: &GoalChoice<'_>) -> Result<(), Error> {
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
            picked.id.reference()
        ))),
    }
}

/// Returns why a goal does not go on before its contract is approved.
fn needs_approval(picked: &GoalChoice<'_>) -> Error {
    Error::new(
        Exit::Denied,
        format!(
            "goal {} is proposed: its contract must be approved first",
            picked.id
        ),
    )
    .with_hint(format!(
        "review it with `kapi show {}`, then run `{}`.",
        picked.id.reference(),
        approval::line(&picked.id, &picked.goal.contract_hash)
    ))
}

/// Drives a goal to its rest.
pub(super) fn drive(
    context: &Context,
    picked: &GoalChoice<'_>,
    begun: Vec<EventRecord<GoalEvent>>,
) -> Result<Exit, Error> {
    let config = context.config(Some(picked.project.layout.root()))?;
    let run = driving::GoalRun {
        project: &picked.project,
        id: &picked.id,
        config: &config,
    };
    driving::drive_to_rest(context, &run, begun, &driving::interrupts()?)
}
