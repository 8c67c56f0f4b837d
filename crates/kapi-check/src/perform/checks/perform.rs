//! Running one planned check, and reading how its process ended.
//!
//! Exit codes alone decide; what a check prints is kept and never read.

use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::text::limit_text;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sys::process::{CapturedOutput, ProcessEnd};

use super::shell::{CheckLine, CheckRun};
use super::{CheckEvent, Discovery};
use crate::rules::checks::report::{CheckOutcome, CheckResult, capped};
use crate::rules::checks::{Check, CheckDisposition, PlannedCheck, ProjectRoot};

/// Runs a check, unless it is to be skipped or all were stopped.
pub(super) fn perform(
    work: &CheckRun<'_>,
    number: usize,
    planned: &PlannedCheck,
) -> Result<CheckResult, Failure> {
    let check = &planned.check;
    let unrun = |outcome| CheckResult {
        check: check.clone(),
        outcome,
        duration_ms: 0,
        output: String::new(),
    };
    let checked = match &planned.disposition {
        CheckDisposition::Skip { reason } => unrun(CheckOutcome::Skipped {
            reason: reason.clone(),
        }),
        CheckDisposition::Run if work.reported.cancel.is_raised() => unrun(CheckOutcome::Cancelled),
        CheckDisposition::Run => {
            (work.reported.notice)(CheckEvent::Began(check));
            run(work, number, check)?
        }
    };
    (work.reported.notice)(CheckEvent::Ended(&checked));
    Ok(checked)
}

fn run(work: &CheckRun<'_>, number: usize, check: &Check) -> Result<CheckResult, Failure> {
    let timeout_ms = check.timeout_ms.max(work.setting.timeout_ms_min);
    let root = root(work.discovery, check)?;
    let ran = work.run(&CheckLine {
        root,
        text: &check.command,
        name: &number.to_string(),
        deadline: Duration::from_millis(timeout_ms),
    })?;
    let (stdout, stderr) = (&ran.finished.stdout, &ran.finished.stderr);
    let total = stdout.bytes_total.saturating_add(stderr.bytes_total);
    Ok(CheckResult {
        check: check.clone(),
        outcome: outcome(check, &ran),
        duration_ms: millis(ran.finished.duration),
        output: capped(&text(stdout), &text(stderr), total),
    })
}

fn root<'a>(discovery: &'a Discovery, check: &Check) -> Result<&'a ProjectRoot, Failure> {
    let found = discovery.roots.iter().find(|root| root.path == check.root);
    found.ok_or_else(|| Failure {
        message: format!("find the project {:?} of a check", check.root),
        hint: None,
    })
}

fn outcome(check: &Check, ran: &SandboxRun) -> CheckOutcome {
    let code = match ran.finished.end {
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed => return CheckOutcome::TimedOut,
        ProcessEnd::Cancelled => return CheckOutcome::Cancelled,
        ProcessEnd::Exited(0) => return CheckOutcome::Passed,
        ProcessEnd::Exited(code) => code,
        ProcessEnd::Signaled(signal) => 128 + signal,
    };
    if let Some(exceeded) = &ran.exceeded {
        return CheckOutcome::OutOfResources {
            limit: limit_text(exceeded.resource, &exceeded.limit),
        };
    }
    match &check.nothing {
        Some(nothing) if nothing.code == code => CheckOutcome::Skipped {
            reason: nothing.means.clone(),
        },
        Some(_) | None => CheckOutcome::Failed { code },
    }
}

fn text(captured: &CapturedOutput) -> String {
    String::from_utf8_lossy(&captured.tail).into_owned()
}

/// Returns a duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
