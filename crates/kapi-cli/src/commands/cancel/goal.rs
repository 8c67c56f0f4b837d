//! Ending a goal. Its worktree, branch and record stay; the private homes of its agents go.

use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::Goal;
use kapi_launch::clean::goals;
use kapi_wire::result::ResultView;

use crate::commands::cancel::OWNER;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Ends a goal.
pub(super) fn cancel(context: &Context, id: &GoalId, reason: Option<&str>) -> Result<Exit, Error> {
    let (project, id) = context.find_sound_goal(&id.to_string(), OWNER)?;
    let goal = end(context, &project, &id, reason)?;
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(&goal)),
        Format::Human => {
            for line in lines(&goal) {
                context.ui.line(&line);
            }
        }
    }
    Ok(Exit::Success)
}

/// Says that a goal is ended, and where its work is.
pub(crate) fn lines(goal: &Goal) -> Vec<String> {
    let mut lines = vec![format!("Goal {} is cancelled.", goal.id)];
    lines.extend(
        goal.workspace
            .as_ref()
            .map(|path| format!("Its work stays in {path}.")),
    );
    lines
}

/// Ends a goal whose log is sound, and returns it.
pub(crate) fn end(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
    reason: Option<&str>,
) -> Result<Goal, Error> {
    let command = GoalCommand::Cancel {
        reason: reason.map(str::to_owned),
    };
    let submitted = project
        .submit(id, &context.actor, &command)
        .map_err(|error| Error::engine(&error, &id.reference()))?;
    if let Err(error) = goals::remove_homes(&context.location(project, id)?) {
        context
            .ui
            .say(&format!("note: failed to {}", error.message));
    }
    Ok(submitted.goal)
}
