//! Tasks on their way to the branch: proved, landed, sent back, given up.
//!
//! A proof is Kapi's own verdict on a commit; whatever an agent says of its work is not asked here.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::VerifyRun;
use kapi_core::quote::tail;
use kapi_core::text::short_id;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::changed::LandedPaths;
use crate::rules::conflict::Settlement;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::evidence::{BASELINE, NAMED, STRAYED, Weight, WorkflowEvidence};
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use crate::rules::modes::ralph::touch;
use crate::rules::outcome::WorkflowOutcome;

/// How often in a row a task is sent back before a person is asked.
pub(super) const SENT_BACK_MAX: u32 = 4;
/// The most bytes of the output of one failed command that its owner is told.
const OUTPUT_BYTES_MAX: usize = 2_000;
/// The most characters of a reason.
const REASON_BYTES_MAX: usize = 4_000;
/// The most paths that are named of those that a task changed beside its own.
const PATHS_REPORTED_MAX: usize = 20;

/// Takes how a goal came to rest.
pub(super) fn rested(
    draft: &mut DecisionDraft<'_, Ralph>,
    state: &TaskState,
    outcome: &WorkflowOutcome,
) {
    let WorkflowOutcome::Rested {
        goal,
        status,
        commit,
        reason,
        worktree: _,
    } = outcome
    else {
        return;
    };
    let reason = reason.as_ref();
    let reason = reason.map(|text| kapi_core::quote::head(text, REASON_BYTES_MAX).to_owned());
    draft.fact(RalphEvent::TaskRested {
        task: state.task.id.clone(),
        attempt: state.attempt,
        goal: goal.clone(),
        status: *status,
        commit: commit.clone(),
        reason,
        at_ms: draft.given.now_ms,
    });
    let is_already_done = is_already_done(state, *status, commit.as_deref());
    let commit = commit.as_ref();
    if let Some(commit) = commit.filter(|_| is_already_done || *status == GoalStatus::Done) {
        let (id, at) = (&state.task.id, short_id(commit));
        let summary = if is_already_done {
            format!("{id} needed no change: its checks pass on {at}, as goal {goal} shows")
        } else {
            format!("{id} is proved by goal {goal} as {at}")
        };
        let reference = format!("goal:{goal}");
        let mut found = WorkflowEvidence::new(
            Weight::Validation,
            "goal",
            summary,
            reference,
            draft.given.now_ms,
        );
        found.verdict = Some(status.as_str().to_owned());
        found.phase = Some("run".to_owned());
        draft.evidence(found);
        if is_already_done {
            draft.fact(RalphEvent::TaskAlreadyDone {
                task: state.task.id.clone(),
                commit: commit.clone(),
            });
        }
    }
}

/// Tells whether a goal ended on the commit it began with: its checks pass there, so somebody else did
/// the work already.
fn is_already_done(state: &TaskState, status: GoalStatus, commit: Option<&str>) -> bool {
    let has_ended = matches!(status, GoalStatus::Done | GoalStatus::Unverified);
    let is_unchanged = commit.is_some() && commit == state.base.as_deref();
    has_ended && is_unchanged && !state.task.verify.is_empty()
}

/// Takes where the branch is with a task, and names what it changed beside the plan's paths.
pub(super) fn landed(
    draft: &mut DecisionDraft<'_, Ralph>,
    state: &TaskState,
    outcome: &WorkflowOutcome,
) {
    let WorkflowOutcome::Landed {
        head,
        tree,
        merged,
        changed,
    } = outcome
    else {
        return;
    };
    let id = &state.task.id;
    let strayed = strayed(draft, state, changed, head);
    draft.fact(RalphEvent::TaskLanded {
        task: id.clone(),
        head: head.clone(),
        tree: tree.clone(),
        merged: *merged,
        changed: Some(changed.clone()),
    });
    let goal = state.goal.as_ref();
    let settlement = Settlement {
        by: goal.map_or_else(|| "its task".to_owned(), |goal| format!("goal {goal}")),
        commit: Some(head.clone()),
        why: format!("redone on top of landed work, in attempt {}", state.attempt),
        at_ms: draft.given.now_ms,
    };
    draft.settle_conflicts(&id.to_string(), settlement);
    let how = if *merged {
        ", merged with work that landed meanwhile"
    } else {
        ""
    };
    let summary = format!("{id} is on the branch as {}{how}", short_id(head));
    let reference = format!("git:{head}");
    let mut found = WorkflowEvidence::new(
        Weight::Validation,
        "land",
        summary,
        reference,
        draft.given.now_ms,
    );
    found.phase = Some("run".to_owned());
    draft.evidence(found);
    if let Some(found) = strayed {
        draft.evidence(found);
    }
}

