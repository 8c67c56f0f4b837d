//! A workflow's events, all of them or as they happen.
//!
//! For people those that say something; with `--json` every one.

use std::thread;

use kapi_core::workflow_key::WorkflowKey;
use kapi_machine::follow::LogCursor;
use kapi_machine::logged::EventRecord;
use kapi_sys::signal;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::event::WorkflowEvent;

use crate::commands::log::runs::{self, RunOwner};
use crate::commands::log::{Args, LOOK, OWNER};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::progress::event_json;
use crate::ui::{Format, OutputDisposition, Ui};
use crate::workflow::event_words::describe;

/// Prints events, or what its own agents said.
pub(super) fn log(context: &Context, key: &WorkflowKey, args: &Args) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let is_over = || {
        let workflow = Workflows::of(&project).workflow(key);
        let workflow = workflow.map_err(|error| Error::workflow(&error))?;
        Ok(workflow.status.is_terminal())
    };
    if args.transcript {
        let owner = RunOwner {
            kind: "workflow",
            id: &key.id.to_string(),
            layout: &project.layout,
        };
        return runs::log(context, &owner, args.follow, &is_over);
    }
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut cursor = LogCursor::default();
    loop {
        // Asked first, so that whatever made it end is among the events read next.
        let is_over = is_over()?;
        let logged = Workflows::of(&project).workflow_log_since(key, &mut cursor);
        for logged in logged.map_err(|error| Error::workflow(&error))? {
            print(context.ui, key, &logged);
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

fn print(ui: Ui, key: &WorkflowKey, logged: &EventRecord<WorkflowEvent>) {
    match ui.format {
        Format::Json => ui.json(&event_json("workflow", &key.id, logged)),
        Format::Human => {
            if let Some(words) = describe(&logged.event) {
                ui.line(&format!(
                    "{:>4}  {}  {:<12}  {words}",
                    logged.seq,
                    kapi_store::timestamp::format_ms(logged.at_ms),
                    logged.actor.to_string(),
                ));
            }
        }
    }
}
