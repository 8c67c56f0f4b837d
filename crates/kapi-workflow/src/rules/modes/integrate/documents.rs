//! The artifacts of an integration for people: plan, conflict matrix, verification, the integration report
//! and the report of what was decided.
//!
//! Projections of the state, made anew at will. The plan's bytes are what an approval is bound to: they
//! come of the plan alone.

use kapi_core::text::one_line;

use crate::rules::documents::WorkflowDocument;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::state::Workflow;

pub(in crate::rules::modes::integrate) mod decision;
pub(in crate::rules::modes::integrate) mod matrix;
pub(in crate::rules::modes::integrate) mod plan;
pub(in crate::rules::modes::integrate) mod report;
pub(in crate::rules::modes::integrate) mod verify;

/// Returns every artifact of an integration as it stands.
pub(crate) fn documents(workflow: &Workflow, state: &Integrate) -> Vec<WorkflowDocument> {
    let mut documents = Vec::new();
    let mut add = |name: &str, text: String| {
        documents.push(WorkflowDocument {
            name: name.to_owned(),
            text,
        });
    };
    if let Some(made) = &state.plan {
        add("merge-plan.md", plan::text(workflow, state, made));
    }
    add("conflict-matrix.md", matrix::document(workflow, state));
    add("verify.md", verify::document(workflow, state));
    add("integration-report.md", report::text(workflow, state));
    add("decision-report.md", decision::text(workflow, state));
    documents
}

/// Returns what of the sources is in the result, a line each, findings by their numbers.
pub(in crate::rules::modes::integrate) fn coverage_lines(state: &Integrate) -> Vec<String> {
    let Some(coverage) = &state.coverage else {
        return vec!["It was not traced yet.".to_owned()];
    };
    let mut lines = vec![format!(
        "{} of {} hunks of the result are a source's, line by line.",
        coverage.n_traced, coverage.n_hunks
    )];
    lines.extend(coverage.sources.iter().map(|it| {
        format!(
            "{}: {} of {} hunks are in the result.",
            it.source, it.n_there, it.n_hunks
        )
    }));
    lines.extend(state.findings().map(|(number, found)| {
        let whose = found
            .source
            .as_ref()
            .map_or_else(String::new, |id| format!(" of {id}"));
        format!(
            "Finding {number}: {}{whose}, {} line {}: {}",
            found.kind.as_str(),
            one_line(&found.path),
            found.line,
            one_line(&found.what)
        )
    }));
    lines
}
