//! A search in words: a line for each of its facts, how far it has come, and what one would trust by
//! taking it over.
//!
//! Everything here stands in the workflow's own documents. Text from agents is shortened to its first
//! line.

use kapi_check::rules::measure::MeasurementReport;
use kapi_core::text::{agent_name, counted, short_id};
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::autoresearch::event::{AutoresearchEvent, Candidate, TryAnswer};
use kapi_workflow::rules::modes::autoresearch::run::Run;
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::{
    RUNS_SHOWN_MAX, shown, sparkline_of, summary_of,
};
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;
use crate::modes::Front;
use crate::modes::autoresearch::page;
use crate::modes::autoresearch::phrases::{gain, of, verdict};
use crate::ui::Ui;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next: |_| false,
    summary,
    details,
    live,
    page: page::of,
    next,
    trusted,
    waits_for: |_| None,
};

/// The most columns of one in the line that is shown while a search goes on.
const LIVE_COLUMNS_MAX: usize = 16;
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

/// Prints how far it has come: best, gain, the runs as a line of columns, segment by segment.
fn summary(ui: Ui, workflow: &Workflow) {
    let Some(search) = of(workflow) else {
        return;
    };
    if let Some(branch) = &search.branch {
        let head = short_id(&branch.head);
        ui.field("branch", &format!("{} at {head}", branch.name));
        ui.field("worktree", &branch.worktree);
    }
    let segments = search.segments();
    for segment in &segments {
        if segments.len() > 1 {
            let is_latest = *segment == search.segment;
            let when = if is_latest { "latest" } else { "earlier" };
            ui.field("segment", &format!("{segment} ({when})"));
        }
        numbers(ui, search, *segment);
    }
    if let Some(ending) = search.ended {
        ui.field("ended", ending.words());
    }
    for made in &search.branches {
        let commit = short_id(&made.commit);
        ui.field("part", &format!("{} at {commit}", made.branch));
    }
}

/// Prints a segment in numbers.
fn numbers(ui: Ui, search: &Autoresearch, segment: u32) {
    let (Some(found), Some(metric)) = (summary_of(search, segment), search.metric_of(segment))
    else {
        return;
    };
    let runs = sparkline_of(search, segment, ui.field_columns(RUNS_SHOWN_MAX));
    ui.field("runs", &runs);
    let n_runs = search.of_segment(segment).filter(|run| !run.is_baseline);
    let of = search.contract.as_ref();
    let of = of.filter(|_| segment == search.segment);
    let of = of.map_or_else(String::new, |contract| format!(" of {}", contract.runs));
    let way = metric.direction.as_str();
    ui.field("", &format!("{}{of}, {way} is better", n_runs.count()));
    let (unit, best) = (&metric.unit, shown(found.best));
    let run = found.best_run;
    ui.field("best", &format!("{} {best}{unit}, run {run}", metric.name));
    ui.field("gain", &gain(&found, unit));
    if let Some(noise) = found.noise {
        let noise = shown(noise);
        ui.field(
            "noise",
            &format!("samples of the baseline scatter by {noise}{unit}"),
        );
    }
    if let Some(confidence) = found.confidence {
        let confidence = shown(confidence);
        ui.field(
            "",
            &format!("the gain is {confidence} times what all results scatter (advice only)"),
        );
    }
}

/// Returns the same in a few columns, for whoever watches.
fn live(workflow: &Workflow) -> Option<String> {
    let search = of(workflow)?;
    let found = summary_of(search, search.segment)?;
    let unit = &search.metric_of(search.segment)?.unit;
    let runs = sparkline_of(search, search.segment, LIVE_COLUMNS_MAX);
    let gain = found.gain_percent.filter(|gain| gain.get() > 0.0);
    let gain = gain.map_or_else(String::new, |gain| format!(", {} % better", shown(gain)));
    Some(format!("{runs} best {}{unit}{gain}", shown(found.best)))
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
        format!("git diff {}...{}", short_id(&search.base), branch.name),
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
                .map_or_else(|| "you".to_owned(), |by| agent_name(&by.agent));
            let way = contract.metric.direction.as_str();
            let verb = if by.is_some() { "proposes" } else { "propose" };
            format!(
                "{who} {verb} a contract: {}, {way} is better",
                contract.metric.name
            )
        }
        AutoresearchEvent::HistoryImported { history } => format!(
            "{} and {} of another tool are taken over",
            counted(history.runs.len(), "run"),
            counted(history.ideas.len(), "idea")
        ),
        AutoresearchEvent::BranchPrepared {
            branch, worktree, ..
        } => format!("branch {branch}, worktree {worktree}"),
        AutoresearchEvent::BaselineFailed { reason, .. } => {
            format!("it does not hold as it is: {}", first_line(reason))
        }
        AutoresearchEvent::CandidateProposed { candidate, .. } => proposed(candidate),
        AutoresearchEvent::TryAnswered { found, .. } => tried(found),
        AutoresearchEvent::GainHeld {} => {
            "it is better than its parent; the others of its round are measured first".to_owned()
        }
        AutoresearchEvent::GainChosen { .. } => "it is the best of its round".to_owned(),
        AutoresearchEvent::GainReapplied { candidate, .. } => format!(
            "applied to what was kept: {}",
            first_line(&candidate.description)
        ),
        AutoresearchEvent::Measured { measured } => measured_words(measured)?,
        AutoresearchEvent::RunDecided { run } => decided(run),
        AutoresearchEvent::Settled { n_removed: 0, .. } => return None,
        AutoresearchEvent::Settled { n_removed, .. } => {
            let files = counted(n_removed, "file");
            format!("the worktree is put back, without {files} of no commit")
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
            "what was kept holds at {}, in {}",
            short_id(&measured.commit),
            counted(groups.len(), "independent part")
        ),
        AutoresearchEvent::BranchesMade { branches } => {
            let names: Vec<&str> = branches.iter().map(|made| made.branch.as_str()).collect();
            format!("branches: {}", names.join(", "))
        }
    })
}

fn tried(found: &TryAnswer) -> String {
    match found {
        TryAnswer::Candidate(candidate) => proposed(candidate),
        TryAnswer::Refused { why } => format!("an answer is refused: {}", first_line(why)),
        TryAnswer::Exhausted {} => "an agent has no idea left".to_owned(),
    }
}

fn proposed(candidate: &Candidate) -> String {
    format!(
        "{} tries: {} ({})",
        agent_name(&candidate.by.agent),
        first_line(&candidate.description),
        first_line(&candidate.hypothesis)
    )
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
    match (run.is_baseline, run.metric) {
        (true, Some(metric)) => format!("run {}: baseline {}", run.number, shown(metric)),
        _ => {
            let reason = first_line(&run.reason);
            format!("run {}: {}: {reason}", run.number, verdict(run))
        }
    }
}