/// Returns the evidence that a task changed paths that the plan does not give it, and whose they are.
fn strayed(
    draft: &DecisionDraft<'_, Ralph>,
    state: &TaskState,
    changed: &LandedPaths,
    head: &str,
) -> Option<WorkflowEvidence> {
    let outside = touch::outside(&state.task, changed);
    if outside.is_empty() {
        return None;
    }
    let theirs = touch::overlapped(&draft.now, &state.task, &outside);
    let theirs: Vec<&str> = theirs.iter().map(|other| other.task.id.as_str()).collect();
    let whose = if theirs.is_empty() {
        String::new()
    } else {
        format!(
            "; the plan assigns them to {}, which started without this",
            theirs.join(", ")
        )
    };
    let summary = format!(
        "{} changed paths that the plan does not assign to it: {}{whose}",
        state.task.id,
        named(&outside)
    );
    let reference = format!("git:{head}");
    let mut found = WorkflowEvidence::new(
        Weight::Validation,
        STRAYED,
        summary,
        reference,
        draft.given.now_ms,
    );
    found.phase = Some("run".to_owned());
    found.artifacts = vec!["verify.md".to_owned()];
    Some(found)
}

/// Names the first of some paths.
fn named(paths: &[&str]) -> String {
    let first = &paths[..PATHS_REPORTED_MAX.min(paths.len())];
    match paths.len().saturating_sub(first.len()) {
        0 => first.join(", "),
        n_more => format!("{} and {n_more} more", first.join(", ")),
    }
}

/// Takes that a commit changes paths beside those of the plan: it lands only if a person says so.
pub(super) fn held(draft: &mut DecisionDraft<'_, Ralph>, state: &TaskState, paths: &[String]) {
    let Stand::Proved { commit } = &state.stand else {
        return;
    };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    draft.fact(RalphEvent::TaskStrayed {
        task: state.task.id.clone(),
        commit: commit.clone(),
        reason: format!(
            "it changes paths that the plan does not assign to it: {}",
            named(&paths)
        ),
    });
}

/// Takes that a commit does not fit: its owner does it again, a few times.
pub(super) fn conflicted(
    draft: &mut DecisionDraft<'_, Ralph>,
    state: &TaskState,
    paths: &[String],
) {
    let task = state.task.id.clone();
    draft.conflict(&task, paths);
    if state.sent_back >= SENT_BACK_MAX {
        let n = state.sent_back.saturating_add(1);
        let paths = paths.join(", ");
        let reason =
            format!("its work conflicted with landed work {n} times, most recently in {paths}");
        draft.fact(RalphEvent::TaskGivenUp { task, reason });
    } else {
        let paths = paths.to_vec();
        draft.fact(RalphEvent::TaskConflicted { task, paths });
    }
}

/// Takes the verification of what landed merged; what does not hold is its last owner's.
pub(super) fn verified(
    draft: &mut DecisionDraft<'_, Ralph>,
    report: &VerifyReport,
) -> Result<(), WorkflowRule> {
    let owner = draft.now.unverified.clone();
    record(draft, report, "run")?;
    let Some(state) = owner.and_then(|id| draft.now.tasks.get(&id).cloned()) else {
        return Ok(());
    };
    if report.passed() {
        return Ok(());
    }
    let task = state.task.id.clone();
    let because = said_by(report);
    if state.sent_back >= SENT_BACK_MAX {
        let n = state.sent_back.saturating_add(1);
        let reason = format!("the combined work failed verification {n} times. {because}");
        draft.fact(RalphEvent::TaskGivenUp { task, reason });
    } else {
        draft.fact(RalphEvent::TaskSentBack { task, because });
    }
    Ok(())
}

