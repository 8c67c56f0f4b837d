//! Pausing a workflow: nothing more is begun, and what is under way is let go of, its goals included.

use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::command::WorkflowCommand;

use crate::commands::pause::OWNER;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::report;

/// Pauses a workflow.
pub(super) fn pause(context: &Context, key: WorkflowKey) -> Result<Exit, Error> {
    let project = context.project(&context.project_root()?, OWNER);
    context.require_own_state(project.layout.root())?;
    let mut found = LocatedWorkflow::load(project, key)?;
    let was_blocked = found.workflow.status == WorkflowStatus::Blocked;
    found.submit(context, &WorkflowCommand::Pause {})?;
    match context.ui.format {
        Format::Json => {
            report::outcome(context.ui, &found.dir(), &found.workflow);
        }
        Format::Human => {
            let id = &found.workflow.id;
            let how = if was_blocked {
                "is at rest already"
            } else {
                "is paused"
            };
            context.ui.line(&format!("Workflow {id} {how}."));
            context.ui.line(&format!(
                "Resume it with `kapi {} resume {}`.",
                found.key.mode,
                id.reference()
            ));
        }
    }
    Ok(Exit::Success)
}
