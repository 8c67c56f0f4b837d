//! `verify.md`: what Kapi ran on the branch, with exit codes, and what the last run printed.

use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::quote::tail;
use kapi_core::text::short_id;

use crate::rules::evidence::{BASELINE, STRAYED, WorkflowEvidence};
use crate::rules::modes::ralph::documents::markdown::{block, cell, code, list};
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// The most bytes of one command's output that are repeated.
const OUTPUT_BYTES_MAX: usize = 4_000;

/// Tells whether there is something to say.
pub(in crate::rules::modes::ralph) fn has_something(workflow: &Workflow) -> bool {
    let mut found = workflow.evidence.iter();
    found.any(|found| is_run(found) || found.kind == STRAYED)
}

/// Tells whether it is of a command that was run.
fn is_run(found: &WorkflowEvidence) -> bool {
    found.kind == "verify" || found.kind == BASELINE
}

/// Returns what tasks changed beside what the plan names, one entry each.
pub(in crate::rules::modes::ralph) fn strayed(workflow: &Workflow) -> Vec<String> {
    let found = workflow.evidence.iter();
    let found = found.filter(|found| found.kind == STRAYED);
    found.map(|found| one_line(&found.summary)).collect()
}

/// Returns the document.
pub(in crate::rules::modes::ralph) fn text(workflow: &Workflow, ralph: &Ralph) -> String {
    let mut parts = vec![
        format!("# Verification of {}", workflow.id),
        "Every command ran in a clean checkout of the commit it names.".to_owned(),
    ];
    let mut rows = vec![
        "| evidence | phase | commit | command | exit code |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    let numbered = (1_u32..).zip(&workflow.evidence);
    for (number, found) in numbered.filter(|(_, found)| is_run(found)) {
        let commit = found.reference.strip_prefix("git:").unwrap_or_default();
        let command = found.command.as_deref().unwrap_or_default();
        let code = found
            .exit_code
            .map_or_else(|| "none".to_owned(), |code| code.to_string());
        let phase = match found.kind.as_str() {
            BASELINE => "base",
            _ => found.phase.as_deref().unwrap_or_default(),
        };
        rows.push(format!(
            "| {number} | {} | {} | {} | {code} |",
            cell(phase),
            cell(short_id(commit)),
            cell(command)
        ));
    }
    if rows.len() == 2 {
        parts.push("The combined work has not been verified yet.".to_owned());
    } else {
        parts.push(rows.join("\n"));
    }
    let strayed = strayed(workflow);
    if !strayed.is_empty() {
        parts.push(format!("## Outside the plan's paths\n\n{}", list(&strayed)));
    }
    parts.extend(last(ralph));
    format!("{}\n", parts.join("\n\n"))
}

fn last(ralph: &Ralph) -> Option<String> {
    let (commit, report) = ralph.verified.as_ref()?;
    let verdict = if report.passed() { "passed" } else { "failed" };
    let tree = code(&report.tree);
    let mut parts = vec![format!(
        "## The last one {verdict}\n\nCommit {}, tree {tree}.",
        code(commit)
    )];
    if !report.tampered.is_empty() {
        let paths: Vec<String> = report.tampered.iter().map(|path| code(path)).collect();
        parts.push(format!("Protected files were changed:\n\n{}", list(&paths)));
    }
    let seen = report.inspection.lines();
    if !seen.is_empty() {
        let seen: Vec<String> = seen
            .iter()
            .map(|seen| one_line(seen.trim_start_matches("- ")))
            .collect();
        parts.push(format!("What it does to the checks:\n\n{}", list(&seen)));
    }
    parts.extend(report.runs.iter().map(run));
    Some(parts.join("\n\n"))
}

fn run(run: &VerifyRun) -> String {
    let ended = crate::rules::modes::ralph::decide::ended(run);
    let output = tail(&run.output_tail, OUTPUT_BYTES_MAX);
    format!(
        "### {}\n\nIt {ended} after {} ms.\n\n{}",
        code(&run.command),
        run.duration_ms,
        block(output)
    )
}