/// Records what the checks said on the base. It speaks for nothing: it is what the end stands beside.
pub(super) fn began_with(draft: &mut DecisionDraft<'_, Ralph>, report: &VerifyReport) {
    for run in &report.runs {
        let how = if run.passed() {
            "already passes on the base"
        } else {
            "fails on the base"
        };
        let summary = format!("`{}` {how}", run.command);
        let reference = format!("git:{}", report.commit);
        let mut found = WorkflowEvidence::new(
            Weight::Narrative,
            BASELINE,
            summary,
            reference,
            draft.given.now_ms,
        );
        found.command = Some(run.command.clone());
        found.exit_code = run.exit_code;
        found.phase = Some("run".to_owned());
        found.verdict = Some(if run.passed() { "pass" } else { "fail" }.to_owned());
        found.artifacts = vec!["verify.md".to_owned()];
        draft.evidence(found);
    }
}

/// Records a verification of the branch, with evidence for every command.
pub(super) fn record(
    draft: &mut DecisionDraft<'_, Ralph>,
    report: &VerifyReport,
    phase: &str,
) -> Result<(), WorkflowRule> {
    let head = draft.now.branch.as_ref().map(|branch| branch.head.as_str());
    if head != Some(report.commit.as_str()) {
        return Err(WorkflowRule::Malformed {
            rule: format!(
                "accept a verification of {}: the branch is at {}",
                report.commit,
                head.unwrap_or("nothing")
            ),
        });
    }
    draft.fact(RalphEvent::HeadVerified {
        commit: report.commit.clone(),
        report: report.clone(),
    });
    for run in &report.runs {
        let summary = format!(
            "`{}` {} on {}",
            run.command,
            ended(run),
            short_id(&report.commit)
        );
        let reference = format!("git:{}", report.commit);
        let mut found = WorkflowEvidence::new(
            Weight::Validation,
            "verify",
            summary,
            reference,
            draft.given.now_ms,
        );
        found.command = Some(run.command.clone());
        found.exit_code = run.exit_code;
        found.phase = Some(phase.to_owned());
        found.verdict = Some(if run.passed() { "pass" } else { "fail" }.to_owned());
        found.artifacts = vec!["verify.md".to_owned()];
        draft.evidence(found);
    }
    for line in report.inspection.lines() {
        let summary = line.trim_start_matches("- ").to_owned();
        let reference = format!("git:{}", report.commit);
        let mut found = WorkflowEvidence::new(
            Weight::Validation,
            NAMED,
            summary,
            reference,
            draft.given.now_ms,
        );
        found.phase = Some(phase.to_owned());
        found.artifacts = vec!["verify.md".to_owned()];
        draft.evidence(found);
    }
    Ok(())
}

/// Returns how a command ended, in words.
pub(super) fn ended(run: &VerifyRun) -> String {
    match run.exit_code {
        _ if run.timed_out => "ran out of time".to_owned(),
        Some(code) => format!("ended with exit code {code}"),
        None => "was killed".to_owned(),
    }
}

/// Returns what a failing verification said, for whoever mends it.
pub(super) fn said_by(report: &VerifyReport) -> String {
    let mut parts = Vec::new();
    if !report.tampered.is_empty() {
        parts.push(format!(
            "Protected files were changed: {}.",
            report.tampered.join(", ")
        ));
    }
    for run in report.runs.iter().filter(|run| !run.passed()) {
        let output = tail(&run.output_tail, OUTPUT_BYTES_MAX);
        parts.push(format!("`{}` {}:\n{output}", run.command, ended(run)));
    }
    parts.join("\n\n")
}
