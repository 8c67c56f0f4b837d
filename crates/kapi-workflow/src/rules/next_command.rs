//! What a person can type next, for every state a workflow can be in.
//!
//! Knows commands by their words only; that they exist is tested where they are defined.

use kapi_core::link::WorkflowRelation;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::mode_spec::{ModeSpec, WorkflowStage};
use crate::rules::spent::raise_command;
use crate::rules::state::Workflow;

/// Returns the commands that make sense now, most useful first; never none.
#[must_use]
pub fn next_commands(workflow: &Workflow) -> Vec<String> {
    let mode = workflow.mode();
    let index = format!("{:03}", workflow.id.index());
    let resume = format!("kapi {mode} resume {index}");
    let status = format!("kapi {mode} status");
    match workflow.status {
        WorkflowStatus::Active if workflow.pending.is_some() => {
            let approve = format!("kapi {mode} approve {index}");
            let revise = format!("{resume} --revise 'what should change'");
            vec![approve, revise, "kapi inbox".to_owned()]
        }
        WorkflowStatus::Blocked if raise_command(workflow).is_some() => {
            let raise = raise_command(workflow).into_iter();
            raise.chain([format!("kapi status {index}")]).collect()
        }
        WorkflowStatus::Blocked if cure(workflow, &resume).is_some() => {
            let cure = cure(workflow, &resume).into_iter();
            cure.chain([format!("kapi status {index}")]).collect()
        }
        WorkflowStatus::Blocked if workflow.pending.is_some() => {
            vec![resume, format!("kapi {mode} approve {index}")]
        }
        WorkflowStatus::Active if is_handed_over(workflow) => {
            // Without a purpose they are for the goal that is handed over.
            let start = ModeSpec::takers().map(|mode| format!("kapi {mode} --from {index}"));
            let reopen = format!("{resume} --reopen 'what is not clear yet'");
            start.chain([reopen]).collect()
        }
        WorkflowStatus::Active | WorkflowStatus::Blocked => {
            vec![resume, format!("kapi status {index}")]
        }
        WorkflowStatus::Linked => successor(workflow).into_iter().chain([status]).collect(),
        WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Integrated => {
            vec![format!("kapi status {index}"), status]
        }
    }
}

/// Returns what lifts a block, where that is the command that goes on with more than its name.
fn cure(workflow: &Workflow, resume: &str) -> Option<String> {
    let unblock = &workflow.blocked.as_ref()?.unblock;
    let options = unblock.strip_prefix(resume)?.strip_prefix(" --")?;
    let is_command = !options.contains([';', ',', '\'']);
    is_command.then(|| unblock.clone())
}

/// Tells whether only another workflow is to follow.
#[must_use]
pub fn is_handed_over(workflow: &Workflow) -> bool {
    let (phase, _) = workflow.body.rules().phase();
    phase.stage == WorkflowStage::Handover
}

fn successor(workflow: &Workflow) -> Option<String> {
    let link = workflow
        .links
        .iter()
        .find(|link| link.relation == WorkflowRelation::Successor)?;
    let mode: Mode = link.mode;
    Some(format!("kapi {mode} resume {:03}", link.workflow.index()))
}
