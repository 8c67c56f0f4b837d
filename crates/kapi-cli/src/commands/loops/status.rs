//! `kapi loop status`: where loops stand, in the shape of the specification.
//!
//! Only looks; `kapi loop list` tells people more.

use kapi_core::task_id::LoopName;
use kapi_core::text::one_line;
use kapi_sys::clock::Clock as _;
use kapi_wire::loops::{LoopStatus, LoopView};
use serde_json::json;

use crate::commands::loops::list::latest_skip;
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
        let views: Vec<LoopView> = wanted
            .into_iter()
            .map(|definition| loop_state::view(queue.kernel(), definition, now_ms))
            .collect();
        if context.ui.format == Format::Json {
            let loops: Vec<LoopStatus> = views.iter().map(LoopView::status).collect();
            context.ui.json(&json!({ "loops": loops }));
            return Ok(Exit::Success);
        }
        for view in &views {
            let status = view.status();
            let skip = latest_skip(view).map_or_else(String::new, |skip| {
                format!("; did not run: {}", one_line(&skip.reason))
            });
            context.ui.line(&format!(
                "{}: {}, last run {}, next {}{skip}",
                status.name,
                status.status,
                status.last_run.as_deref().unwrap_or("never"),
                status.next_scheduled.as_deref().unwrap_or("none"),
            ));
        }
        Ok(Exit::Success)
    })
}
