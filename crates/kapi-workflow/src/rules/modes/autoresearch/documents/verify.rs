//! `verify.md`: what Kapi ran, on which commit, and what it showed.

use kapi_check::rules::measure::{MeasurementReport, ScriptRun};
use kapi_core::quote::{fenced, tail, visible};
use kapi_core::text::short_id;

use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::ralph::documents::markdown::{cell, code};
use crate::rules::state::Workflow;

/// The most bytes of a script's output that are repeated.
const OUTPUT_BYTES_MAX: usize = 2_000;

/// Returns the document.
pub(super) fn text(workflow: &Workflow, search: &Autoresearch) -> String {
    let mut parts = vec![
        format!("# Verification of {}", workflow.id),
        "Every sample ran in a clean checkout and a sandbox of its own, with the scripts that were \
         approved."
            .to_owned(),
    ];
    let mut rows = vec![
        "| run | commit | status | metric | samples | reason |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for run in &search.runs {
        let metric = run
            .metric
            .map_or_else(|| "none".to_owned(), |it| it.to_string());
        rows.push(format!(
            "| {} | {} | {} | {metric} | {} | {} |",
            run.number,
            cell(short_id(&run.commit)),
            run.status.as_str(),
            run.samples.len(),
            cell(&run.reason)
        ));
    }
    parts.push(rows.join("\n"));
    if let Some(measured) = &search.verified {
        parts.push(head(measured));
    }
    format!("{}\n", parts.join("\n\n"))
}

fn head(measured: &MeasurementReport) -> String {
    let mut parts = vec![format!(
        "## What was kept, once more\n\nCommit {}, tree {}.",
        code(&measured.commit),
        code(&measured.tree)
    )];
    let samples = measured.samples.iter().map(|sample| &sample.run);
    parts.extend(samples.map(|run| shown("benchmark.sh", run)));
    parts.extend(measured.checks.iter().map(|run| shown("checks.sh", run)));
    parts.join("\n\n")
}

fn shown(script: &str, run: &ScriptRun) -> String {
    let output = visible(tail(&run.output_tail, OUTPUT_BYTES_MAX));
    format!("`sh {script}` {}.\n\n{}", run.words(), fenced(&output, ""))
}
