//! `acceptance.md`: every criterion and the evidence that speaks for it.

use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::modes::ralph::documents::markdown::code;
use crate::rules::modes::ralph::event::AcceptedCriterion;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let mut parts = vec![format!("# Acceptance of {}", workflow.id)];
    if let Some(branch) = &ralph.branch {
        let (name, head) = (code(&branch.name), code(&branch.head));
        parts.push(format!("Branch {name} at {head}."));
    }
    let account = ralph.account.iter();
    let accepted = account.flat_map(|account| &account.acceptance);
    parts.extend(accepted.map(|accepted| one(workflow, ralph, accepted)));
    format!("{}\n", parts.join("\n\n"))
}

fn one(workflow: &Workflow, ralph: &Ralph, accepted: &AcceptedCriterion) -> String {
    let criteria = ralph.plan.iter().flat_map(|plan| &plan.criteria);
    let criterion = criteria
        .into_iter()
        .find(|found| found.id == accepted.criterion);
    let text = criterion.map_or("", |found| &found.text);
    let mut lines = vec![
        format!("## {}: {}", accepted.criterion, one_line(text)),
        String::new(),
    ];
    if let Some(exempt) = criterion.and_then(|found| found.exempt.as_ref()) {
        lines.push(format!("No command can verify it: {}\n", one_line(exempt)));
    }
    for number in &accepted.evidence {
        let at = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        lines.extend(workflow.evidence.get(at).map(|found| entry(*number, found)));
    }
    lines.join("\n")
}

/// Returns one piece of evidence in a line, and what it weighs.
pub(in crate::rules::modes::ralph) fn entry(number: u32, found: &WorkflowEvidence) -> String {
    let weight = match found.weight {
        Weight::Validation => "validation",
        Weight::Narrative => "narrative",
    };
    let by = found
        .verifier
        .as_ref()
        .map(|by| format!(", by {}", one_line(by)));
    format!(
        "- Evidence {number} ({weight}, {}): {} ({}){}",
        one_line(&found.kind),
        one_line(&found.summary),
        code(&found.reference),
        by.unwrap_or_default()
    )
}
