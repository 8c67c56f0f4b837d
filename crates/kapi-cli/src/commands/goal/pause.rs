//! Stopping the loop of a goal and keeping the goal. What was under way is begun again later.

use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;

use crate::commands::goal::{answer, pick};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Pauses a goal: the only unfinished one where none is named.
pub(crate) fn pause(context: &Context, reference: Option<&str>) -> Result<Exit, Error> {
    context.require_human("interrupt a goal")?;
    let picked = pick::to_change(context, reference)?;
    let is_paused = picked.goal.status == GoalStatus::Paused;
    let goal = if is_paused {
        picked.goal
    } else {
        picked.submit(context, &GoalCommand::Interrupt)?
    };
    let before = if is_paused {
        "is paused already"
    } else {
        "is paused"
    };
    let lines = [
        format!("Goal {} {before}.", goal.id),
        format!("Resume it with `kapi resume {}`.", goal.id.reference()),
    ];
    Ok(answer::give(context, &goal, &lines))
}
