//! Every experiment in a table: what was tried and why, what it measured, what was decided by which
//! rule, what it cost and what it changed.

use std::collections::BTreeMap;

use kapi_check::rules::measure::number::Number;
use kapi_core::text::counted;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::shown;
use maud::{Markup, html};

use crate::amount;
use crate::modes::autoresearch::page::account::RunAccounts;
use crate::modes::autoresearch::page::chart::mark;
use crate::modes::autoresearch::phrases::verdict;
use crate::workflow::page::PageSource;
use crate::workflow::page::text::{FACT_BYTES_MAX, LINE_BYTES_MAX, cut};

/// The most runs in the table, the latest.
const RUNS_MAX: usize = 2_000;
/// The most runs whose changes are shown: those that were kept, then the latest.
const PATCHES_MAX: usize = 200;
/// The most metrics of one run.
const METRICS_MAX: usize = 20;

/// Returns the table.
pub(super) fn table(
    source: &PageSource<'_>,
    search: &Autoresearch,
    accounts: &RunAccounts,
) -> Markup {
    let surplus = search.runs.len().saturating_sub(RUNS_MAX);
    let runs = search.runs.get(surplus..).unwrap_or_default();
    let changes = changes(source, accounts, runs);
    let baselines = search.runs.iter().filter(|run| run.is_baseline);
    let baselines = baselines.filter_map(|run| Some((run.segment, run.metric?)));
    let baselines: BTreeMap<u32, Number> = baselines.collect();
    let has_segments = baselines.len() > 1;
    html! {
        @if surplus > 0 {
            p.note { (counted(surplus, "earlier run")) " is left out here; ledger.jsonl has all." }
        }
        table.cards role="table" aria-labelledby="experiments" {
            thead role="rowgroup" {
                tr role="row" {
                    th.number.run role="columnheader" scope="col" { "Run" }
                    th.verdict-column role="columnheader" scope="col" { "Verdict" }
                    th.number.side role="columnheader" scope="col" { "Result" }
                    th role="columnheader" scope="col" { "What was tried, and why it was decided so" }
                    th.number.side role="columnheader" scope="col" { "Cost" }
                }
            }
            tbody role="rowgroup" {
                @for run in runs.iter().rev() {
                    tr role="row" id={ "run-" (run.number) } {
                        th.number role="rowheader" scope="row" data-name="Run" {
                            (run.number)
                            @if has_segments { br; span.note { "segment " (run.segment) } }
                        }
                        td role="cell" { (verdict_cell(run)) }
                        td.number role="cell" data-name="Result" { (result(search, run, baselines.get(&run.segment))) }
                        td role="cell" { (tried(run, changes.get(&run.number))) }
                        td.number role="cell" data-name="Cost" { (cost(run, accounts)) }
                    }
                }
            }
        }
    }
}

fn verdict_cell(run: &Run) -> Markup {
    let class = format!("verdict {}", verdict(run).replace(' ', "-"));
    html! {
        span class=(class) {
            svg viewBox="0 0 16 16" aria-hidden="true" { (mark(run, [8.0, 8.0], 6.0)) }
            (verdict(run))
        }
        @if let Some(rule) = run.rule { br; span.note { "by the rule " (rule.as_str()) } }
    }
}

fn result(search: &Autoresearch, run: &Run, baseline: Option<&Number>) -> Markup {
    let Some(value) = run.metric else {
        return html! { "no number" };
    };
    let metric = search.metric_of(run.segment);
    let unit = metric.map_or("", |metric| metric.unit.as_str());
    let against = baseline.map(|it| it.get()).filter(|_| !run.is_baseline);
    let change = against.filter(|it| *it != 0.0).map(|baseline| {
        let change = (value.get() - baseline) / baseline.abs() * 100.0;
        format!("{change:+.1} %").replace('-', "\u{2212}")
    });
    html! {
        (shown(value)) (unit)
        @if let Some(change) = change { br; span.note { (change) } }
        @if let Some(parent) = run.parent { br; span.note { "parent " (shown(parent)) (unit) } }
        @if run.samples.len() > 1 { br; span.note { (counted(run.samples.len(), "sample")) } }
    }
}

fn tried(run: &Run, change: Option<&Markup>) -> Markup {
    html! {
        strong { (cut(&run.description, LINE_BYTES_MAX)) }
        @if !run.hypothesis.is_empty() {
            p.said { "Hypothesis: " q { (cut(&run.hypothesis, FACT_BYTES_MAX)) } }
        }
        @if !run.reason.is_empty() { p { (cut(&run.reason, FACT_BYTES_MAX)) } }
        @if !run.metrics.is_empty() {
            p.note {
                @for (place, reading) in run.metrics.iter().take(METRICS_MAX).enumerate() {
                    @if place > 0 { ", " }
                    (reading.name) " " (shown(reading.value))
                }
            }
        }
        @if let Some(change) = change { (change) }
    }
}

fn cost(run: &Run, accounts: &RunAccounts) -> Markup {
    let used = accounts.used(run.number);
    html! {
        @if let Some(used) = used {
            @if let Some(usd) = used.usd_micros { (amount::usd(usd)) br; }
            (amount::tokens(used.tokens())) " tokens"
            br;
        }
        @if run.benchmark_ms > 0 { span.note { "measured " (amount::duration(run.benchmark_ms)) } }
    }
}

/// Returns what runs changed, where that is shown.
fn changes(source: &PageSource<'_>, accounts: &RunAccounts, runs: &[Run]) -> BTreeMap<u32, Markup> {
    let mut wanted: Vec<&Run> = runs.iter().collect();
    wanted.retain(|run| !run.is_baseline && !run.tree.is_empty());
    wanted.sort_by_key(|run| (run.status != RunStatus::Keep, u32::MAX - run.number));
    let wanted = wanted.into_iter().take(PATCHES_MAX);
    let changes = wanted.filter_map(|run| {
        let files = counted(run.changed.paths.len(), "file");
        let summary = format!("Changes of run {} in {files}", run.number);
        let parent = accounts.parent(run.number)?;
        Some((run.number, source.changes(parent, &run.commit, &summary)))
    });
    changes.collect()
}
