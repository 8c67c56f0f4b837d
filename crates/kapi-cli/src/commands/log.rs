//! `kapi log`: a goal's events, all of them or as they happen.

use std::thread;
use std::time::Duration;

use kapi_engine::machine::follow::LogCursor;
use kapi_sys::signal;

use crate::context::Context;
use crate::error::Error;
use crate::event_words::describe;
use crate::exit_code::Exit;
use crate::progress::event_json;
use crate::trust::Trust;
use crate::ui::{Fate, Format};

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Options of `kapi log`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The goal: its index, its slug, or both
    reference: String,
    /// Wait for more until the goal ends or you interrupt
    #[arg(short, long)]
    follow: bool,
}

/// Prints events.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let (project, id) = context.find_goal(&args.reference, "kapi log")?;
    let failed = |error| Error::engine(&error, &id.to_string());
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut cursor = LogCursor::default();
    if let Ok(goal) = project.load(&id) {
        let trust = Trust::of(context, &project, &goal);
        for warning in trust.warnings(&goal) {
            context.ui.say(&format!("warning: {warning}."));
        }
    }
    loop {
        // Asked first, so that whatever made it end is among the events read next.
        let is_over = project.load(&id).map_err(failed)?.status.is_terminal();
        for logged in project.log_since(&id, &mut cursor).map_err(failed)? {
            match context.ui.format {
                Format::Json => context.ui.json(&event_json("goal", &id, &logged)),
                Format::Human => context.ui.line(&format!(
                    "{:>4}  {}  {:<12}  {}",
                    logged.seq,
                    kapi_store::timestamp::format_ms(logged.at_ms),
                    logged.actor.to_string(),
                    describe(&logged.event)
                )),
            }
        }
        if !args.follow || is_over || context.ui.fate() == Fate::Closed {
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        thread::sleep(LOOK);
    }
}
