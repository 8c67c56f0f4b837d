//! What `kapi check` prints: the words of core for people, and the same facts as JSON.
//!
//! The fields are documented in `docs/json.md`.

use kapi_check::perform::checks::Discovery;
use kapi_check::rules::checks::report::{CheckCounts, CheckOutcome, CheckResult, ChecksReport};
use kapi_check::rules::checks::{Check, CheckDisposition, PlannedCheck, ProjectRoot, words};
use serde::Serialize;

use crate::ui::{Format, Ui};

#[derive(Debug, Serialize)]
struct ChecksView<'a> {
    /// Whether nothing failed; `null` when nothing was run.
    ok: Option<bool>,
    top: String,
    roots: Vec<RootView<'a>>,
    checks: Vec<CheckView<'a>>,
    passed: usize,
    failed: usize,
    skipped: usize,
    cancelled: usize,
    duration_ms: u64,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct RootView<'a> {
    path: &'a str,
    profiles: &'a [String],
}

#[derive(Debug, Serialize)]
struct CheckView<'a> {
    root: &'a str,
    verb: &'a str,
    /// A profile's id, or `mise`.
    provider: &'a str,
    /// Empty where the project asks for none.
    command: &'a str,
    status: &'a str,
    reason: Option<String>,
    exit_code: Option<i32>,
    duration_ms: u64,
    output: &'a str,
    /// What it lacked that could not do its work.
    hint: Option<String>,
}

/// Tells what would be run.
pub(super) fn list(ui: Ui, discovery: &Discovery, planned: &[PlannedCheck]) {
    match ui.format {
        Format::Json => {
            let checks = planned.iter().map(planned_view).collect();
            let skipped = planned
                .iter()
                .filter(|one| one.disposition != CheckDisposition::Run)
                .count();
            let counts = CheckCounts {
                skipped,
                ..CheckCounts::default()
            };
            ui.json(&document(discovery, None, checks, counts, 0));
        }
        Format::Human => {
            for one in planned {
                let (word, text) = match &one.disposition {
                    CheckDisposition::Run => ("run", one.check.command.as_str()),
                    CheckDisposition::Skip { reason } => ("skip", reason.as_str()),
                };
                ui.line(&words::line(word, &one.check, text));
            }
        }
    }
}

/// Tells how everything came out.
pub(super) fn report(ui: Ui, discovery: &Discovery, report: &ChecksReport) {
    match ui.format {
        Format::Json => {
            let counts = report.counts();
            let checks = report.checks.iter().map(checked_view).collect();
            let n_run = counts.passed + counts.failed;
            let ok = (n_run > 0).then_some(counts.failed == 0);
            ui.json(&document(discovery, ok, checks, counts, report.duration_ms));
        }
        Format::Human => ui.page(&words::scenario(report)),
    }
}

fn document<'a>(
    discovery: &'a Discovery,
    ok: Option<bool>,
    checks: Vec<CheckView<'a>>,
    counts: CheckCounts,
    duration_ms: u64,
) -> ChecksView<'a> {
    let view = |root: &'a ProjectRoot| RootView {
        path: words::named(&root.path),
        profiles: &root.profiles,
    };
    ChecksView {
        ok,
        top: discovery.top.display().to_string(),
        roots: discovery.roots.iter().map(view).collect(),
        checks,
        passed: counts.passed,
        failed: counts.failed,
        skipped: counts.skipped,
        cancelled: counts.cancelled,
        duration_ms,
        notes: &discovery.notes,
    }
}

fn check_view(check: &Check) -> CheckView<'_> {
    CheckView {
        root: words::named(&check.root),
        verb: check.verb.name(),
        provider: &check.provider,
        command: &check.command,
        status: "ready",
        reason: None,
        exit_code: None,
        duration_ms: 0,
        output: "",
        hint: None,
    }
}

fn planned_view(planned: &PlannedCheck) -> CheckView<'_> {
    let view = check_view(&planned.check);
    match &planned.disposition {
        CheckDisposition::Run => view,
        CheckDisposition::Skip { reason } => CheckView {
            status: "skipped",
            reason: Some(reason.clone()),
            ..view
        },
    }
}

fn checked_view(checked: &CheckResult) -> CheckView<'_> {
    CheckView {
        status: checked.outcome.word(),
        reason: words::why(checked),
        exit_code: match checked.outcome {
            CheckOutcome::Passed => Some(0),
            CheckOutcome::Failed { code } => Some(code),
            CheckOutcome::TimedOut
            | CheckOutcome::OutOfResources { .. }
            | CheckOutcome::Skipped { .. }
            | CheckOutcome::Cancelled => None,
        },
        duration_ms: checked.duration_ms,
        output: &checked.output,
        hint: words::hint(checked),
        ..check_view(&checked.check)
    }
}
