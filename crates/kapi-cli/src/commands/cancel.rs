//! `kapi cancel`: stop a goal for good. Its worktree, branch and record stay.

use kapi_core::goal::command::Command;
use kapi_wire::result::ResultView;
use kapi_world::launching::clean::goals;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// Options of `kapi cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both
    reference: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Cancels a goal.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_sound_goal(&args.reference, "kapi cancel")?;
    let command = Command::Cancel {
        reason: args.reason.clone(),
    };
    let submitted = project
        .submit(&id, &context.actor, &command)
        .map_err(|error| Error::engine(&error, &id.to_string()))?;
    if let Err(error) = goals::remove_homes(&context.place(&project, &id)?) {
        context
            .ui
            .say(&format!("note: failed to {}", error.message));
    }
    match context.ui.format {
        Format::Json => context.ui.json(&ResultView::from(&submitted.goal)),
        Format::Human => {
            context.ui.line(&format!("Goal {id} is cancelled."));
            if let Some(worktree) = &submitted.goal.workspace {
                context.ui.line(&format!("Its work stays in {worktree}."));
            }
        }
    }
    Ok(Exit::Success)
}
