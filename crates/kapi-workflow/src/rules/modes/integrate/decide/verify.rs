//! What the checks show, and who makes them fail.
//!
//! A source's own checks hold where it is; what fails without any of the sources blames none of them.

use kapi_check::rules::proof::verify_report::{VerifyReport, run_end};
use kapi_core::id::GoalId;
use kapi_core::quote::tail;
use kapi_core::text::short_id;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::combine::Coverage;
use crate::rules::evidence::{BASELINE, NAMED, Weight};
use crate::rules::modes::integrate::bisect;
use crate::rules::modes::integrate::bisect::{Suspicion, suspicion};
use crate::rules::modes::integrate::decide::evict;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::state::Integrate;

/// How often the conflict of one source is resolved again because the checks fail with it.
const REDONE_MAX: usize = 2;
/// The most bytes of the output of one failed command that its owner is told.
const OUTPUT_BYTES_MAX: usize = 2_000;

/// Takes what the checks show on the integration branch as it is.
pub(super) fn baseline(
    draft: &mut DecisionDraft<'_, Integrate>,
    report: &VerifyReport,
) -> Result<(), WorkflowRule> {
    let start = draft.now.start().to_owned();
    is_of(report, &start)?;
    record(draft, report, Weight::Narrative, BASELINE);
    draft.fact(IntegrateEvent::BaselineRecorded {
        report: Box::new(report.clone()),
    });
    if draft.now.has_baseline() {
        draft.ask_for_approval();
    } else {
        draft.stop(
            "every command already fails on dev, so nothing could show whether the result holds"
                .to_owned(),
        );
    }
    Ok(())
}

/// Takes what the checks show on the result.
pub(super) fn head(
    draft: &mut DecisionDraft<'_, Integrate>,
    report: &VerifyReport,
) -> Result<(), WorkflowRule> {
    let head = draft.now.head().to_owned();
    is_of(report, &head)?;
    record(draft, report, Weight::Validation, "verify");
    for line in report.inspection.lines() {
        let summary = line.trim_start_matches("- ").to_owned();
        let mut found = draft.seen(Weight::Validation, NAMED, summary, &head);
        found.artifacts = vec!["verify.md".to_owned()];
        draft.evidence(found);
    }
    draft.fact(IntegrateEvent::HeadVerified {
        report: Box::new(report.clone()),
        holds: report.passed(),
    });
    if !report.passed() {
        blame(draft);
    }
    Ok(())
}

/// Takes what the checks show on some of the sources.
pub(super) fn trial(
    draft: &mut DecisionDraft<'_, Integrate>,
    report: &VerifyReport,
    commit: &str,
    sources: Vec<GoalId>,
) -> Result<(), WorkflowRule> {
    is_of(report, commit)?;
    record(draft, report, Weight::Validation, "bisect");
    draft.fact(IntegrateEvent::TrialVerified {
        sources,
        report: Box::new(report.clone()),
    });
    blame(draft);
    Ok(())
}

/// Does something about whoever makes the result fail, once that is known.
pub(super) fn blame(draft: &mut DecisionDraft<'_, Integrate>) {
    let Suspicion::Culprits(culprits) = suspicion(&draft.now) else {
        return;
    };
    let report = bisect::evidence(&draft.now, &culprits);
    let evidence = report.as_ref().map_or_else(String::new, said_by);
    let Some(last) = culprits.last().cloned() else {
        draft.stop("the checks fail on the result, and on no part of it".to_owned());
        return;
    };
    draft.fact(IntegrateEvent::CulpritsFound {
        sources: culprits.clone(),
        evidence: evidence.clone(),
    });
    let redone = draft.now.redo.iter().filter(|redo| redo.source == last);
    if draft.now.resolution_of(&last).is_some() && redone.count() < REDONE_MAX {
        draft.fact(IntegrateEvent::ResolutionDiscarded {
            source: last,
            why: format!("the checks fail with it:\n\n{evidence}"),
        });
        return;
    }
    let others: Vec<String> = culprits
        .iter()
        .rev()
        .skip(1)
        .map(GoalId::to_string)
        .collect();
    let why = if others.is_empty() {
        "the checks fail with it alone on dev".to_owned()
    } else {
        format!(
            "the checks fail with it and {} together",
            others.join(" and ")
        )
    };
    evict::found(draft, &culprits, &why, &evidence);
}

/// Takes what the result was traced to.
pub(super) fn traced(
    draft: &mut DecisionDraft<'_, Integrate>,
    coverage: &Coverage,
) -> Result<(), WorkflowRule> {
    let head = draft.now.head().to_owned();
    if coverage.head != head {
        return Err(WorkflowRule::Malformed {
            rule: format!("take the coverage of {} for that of {head}", coverage.head),
        });
    }
    let summary = format!(
        "{} of {} hunks are traced to a source, {} findings",
        coverage.n_traced,
        coverage.n_hunks,
        coverage.findings.len()
    );
    let mut found = draft.seen(Weight::Validation, "coverage", summary, &head);
    found.artifacts = vec!["integration-report.md".to_owned()];
    draft.evidence(found);
    draft.fact(IntegrateEvent::CoverageCounted {
        coverage: Box::new(coverage.clone()),
    });
    if coverage.n_more > 0 {
        let n = u64::try_from(coverage.findings.len()).unwrap_or(u64::MAX);
        draft.stop(format!(
            "{} changes cannot be traced to any source: more than anybody reviews one by one",
            n.saturating_add(coverage.n_more)
        ));
    }
    Ok(())
}

fn is_of(report: &VerifyReport, commit: &str) -> Result<(), WorkflowRule> {
    if report.commit == commit {
        return Ok(());
    }
    Err(WorkflowRule::Malformed {
        rule: format!(
            "take a verification of {} for one of {commit}",
            report.commit
        ),
    })
}

/// Records a verification, with evidence for every command.
fn record(
    draft: &mut DecisionDraft<'_, Integrate>,
    report: &VerifyReport,
    weight: Weight,
    kind: &str,
) {
    for run in &report.runs {
        let summary = format!(
            "`{}` {} on {}",
            run.command,
            run_end(run),
            short_id(&report.commit)
        );
        let mut found = draft.seen(weight, kind, summary, &report.commit);
        found.command = Some(run.command.clone());
        found.exit_code = run.exit_code;
        found.verdict = Some(if run.passed() { "pass" } else { "fail" }.to_owned());
        found.artifacts = vec!["verify.md".to_owned()];
        draft.evidence(found);
    }
}

/// Returns what a failing verification said, for whoever mends it.
fn said_by(report: &VerifyReport) -> String {
    let mut parts = Vec::new();
    if !report.tampered.is_empty() {
        let names = report.tampered.join(", ");
        parts.push(format!("Protected files were changed: {names}."));
    }
    for run in report.runs.iter().filter(|run| !run.passed()) {
        let output = tail(&run.output_tail, OUTPUT_BYTES_MAX);
        parts.push(format!("`{}` {}:\n{output}", run.command, run_end(run)));
    }
    parts.join("\n\n")
}
