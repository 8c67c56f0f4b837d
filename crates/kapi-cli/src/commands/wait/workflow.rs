//! Waiting for a workflow: until it has ended, or its person has to decide, answer or unblock it.

use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::mode_spec::WorkflowStage;
use kapi_workflow::rules::state::Workflow;

use crate::commands::wait::{OWNER, WaitSubject};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::located::LocatedWorkflow;
use crate::workflow::report;

/// Waits for a workflow.
pub(super) fn wait(
    context: &Context,
    key: &WorkflowKey,
    timeout_ms: Option<u64>,
) -> Result<Exit, Error> {
    let root = context.project_root()?;
    let project = context.project(&root, OWNER);
    let layout = project.layout.workflow(key.mode, &key.id);
    let waited = WaitSubject {
        reference: format!("{:03}", key.id.index()),
        dir: layout.dir().to_path_buf(),
        timeout_ms,
    };
    let mut is_first = true;
    let rested = waited.until(&mut || {
        let found = LocatedWorkflow::load(context.project(&root, OWNER), key.clone())?;
        if rests(&found.workflow) {
            return Ok(Some(found));
        }
        let driver = Workflows::of(&project)
            .workflow_driver(key)
            .map_err(|error| Error::workflow(&error))?;
        if is_first && driver.is_none() {
            context.ui.say(&format!(
                "note: nothing is driving workflow {}; start it with `kapi {} resume {:03}`.",
                key.id,
                key.mode,
                key.id.index()
            ));
        }
        is_first = false;
        Ok(None)
    })?;
    Ok(rested.map_or(Exit::Interrupted, |found| {
        report::outcome(context.ui, &found.dir(), &found.workflow)
    }))
}

/// Tells whether nothing more happens to it by itself.
fn rests(workflow: &Workflow) -> bool {
    let rules = workflow.body.rules();
    let is_asked = workflow.pending.is_some() || rules.open_question().is_some();
    let (phase, _) = rules.phase();
    match workflow.status {
        WorkflowStatus::Active => is_asked || phase.stage == WorkflowStage::Handover,
        WorkflowStatus::Blocked
        | WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => true,
    }
}
