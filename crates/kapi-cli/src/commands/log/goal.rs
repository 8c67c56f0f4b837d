//! A goal's events, all of them or as they happen.
//!
//! What speaks against relying on the goal is said first.

use std::thread;

use kapi_core::id::GoalId;
use kapi_machine::follow::LogCursor;
use kapi_sys::signal;

use crate::commands::log::runs::{self, RunOwner};
use crate::commands::log::{Args, LOOK, OWNER};
use crate::context::Context;
use crate::error::Error;
use crate::event_words::describe;
use crate::exit_code::Exit;
use crate::progress::event_json;
use crate::trust::Trust;
use crate::ui::{Format, OutputDisposition};

/// Prints events, or what its agents said.
pub(super) fn log(context: &Context, id: &GoalId, args: &Args) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let failed = |error| Error::engine(&error, &id.to_string());
    let is_over = || Ok(project.load(id).map_err(failed)?.status.is_terminal());
    if args.transcript {
        let owner = RunOwner {
            kind: "goal",
            id: &id.to_string(),
            layout: &project.layout,
        };
        return runs::log(context, &owner, args.follow, &is_over);
    }
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut cursor = LogCursor::default();
    if let Ok(goal) = project.load(id) {
        let trust = Trust::of(context, &project, &goal);
        for warning in trust.warnings(&goal) {
            context.ui.say(&format!("warning: {warning}."));
        }
    }
    loop {
        // Asked first, so that whatever made it end is among the events read next.
        let is_over = is_over()?;
        for logged in project.log_since(id, &mut cursor).map_err(failed)? {
            match context.ui.format {
                Format::Json => context.ui.json(&event_json("goal", id, &logged)),
                Format::Human => context.ui.line(&format!(
                    "{:>4}  {}  {:<12}  {}",
                    logged.seq,
                    kapi_store::timestamp::format_ms(logged.at_ms),
                    logged.actor.to_string(),
                    describe(&logged.event)
                )),
            }
        }
        if !args.follow || is_over || context.ui.disposition() == OutputDisposition::Closed {
            return Ok(Exit::Success);
        }
        if interrupts.is_raised() {
            return Ok(Exit::Interrupted);
        }
        thread::sleep(LOOK);
    }
}
