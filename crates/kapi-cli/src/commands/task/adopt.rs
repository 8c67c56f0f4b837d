//! `kapi task adopt`: take over a queue that was made somewhere else.

use kapi_core::text::counted;
use kapi_task::rules::task_state::KernelTaskState;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed};
use crate::ui::Format;

/// The most tasks that have ended whose commits are brought here.
const HOME_MAX: usize = 100;

/// Takes a queue over.
pub(super) fn run(context: &Context) -> Result<Exit, Error> {
    context.require_human("adopt a queue")?;
    kernel::with(context, "kapi task adopt", |kernel| {
        let queue = kernel.queue()?;
        let tasks = &queue.kernel().tasks;
        let n_waiting = tasks
            .values()
            .filter(|task| task.state == KernelTaskState::Pending)
            .count();
        kernel.adopt()?;
        let ended = queue.history().last(HOME_MAX, None);
        let ended = ended.map_err(|error| failed(&error))?;
        let left = queue.kernel().ended.values();
        left.chain(&ended).for_each(|task| kernel.bring_home(task));
        match context.ui.format {
            Format::Json => context.ui.json(&json!({
                "type": "adopted", "tasks": tasks.len(), "waiting": n_waiting,
            })),
            Format::Human => context.ui.line(&format!(
                "The queue is yours: {}, {n_waiting} of them pending.",
                counted(tasks.len(), "task")
            )),
        }
        Ok(Exit::Success)
    })
}
