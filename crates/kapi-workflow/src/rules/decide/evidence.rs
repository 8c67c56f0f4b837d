//! Evidence that is brought from outside: checked for shape, and for what it may claim to be.
//!
//! Only what Kapi itself saw is validation.

use kapi_core::actor::Actor;

use crate::rules::decide::{engine, going_on, said};
use crate::rules::denied::Why;
use crate::rules::event::Event;
use crate::rules::evidence::{Evidence, Weight};
use crate::rules::state::Workflow;

/// The most pieces of evidence of one workflow.
const EVIDENCE_MAX: usize = 10_000;

pub(super) fn record(
    workflow: &Workflow,
    actor: &Actor,
    evidence: &Evidence,
) -> Result<Vec<Event>, Why> {
    let action = "record evidence";
    going_on(workflow, action)?;
    match evidence.weight {
        Weight::Narrative => {}
        Weight::Validation => engine(actor, "record validation")?,
    }
    said(&evidence.kind, "record evidence without its kind")?;
    said(&evidence.summary, "record evidence without a summary")?;
    if !evidence.has_sound_reference() {
        return Err(Why::Malformed {
            rule: format!(
                "record evidence with the reference {:?}: it must start with one of {}",
                evidence.reference,
                Evidence::REFERENCES.join(" ")
            ),
        });
    }
    if workflow.evidence.len() >= EVIDENCE_MAX {
        return Err(Why::Malformed {
            rule: format!("record more than {EVIDENCE_MAX} pieces of evidence"),
        });
    }
    let evidence = Box::new(evidence.clone());
    Ok(vec![Event::EvidenceRecorded { evidence }])
}
