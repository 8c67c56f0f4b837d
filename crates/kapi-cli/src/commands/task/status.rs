//! `kapi task status`: one task, ended or not.

use crate::commands::task::{Reference, answer};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};

/// Shows one task.
pub(crate) fn run(context: &Context, args: &Reference) -> Result<Exit, Error> {
    kernel::with(context, "kapi task status", |kernel| {
        let queue = kernel.queue()?;
        let found = queue.find(args.id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(args.id))?;
        let waits = kernel.waits_of(&queue, &task);
        kernel.bring_home(&task);
        let exit = answer::give(context, &task, waits);
        if let Some(lease) = &task.lease {
            let living = kernel.living(&queue)?;
            if living.iter().all(|worker| worker.holder != lease.holder.0) {
                context.ui.say(&format!(
                    "note: {} is gone; the next worker takes the task over. `kapi up --once` does.",
                    lease.holder
                ));
            }
        }
        Ok(exit)
    })
}
