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

use crate::commands::log::{LOOK, OWNER};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::progress::event_json;
use crate::ui::{Format, OutputDisposition, Ui};
use crate::workflow::event_words::describe;

/// Prints events.
pub(super) fn log(context: &Context, key: &WorkflowKey, follow: bool) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    let interrupts = signal::interrupts().map_err(|error| Error::failed(&error))?;
    let mut cursor = LogCursor::default();
    loop {
        // Asked first, so that whatever made it end is among the events read next.
        let workflow = Workflows::of(&project)
            .workflow(key)
            .map_err(|error| Error::workflow(&error))?;
        let logged = Workflows::of(&project).workflow_log_since(key, &mut cursor);
        for logged in logged.map_err(|error| Error::workflow(&error))? {
            print(context.ui, key, &logged);
        }
        if !follow
            || workflow.status.is_terminal()
            || context.ui.disposition() == OutputDisposition::Closed
        {
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
