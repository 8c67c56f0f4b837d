//! The limits that a task was submitted with, and what all its attempts used.

use kapi_core::task_id::KernelTaskId;
use kapi_sys::clock::Clock as _;
use kapi_wire::kernel::task::duration_ms;
use serde_json::json;

use crate::amount;
use crate::commands::budget::{OWNER, row};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, failed, no_task};
use crate::ui::Format;

/// Shows the limits.
pub(super) fn budget(context: &Context, id: KernelTaskId) -> Result<Exit, Error> {
    kernel::with(context, OWNER, |kernel| {
        let found = kernel.queue()?.find(id).map_err(|error| failed(&error))?;
        let task = found.ok_or_else(|| no_task(id))?;
        let limits = &task.request.budget;
        let used_ms = duration_ms(&task, context.clock.now_ms());
        let wall_ms = limits
            .time_ms
            .or(Some(task.request.timeout_ms).filter(|ms| *ms > 0));
        let ui = context.ui;
        match ui.format {
            Format::Json => ui.json(&json!({
                "id": id.to_string(),
                "budget": {
                    "tokens": limits.tokens,
                    "usd_micros": limits.usd_micros,
                    "wall_ms": wall_ms,
                },
                "spent": {
                    "tokens": task.usage.tokens(),
                    "usd_micros": task.usage.usd_micros,
                    "wall_ms": used_ms,
                },
            })),
            Format::Human => {
                let spent = amount::tokens(task.usage.tokens());
                ui.line(&row("tokens", &spent, limits.tokens.map(amount::tokens)));
                let spent = amount::spent(&task.usage);
                ui.line(&row("money", &spent, limits.usd_micros.map(amount::usd)));
                let spent = amount::duration(used_ms);
                ui.line(&row("time", &spent, wall_ms.map(amount::duration)));
            }
        }
        Ok(Exit::Success)
    })
}
