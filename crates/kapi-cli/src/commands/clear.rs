//! `kapi clear`: detaches this session from its workflow, and does nothing else to anything.
//!
//! The workflow goes on or waits as before; whoever resumes it is attached again.

use kapi_workflow::record::workflows::Workflows;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::session;

/// Options of `kapi clear`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Detaches this session.
pub(crate) fn run(context: &Context, _args: &Args) -> Result<Exit, Error> {
    context.require_human("detach a session")?;
    let session = session::session(context);
    let detached = match (&session, context.project_root()) {
        (Some(session), Ok(root)) => {
            let project = context.project(&root, "kapi clear");
            Workflows::of(&project)
                .detach(session)
                .map_err(|error| Error::workflow(&error))?
        }
        (None, _) => None,
        (Some(_), Err(error)) if error.exit == Exit::NotFound => None,
        (Some(_), Err(error)) => return Err(error),
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "cleared",
            "session": session,
            "detached": detached.as_ref().map(|attached| json!({
                "mode": attached.mode.as_str(),
                "workflow": attached.workflow.to_string(),
            })),
        })),
        Format::Human => match (&session, &detached) {
            (_, Some(attached)) => {
                let (mode, id) = (attached.mode, &attached.workflow);
                context.ui.line(&format!(
                    "This session is detached from {mode} {id}. Nothing else has changed."
                ));
                context
                    .ui
                    .line(&format!("  next     kapi {mode} resume {:03}", id.index()));
            }
            (Some(_), None) => context
                .ui
                .line("This session is not attached to a workflow."),
            (None, None) => context.ui.line(&format!(
                "There is no session here: there is no terminal, and {} is not set.",
                session::VARIABLE
            )),
        },
    }
    Ok(Exit::Success)
}
