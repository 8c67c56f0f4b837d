//! Telling the agent of a goal something. It cuts into the turn, and the loop goes on with it.

use kapi_core::id::GoalId;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::Goal;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Says something to the agent of a goal.
pub(crate) fn say(context: &Context, id: &GoalId, text: &str) -> Result<Exit, Error> {
    let goal = tell(context, id, text)?;
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

/// Puts on record what is said, and returns the goal.
pub(crate) fn tell(context: &Context, id: &GoalId, text: &str) -> Result<Goal, Error> {
    let picked = pick::to_change(context, Some(&id.to_string()))?;
    let text = text.to_owned();
    picked.submit(context, &GoalCommand::Person(PersonCommand::Say { text }))
}
