//! A search in words: a line for each of its facts, how far it has come, and what one would trust by
//! taking it over.
//!
//! Everything here stands in the workflow's own documents. Text from agents is shortened to its first
//! line.

use kapi_check::rules::measure::MeasurementReport;
use kapi_core::text::agent_name;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::modes::autoresearch::event::AutoresearchEvent;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::{shown, sparkline, summary as numbers};
use kapi_workflow::rules::modes::{Body, ModeEvent};
use kapi_workflow::rules::state::Workflow;

use crate::contract::short;
use crate::event_words::first_line;
use crate::modes::Front;
use crate::ui::Ui;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next: |_| false,
    summary,
    details,
    next,
    trusted,
    waits_for: |_| None,
};

/// The most runs that are listed.
const RUNS_LISTED_MAX: usize = 40;

/// Returns a fact in words; `None` for what is only bookkeeping.
fn describe(event: &ModeEvent) -> Option<String> {
    if let ModeEvent::Autoresearch(event) = event {
        fact(event)
    } else {
        None
    }
}

/// Returns the search of a workflow.
pub(super) const fn of(workflow: &Workflow) -> Option<&Autoresearch> {
    if let Body::Autoresearch(search) = &workflow.body {
        Some(search)
    } else {
        None
    }
}

/// Prints how far it has come: best, gain, the runs as a line of columns.
fn summary(ui: Ui, workflow: &Workflow) {
    let Some(search) = of(workflow) else {
        return;
    };
    if let Some(branch) = &search.branch {
        ui.line(&format!(
            "  branch   {} at {}",
            branch.name,
            short(&branch.head)
        ));
        ui.line(&format!("  worktree {}", branch.worktree));
    }
    let (Some(found), Some(contract)) = (numbers(search), &search.contract) else {
        return;
    };
    let metric = &contract.metric;
    let unit = &metric.unit;
    let gain = found.gain_percent.map_or_else(String::new, |gain| {
        format!(
            ", {} % better than the baseline of {}{unit}",
            shown(gain),
            shown(found.baseline)
        )
    });
    let (best, run) = (shown(found.best), found.best_run);
    ui.line(&format!(
        "  best     {} {best}{unit}, run {run}{gain}",
        metric.name
    ));
    let noise = found
        .noise
        .map(|it| format!("samples of the baseline scatter by {}{unit}", shown(it)));
    let confidence = found.confidence.map(|it| {
        format!(
            "the gain is {} times what all results scatter (advice only)",
            shown(it)
        )
    });
    let sure: Vec<String> = noise.into_iter().chain(confidence).collect();
    if !sure.is_empty() {
        ui.line(&format!("  noise    {}", sure.join("; ")));
    }
    ui.line(&format!(
        "  runs     {}  {} of {}, {} is better",
        sparkline(search),
        search.experiments(),
        contract.runs,
        metric.direction.as_str()
    ));
    if let Some(ending) = search.ended {
        ui.line(&format!("  ended    {}", ending.words()));
    }
    for made in &search.branches {
        ui.line(&format!(
            "  part     {} at {}",
            made.branch,
            short(&made.commit)
        ));
    }
}

/// Prints the runs, each with why it was decided so.
fn details(ui: Ui, workflow: &Workflow) {
    let Some(search) = of(workflow) else {
        return;
    };
    let surplus = search.runs.len().saturating_sub(RUNS_LISTED_MAX);
    if surplus > 0 {
        ui.line(&format!("  {surplus} earlier runs stand in ledger.jsonl"));
    }
    for run in search.runs.get(surplus..).unwrap_or_default() {
        ui.line(&format!("  {}", run_line(run)));
    }
}

fn run_line(run: &Run) -> String {
    let metric = run.metric.map_or_else(|| "-".to_owned(), shown);
    format!(
        "{:>4}  {:<13} {metric:>12}  {}: {}",
        run.number,
        run.status.as_str(),
        first_line(&run.description),
        first_line(&run.reason)
    )
}

