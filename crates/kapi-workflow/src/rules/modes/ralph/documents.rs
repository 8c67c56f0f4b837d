//! The artifacts of a build for people: context, plan, argument, review, verification, acceptance,
//! and the report of what was decided.
//!
//! Projections of the state, made anew at will. The plan's bytes are what an approval is bound to:
//! nothing that changes after the proposal stands in them.

use crate::rules::documents::WorkflowDocument;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::state::Workflow;

pub(in crate::rules::modes::ralph) mod acceptance;
pub(in crate::rules::modes::ralph) mod consensus;
pub(in crate::rules::modes::ralph) mod context;
pub(in crate::rules::modes) mod markdown;
pub(in crate::rules::modes::ralph) mod plan;
pub(in crate::rules::modes::ralph) mod report;
pub(in crate::rules::modes::ralph) mod review;
pub(in crate::rules::modes::ralph) mod verify;

/// Returns every artifact of a build as it stands.
pub(crate) fn documents(workflow: &Workflow, ralph: &Ralph) -> Vec<WorkflowDocument> {
    let mut documents = Vec::new();
    let mut add = |name: &str, text: String| {
        documents.push(WorkflowDocument {
            name: name.to_owned(),
            text,
        });
    };
    add("context.md", context::text(workflow, ralph));
    if ralph.plan.is_some() {
        add("plan.md", plan::text(workflow, ralph));
    }
    if !ralph.attempts.is_empty() {
        add("consensus.md", consensus::text(workflow, ralph));
    }
    if !ralph.reviews.is_empty() {
        add("review.md", review::text(workflow, ralph));
    }
    if verify::has_something(workflow) {
        add("verify.md", verify::text(workflow, ralph));
    }
    if ralph.account.is_some() {
        add("acceptance.md", acceptance::text(workflow, ralph));
    }
    add("decision-report.md", report::text(workflow, ralph));
    documents
}

#[cfg(test)]
mod tests;
