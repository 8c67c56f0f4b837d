//! One task, ended or not: where it stands, who has it, what it made.
//!
//! Brings home what it made on another machine.

use kapi_core::task_id::KernelTaskId;

use crate::commands::show::OWNER;
use crate::commands::task::answer;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};

/// Shows one task.
pub(super) fn show(context: &Context, id: KernelTaskId) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| {
        let queue = kernel.queue()?;
        let found = queue.find(id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(id))?;
        let waits = kernel.waits_of(&queue, &task);
        kernel.bring_home(&task);
        let exit = answer::give(context, &task, waits);
        if let Some(lease) = &task.lease {
            let living = kernel.living(&queue)?;
            if living.iter().all(|worker| worker.holder != lease.holder.0) {
                context.ui.say(&format!(
                    "note: {} is gone; the next worker continues the task. Start one with `kapi \
                     up --once`.",
                    lease.holder
                ));
            }
        }
        Ok(exit)
    })
}
