//! `verify.md`: what Kapi ran, on which commit, and how each command ended.

use kapi_check::rules::proof::verify_report::{VerifyReport, run_end};
use kapi_core::id::GoalId;
use kapi_core::quote::tail;
use kapi_core::text::short_id;

use crate::rules::evidence::BASELINE;
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::modes::ralph::documents::markdown::{block, cell, code, list};
use crate::rules::report::one_line;
use crate::rules::state::Workflow;

/// The most bytes of one command's output that are repeated.
const OUTPUT_BYTES_MAX: usize = 4_000;

/// Returns the document.
pub(in crate::rules::modes::integrate) fn document(
    workflow: &Workflow,
    state: &Integrate,
) -> String {
    let mut rows = vec![
        "| evidence | on | commit | command | exit code |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (number, found) in (1_u32..).zip(&workflow.evidence) {
        let on = match found.kind.as_str() {
            BASELINE => "dev",
            "verify" => "the result",
            "bisect" => "a part",
            _ => continue,
        };
        let commit = found.reference.strip_prefix("git:").unwrap_or_default();
        let exit = found
            .exit_code
            .map_or_else(|| "none".to_owned(), |code| code.to_string());
        rows.push(format!(
            "| {number} | {on} | {} | {} | {exit} |",
            short_id(commit),
            cell(found.command.as_deref().unwrap_or_default())
        ));
    }
    let table = if rows.len() == 2 {
        "Nothing was verified yet.".to_owned()
    } else {
        rows.join("\n")
    };
    let all: Vec<GoalId> = state.there();
    let excused: Vec<String> = state
        .plan
        .iter()
        .flat_map(|plan| &plan.verify)
        .filter(|command| state.is_excused(command, &all))
        .map(|command| code(command))
        .collect();
    let mut parts = vec![
        format!("# Verification of {}", workflow.id),
        "Every command ran in a clean checkout of the commit it names.".to_owned(),
        table,
    ];
    if !excused.is_empty() {
        parts.push(format!(
            "## Fails on dev without any source, and was not run on the result\n\n{}",
            list(&excused)
        ));
    }
    parts.extend(state.verified.as_ref().map(last));
    format!("{}\n", parts.join("\n\n"))
}

/// Returns a verification in lines.
pub(in crate::rules::modes::integrate) fn lines(report: &VerifyReport) -> String {
    let runs = report.runs.iter();
    let mut lines: Vec<String> = runs
        .map(|run| format!("`{}` {}", one_line(&run.command), run_end(run)))
        .collect();
    lines.extend(report.inspection.lines());
    lines.join("\n")
}

fn last(report: &VerifyReport) -> String {
    let verdict = if report.passed() {
        "holds"
    } else {
        "does not hold"
    };
    let mut parts = vec![format!(
        "## The result {verdict}\n\nCommit {}, tree {}.",
        code(&report.commit),
        code(&report.tree)
    )];
    if !report.tampered.is_empty() {
        let paths: Vec<String> = report.tampered.iter().map(|path| code(path)).collect();
        parts.push(format!("Protected files were changed:\n\n{}", list(&paths)));
    }
    let seen = report.inspection.lines();
    if !seen.is_empty() {
        let seen = seen.iter().map(|it| one_line(it.trim_start_matches("- ")));
        let seen: Vec<String> = seen.collect();
        parts.push(format!("What it does to the checks:\n\n{}", list(&seen)));
    }
    parts.extend(report.runs.iter().map(|run| {
        format!(
            "### {}\n\nIt {} after {} ms.\n\n{}",
            code(&run.command),
            run_end(run),
            run.duration_ms,
            block(tail(&run.output_tail, OUTPUT_BYTES_MAX))
        )
    }));
    parts.join("\n\n")
}
