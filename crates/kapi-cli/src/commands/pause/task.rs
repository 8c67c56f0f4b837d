//! Pausing a task: the goal that it drives, where it drives one. Any other is begun and ended by its
//! worker and cannot rest in between, which is said.

use kapi_core::task_id::KernelTaskId;

use crate::commands::goal::pause as goal;
use crate::commands::pause::OWNER;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};

/// Pauses the goal of a task.
pub(super) fn pause(context: &Context, id: KernelTaskId) -> Result<Exit, Error> {
    let task = kernel::with(context, OWNER, |kernel| {
        let found = kernel.queue()?.find(id).map_err(|error| failed(&error))?;
        found.ok_or_else(|| no_task(id))
    })?;
    if let Some(drive) = task.goal_drive() {
        return goal::pause(context, Some(&drive.goal.to_string()));
    }
    let text = format!("{id} cannot be paused: a task runs once, from its start to its end");
    let hint = match task.loop_run() {
        Some(run) => format!(
            "stop it with `kapi cancel {id}`; `kapi loop disable {}` keeps its loop from starting \
             another.",
            run.name()
        ),
        None => format!(
            "stop it with `kapi cancel {id}`, which keeps its work; `kapi task retry {id}` begins \
             it again."
        ),
    };
    Err(Error::new(Exit::Denied, text).with_hint(hint))
}
