//! `kapi loop next`: when schedules trigger loops next, all of them in one order.
//!
//! Only looks, and only ahead: what is due already is told by `kapi loop list`.

use kapi_core::task_id::LoopName;
use kapi_status::file::timestamp;
use kapi_sys::clock::Clock as _;
use kapi_task::record::schedule::{Schedule, upcoming};
use kapi_task::rules::state::is_on;
use serde::Serialize;
use serde_json::json;

use crate::commands::loops::wall::Wall;
use crate::commands::loops::{loop_state, parse};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// Options of `kapi loop next`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show only this loop
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: Option<LoopName>,
    /// Number of scheduled times to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

/// One time at which a schedule triggers a loop.
#[derive(Debug, Serialize)]
struct NextRow<'a> {
    #[serde(rename = "loop")]
    name: &'a str,
    at_ms: i64,
    /// The same, UTC.
    at: String,
    /// Whether its triggers are on: nothing comes of it otherwise.
    is_enabled: bool,
}

/// Shows the times.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop next", |kernel| {
        let found = kernel.loops();
        let queue = kernel.queue()?;
        let now_ms = context.clock.now_ms();
        let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
        let wanted = match &args.name {
            Some(name) => vec![loop_state::find(&found, name)?],
            None => found.definitions.iter().collect(),
        };
        let mut rows = Vec::new();
        for definition in wanted {
            let Ok(Some(schedule)) = Schedule::of(&definition.name, &definition.trigger) else {
                continue;
            };
            let is_enabled = is_on(definition, queue.kernel().loops.get(&definition.name));
            let times = upcoming(&schedule, now_ms, limit);
            rows.extend(times.into_iter().map(|time| NextRow {
                name: definition.name.as_str(),
                at_ms: time.at_ms,
                at: timestamp(time.at_ms),
                is_enabled,
            }));
        }
        rows.sort_by(|one, other| (one.at_ms, one.name).cmp(&(other.at_ms, other.name)));
        rows.truncate(limit);
        match context.ui.format {
            Format::Json => context.ui.json(&json!({ "next": rows })),
            Format::Human => show(context, &rows, now_ms),
        }
        Ok(Exit::Success)
    })
}

fn show(context: &Context, rows: &[NextRow<'_>], now_ms: i64) {
    let wall = Wall::new();
    for row in rows {
        let off = if row.is_enabled { "" } else { "  (off)" };
        let at = wall.show(row.at_ms, now_ms);
        context.ui.line(&format!("{at}  {}{off}", row.name));
    }
    if rows.is_empty() {
        context.ui.say("No schedule triggers a loop here.");
    }
}
