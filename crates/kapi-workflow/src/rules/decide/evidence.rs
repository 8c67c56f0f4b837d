//! Evidence that is brought from outside: checked for shape, and for what it may claim to be.
//!
//! Only what Kapi itself saw is validation.

use kapi_core::actor::Actor;

use crate::rules::decide::{engine, going_on, said};
use crate::rules::denied::WorkflowRule;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::state::Workflow;

/// The most pieces of evidence of one workflow.
const EVIDENCE_MAX: usize = 10_000;

pub(super) fn record(
    workflow: &Workflow,
    actor: &Actor,
    evidence: &WorkflowEvidence,
) -> Result<Vec<WorkflowEvent>, WorkflowRule> {
    let action = "record evidence";
    going_on(workflow, action)?;
    match evidence.weight {
        Weight::Narrative => {}
        Weight::Validation => engine(actor, "record validation")?,
    }
    said(&evidence.kind, "record evidence without its kind")?;
    said(&evidence.summary, "record evidence without a summary")?;
    if !evidence.has_sound_reference() {
        return Err(WorkflowRule::Malformed {
            rule: format!(
                "record evidence with the reference {:?}: it must start with one of {}",
                evidence.reference,
                WorkflowEvidence::REFERENCES.join(" ")
            ),
        });
    }
    if workflow.evidence.len() >= EVIDENCE_MAX {
        return Err(WorkflowRule::Malformed {
            rule: format!("record more than {EVIDENCE_MAX} pieces of evidence"),
        });
    }
    let evidence = Box::new(evidence.clone());
    Ok(vec![WorkflowEvent::EvidenceRecorded { evidence }])
}
