//! `context.md`: what the build starts from.

use kapi_core::link::WorkflowRelation;

use crate::rules::modes::ralph::documents::markdown::{block, code, list, quote};
use crate::rules::modes::ralph::prompt::spec_text;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::spent;
use crate::rules::state::Workflow;

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let terms = &workflow.terms;
    let allowed = spent::limit(workflow);
    let source = workflow
        .links
        .iter()
        .find(|link| link.relation == WorkflowRelation::Context)
        .map_or_else(
            || "No interview: the plan contains its own context.".to_owned(),
            |link| format!("The approved spec of {}.", code(&link.workflow.to_string())),
        );
    let limit = |limit: Option<u64>, unit: &str| {
        limit.map_or_else(|| "no limit".to_owned(), |n| format!("{n} {unit}"))
    };
    let mut agreed = vec![
        format!("Plans and works: {}", code(&terms.agent)),
        format!("Objects and reviews: {}", code(terms.reviewer())),
        format!("Goals at once: {}", terms.jobs.max(1)),
        format!(
            "For the whole workflow: {}, {}",
            limit(allowed.tokens, "tokens"),
            limit(allowed.usd_micros, "micro-dollars")
        ),
    ];
    let time_ms = spent::time_limit_ms(workflow);
    agreed.extend(time_ms.map(|ms| format!("Total working time: {} s", ms / 1_000)));
    let mut parts = vec![
        format!("# Context of {}", workflow.id),
        quote(&workflow.purpose),
        format!("Started by {}. {source}", one_line(&workflow.started_by)),
        format!("It starts from {}.", code(&ralph.base)),
        format!("## Terms\n\n{}", list(&agreed)),
    ];
    for (title, entries) in [
        ("Every task and the combined work must pass", &terms.verify),
        ("No task may change", &terms.protect),
    ] {
        if !entries.is_empty() {
            let entries: Vec<String> = entries.iter().map(|entry| code(entry)).collect();
            parts.push(format!("## {title}\n\n{}", list(&entries)));
        }
    }
    if let Some(spec) = &ralph.spec {
        parts.push(format!("## Spec\n\n{}", block(&spec_text(spec))));
    }
    if let Some(reason) = &ralph.reopened {
        parts.push(format!("## Why it is replanned\n\n{}", quote(reason)));
    }
    format!("{}\n", parts.join("\n\n"))
}
