//! The artifacts of a search for people and for the tools that read pi-autoresearch's files.
//!
//! Projections of the state, made anew at will. An approval is bound to the bytes of the contract and
//! both scripts: nothing that changes after the proposal stands in them.

use crate::rules::documents::WorkflowDocument;
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::state::Workflow;

mod contract;
pub mod ledger;
mod report;
mod verify;

/// Returns every artifact of a search as it stands.
pub(crate) fn documents(workflow: &Workflow, search: &Autoresearch) -> Vec<WorkflowDocument> {
    let mut documents = Vec::new();
    let mut add = |name: &str, text: String| {
        documents.push(WorkflowDocument {
            name: name.to_owned(),
            text,
        });
    };
    if let Some(contract) = search.contract.as_deref() {
        add("contract.md", contract::text(workflow, contract));
        add("benchmark.sh", script(&contract.benchmark));
        add("checks.sh", checks(contract));
    }
    // A reader of the directory finds the backlog, whether there is anything in it or not.
    if search.contract.is_some() || !search.ideas.is_empty() {
        add("ideas.md", ideas(search));
    }
    if !search.runs.is_empty() {
        add("ledger.jsonl", ledger::text(workflow, search));
        add("verify.md", verify::text(workflow, search));
    }
    add("decision-report.md", report::text(workflow, search));
    documents
}

/// Returns a script with the end of line that its last line needs.
fn script(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// The file is there in any case, so that one of an earlier contract is never taken for this one's.
fn checks(contract: &crate::rules::modes::autoresearch::contract::Contract) -> String {
    let why = || contract.no_checks.as_deref().unwrap_or("none were given");
    contract.checks.as_deref().map_or_else(
        || {
            format!(
                "# There are no checks: {}\n",
                kapi_core::text::one_line(why())
            )
        },
        script,
    )
}

/// `ideas.md`: what may be tried, and what was.
fn ideas(search: &Autoresearch) -> String {
    let lines = (1_u32..).zip(&search.ideas).map(|(number, idea)| {
        let text = crate::rules::report::one_line(&idea.text);
        match idea.tried {
            None => format!("- [ ] {number}. {text}\n"),
            Some(run) => format!("- [x] {number}. {text} (run {run})\n"),
        }
    });
    let mut lines: String = lines.collect();
    if lines.is_empty() {
        lines.push_str("There are none.\n");
    }
    format!("# Ideas\n\n{lines}")
}

#[cfg(test)]
mod tests;
