//! Telling the agent of a task something: the one in the sandbox of the attempt under way, or that of
//! the goal which the task drives.

use kapi_core::task_id::KernelTaskId;
use kapi_task::rules::task::KernelTask;
use kapi_task::rules::task_state::KernelTaskState;

use crate::commands::goal::say as goal;
use crate::commands::say::{OWNER, launch};
use crate::commands::task::answer;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};
use crate::subject::launches;
use crate::ui::Format;

/// Says something to the agent of a task.
pub(super) fn say(context: &Context, id: KernelTaskId, text: &str) -> Result<Exit, Error> {
    let task = kernel::with(context, OWNER, |kernel| {
        let found = kernel.queue()?.find(id).map_err(|error| failed(&error))?;
        found.ok_or_else(|| no_task(id))
    })?;
    if let Some(drive) = task.goal_drive() {
        return goal::say(context, &drive.goal, text);
    }
    let Some(sandbox) = sandbox_of(&task) else {
        return Err(unheard(&task));
    };
    let here = launches::here(context)?;
    let location = here.iter().find(|it| it.id().as_str() == sandbox);
    let location = location.ok_or_else(|| unheard(&task))?;
    launch::tell(context, location, text)?;
    match context.ui.format {
        Format::Json => {
            answer::give(context, &task, None);
        }
        Format::Human => context.ui.line(&format!(
            "The agent of {id} gets the message in its next turn, which begins now."
        )),
    }
    Ok(Exit::Success)
}

/// Returns the name of the sandbox of the attempt under way.
fn sandbox_of(task: &KernelTask) -> Option<String> {
    let lease = task.lease.as_ref()?;
    (task.state == KernelTaskState::Running).then(|| format!("{}-{}", task.id, lease.fence))
}

fn unheard(task: &KernelTask) -> Error {
    let id = task.id;
    let (why, hint) = match task.state {
        KernelTaskState::Pending | KernelTaskState::Leased => (
            "its agent has not started",
            format!(
                "wait until it has, or cancel it with `kapi cancel {id}` and submit it again with \
                 what you want to say."
            ),
        ),
        KernelTaskState::Running => (
            "its agent is not at work, or works on another machine",
            format!("see `kapi show {id}`."),
        ),
        KernelTaskState::Completed | KernelTaskState::Failed | KernelTaskState::Cancelled => (
            "it has ended",
            "submit another with what you want to say; see `kapi task run --help`.".to_owned(),
        ),
    };
    Error::new(Exit::Denied, format!("no message reaches {id}: {why}")).with_hint(hint)
}
