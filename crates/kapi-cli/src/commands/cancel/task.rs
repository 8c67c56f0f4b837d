//! Not having a task done after all. What it did so far is kept.
//!
//! The worker that has it ends it; whoever asked may wait for that. Where that one is gone, what it used
//! and left is settled here.

use kapi_core::task_id::KernelTaskId;
use kapi_task::record::error::KernelError;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::denied::KernelDenial;

use crate::commands::cancel::OWNER;
use crate::commands::task::answer;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::foreground::settle;
use crate::kernel::{self, failed, no_task};
use crate::ui::Format;

/// Why it is ended, when nothing was said.
const REASON: &str = "no longer needed";

/// Cancels a task.
pub(super) fn cancel(
    context: &Context,
    id: KernelTaskId,
    reason: Option<&str>,
) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| {
        let mut queue = kernel.queue()?;
        let find = |queue: &kapi_task::record::queue::Queue<'_>| {
            let found = queue.find(id).map_err(|error| failed(&error))?;
            found.ok_or_else(|| no_task(id))
        };
        let task = find(&queue)?;
        if task.state.is_ended() {
            let denied = KernelDenial::WrongState {
                task: id,
                state: task.state,
                action: "cancelled",
            };
            return Err(failed(&KernelError::Denied(denied)));
        }
        kernel.prepare()?;
        let cancel = KernelCommand::Cancel {
            task: id,
            why: reason.unwrap_or(REASON).to_owned(),
        };
        queue
            .submit(&context.actor, &cancel)
            .map_err(|error| failed(&error))?;
        // If the worker that has it is gone, nobody else may end it for a while.
        drop(queue.enlist().map_err(|error| failed(&error))?);
        let task = find(&queue)?;
        drop(queue);
        let interrupts = interrupts()?;
        let task = settle(kernel, task, &|| interrupts.is_raised())?;
        match context.ui.format {
            Format::Json => {
                answer::give(context, &task, None);
            }
            Format::Human if task.state.is_ended() => {
                context.ui.line(&format!("{id} is cancelled."));
            }
            Format::Human => context.ui.line(&format!(
                "{id} is being stopped by its worker; wait for it with `kapi wait {id}`."
            )),
        }
        Ok(Exit::Success)
    })
}
