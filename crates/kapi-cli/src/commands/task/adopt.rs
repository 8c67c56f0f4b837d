//! `kapi task adopt`: take over a queue that was made somewhere else.

use kapi_core::kernel::task::State;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Takes a queue over.
pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    context.require_human("take over a queue")?;
    kernel::with(context, "kapi task adopt", |kernel| {
        let queue = kernel.queue()?;
        let tasks = &queue.kernel().tasks;
        let n_waiting = tasks
            .values()
            .filter(|task| task.state == State::Pending)
            .count();
        kernel.adopt()?;
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "adopted", "tasks": tasks.len(), "waiting": n_waiting,
            })),
            Format::Human => context.ui.line(&format!(
                "The queue is yours: {} tasks, {n_waiting} of them wait for a worker.",
                tasks.len()
            )),
        }
        Ok(Exit::Success)
    })
}
