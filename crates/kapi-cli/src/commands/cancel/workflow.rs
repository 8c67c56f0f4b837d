//! Ending a workflow: it is given up. Branches, worktrees and documents stay.

use kapi_core::workflow_key::WorkflowKey;
use kapi_workflow::rules::command::WorkflowCommand;

use crate::commands::cancel::OWNER;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::report;

/// Why it is given up, when nothing was said.
const REASON: &str = "no longer needed";

/// Gives a workflow up.
pub(super) fn cancel(
    context: &Context,
    key: WorkflowKey,
    reason: Option<&str>,
) -> Result<Exit, Error> {
    context.require_human("end a workflow")?;
    let project = context.project(&context.project_root()?, OWNER);
    context.require_own_state(project.layout.root())?;
    let mut found = LocatedWorkflow::load(project, key)?;
    let command = WorkflowCommand::Abandon {
        reason: reason.unwrap_or(REASON).to_owned(),
    };
    found.submit(context, &command)?;
    report::outcome(context.ui, &found.dir(), &found.workflow);
    Ok(Exit::Success)
}
