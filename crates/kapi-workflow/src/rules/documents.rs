//! The artifacts of a workflow for people: projections of its state, made anew at will.
//!
//! What an approval is bound to is the bytes of one of them.

use crate::rules::state::Workflow;

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowDocument {
    /// Its file name in the workflow's directory.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Returns every artifact of a workflow as it stands.
#[must_use]
pub fn documents(workflow: &Workflow) -> Vec<WorkflowDocument> {
    workflow.body.rules().documents(workflow)
}