/// Returns how what was kept is looked at and taken over.
fn next(workflow: &Workflow) -> Vec<String> {
    let found = of(workflow).and_then(|search| Some((search, search.branch.as_ref()?)));
    let (WorkflowStatus::Completed, Some((search, branch))) = (workflow.status, found) else {
        return Vec::new();
    };
    if search.gains().next().is_none() {
        return Vec::new();
    }
    vec![
        format!("git diff {}...{}", short(&search.base), branch.name),
        format!("git merge {}", branch.name),
    ]
}

/// Returns what going on with it would carry out or rest on.
fn trusted(workflow: &Workflow) -> Vec<(&'static str, String)> {
    let Some(search) = of(workflow) else {
        return Vec::new();
    };
    let mut lines = vec![("base", search.base.clone())];
    if let Some(branch) = &search.branch {
        lines.push(("branch", format!("{} at {}", branch.name, branch.head)));
    }
    if let Some(contract) = &search.contract {
        lines.push(("contract", contract.objective.clone()));
        lines.push(("runs", contract.benchmark.clone()));
        lines.extend(
            contract
                .checks
                .iter()
                .map(|checks| ("runs", checks.clone())),
        );
    }
    lines
}

fn fact(event: &AutoresearchEvent) -> Option<String> {
    Some(match event {
        AutoresearchEvent::ContractDrafted { by, contract } => {
            let who = by
                .as_ref()
                .map_or_else(|| "its person".to_owned(), |by| agent_name(&by.agent));
            let way = contract.metric.direction.as_str();
            format!(
                "{who} proposes a contract: {}, {way} is better",
                contract.metric.name
            )
        }
        AutoresearchEvent::HistoryImported { history } => format!(
            "{} runs and {} ideas of another tool are taken over",
            history.runs.len(),
            history.ideas.len()
        ),
        AutoresearchEvent::BranchPrepared {
            branch, worktree, ..
        } => format!("branch {branch}, worktree {worktree}"),
        AutoresearchEvent::BaselineFailed { reason, .. } => {
            format!("it does not hold as it is: {}", first_line(reason))
        }
        AutoresearchEvent::CandidateProposed { candidate, .. } => format!(
            "{} tries: {} ({})",
            agent_name(&candidate.by.agent),
            first_line(&candidate.description),
            first_line(&candidate.hypothesis)
        ),
        AutoresearchEvent::Measured { measured } => measured_words(measured)?,
        AutoresearchEvent::RunDecided { run } => decided(run),
        AutoresearchEvent::Settled { n_removed: 0, .. } => return None,
        AutoresearchEvent::Settled { n_removed, .. } => {
            format!("the worktree is put back; {n_removed} files that are in no commit are gone")
        }
        AutoresearchEvent::AnswerRefused { role, why } => {
            format!("the {role} is asked again: {}", first_line(why))
        }
        AutoresearchEvent::IdeaNoted { text } => format!("idea: {}", first_line(text)),
        AutoresearchEvent::SegmentOpened { reason } => {
            format!("another contract is wanted: {}", first_line(reason))
        }
        AutoresearchEvent::SearchEnded { ending } => format!("the search ends: {}", ending.words()),
        AutoresearchEvent::HeadVerified { measured, groups } => format!(
            "what was kept holds at {}, in {} independent parts",
            short(&measured.commit),
            groups.len()
        ),
        AutoresearchEvent::BranchesMade { branches } => {
            let names: Vec<&str> = branches.iter().map(|made| made.branch.as_str()).collect();
            format!("branches: {}", names.join(", "))
        }
    })
}

/// Says a measurement that is not the last word; what decides is said with the decision.
fn measured_words(measured: &MeasurementReport) -> Option<String> {
    let failed = measured
        .samples
        .iter()
        .find(|sample| !sample.run.passed())?;
    Some(format!("benchmark.sh {}", failed.run.words()))
}

fn decided(run: &Run) -> String {
    let mark = match run.status {
        RunStatus::Keep if run.is_baseline => "baseline",
        RunStatus::Keep => "kept",
        RunStatus::Discard => "discarded",
        RunStatus::Crash => "crashed",
        RunStatus::ChecksFailed => "checks failed",
    };
    match (run.is_baseline, run.metric) {
        (true, Some(metric)) => format!("run {}: baseline {}", run.number, shown(metric)),
        _ => format!("run {}: {mark}: {}", run.number, first_line(&run.reason)),
    }
}
