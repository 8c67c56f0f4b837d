//! `kapi loop status`: where loops stand, in the shape of the specification.
//!
//! Only looks; `kapi loop list` tells people more.

use kapi_core::task_id::LoopName;
use kapi_sys::clock::Clock as _;
use kapi_wire::loops::LoopStatus;
use serde_json::json;

use crate::commands::loops::{loop_state, parse};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi loop status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show only this loop
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: Option<LoopName>,
}

/// Shows where loops stand.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop status", |kernel| {
        let found = kernel.loops();
        let queue = kernel.queue()?;
        let now_ms = context.clock.now_ms();
        let wanted = match &args.name {
            Some(name) => vec![loop_state::find(&found, name)?],
            None => found.definitions.iter().collect(),
        };
        let loops: Vec<LoopStatus> = wanted
            .into_iter()
            .map(|definition| loop_state::view(queue.kernel(), definition, now_ms).status())
            .collect();
        match context.ui.format {
            Format::Json => context.ui.json(&json!({ "loops": loops })),
            Format::Human => {
                for status in &loops {
                    context.ui.line(&format!(
                        "{}: {}, last run {}, next {}",
                        status.name,
                        status.status,
                        status.last_run.as_deref().unwrap_or("never"),
                        status.next_scheduled.as_deref().unwrap_or("none"),
                    ));
                }
            }
        }
        Ok(Exit::Success)
    })
}
