//! The rules for checks that cannot run, and for checks that pass and prove nothing.

use kapi_check::rules::proof::assess::ProofObjection;
use kapi_check::rules::proof::baseline;
use kapi_check::rules::proof::verify_report::VerifyReport;

use super::turn_end::end_turn;
use crate::rules::event::{GoalEvent, Stop, TurnVerdict};
use crate::rules::state::Goal;
use crate::rules::wait::{GoalWait, WaitFor};

/// A command that cannot work on the base will not work on the result: nothing is spent on it.
pub(super) fn baseline_events(report: &VerifyReport, elapsed_ms: u64) -> Vec<GoalEvent> {
    let ended = GoalEvent::BaselineEnded {
        report: report.clone(),
        elapsed_ms,
    };
    match baseline::obstacle(report) {
        None => vec![ended],
        Some(obstacle) => vec![
            ended,
            GoalEvent::GoalStopped {
                stop: Stop::ChecksCannotRun {
                    command: obstacle.command,
                    reason: obstacle.reason,
                    remedy: obstacle.remedy,
                },
            },
        ],
    }
}

/// Checks that pass may still be no proof. The agent is told once; what stays is a person's to allow.
pub(super) fn objected(
    goal: &Goal,
    report: &VerifyReport,
    ended: &GoalEvent,
    now_ms: i64,
) -> Option<Vec<GoalEvent>> {
    let objection = goal.objection_to(report)?;
    let ended = ended.clone();
    let verdict = match &objection {
        ProofObjection::TestsVanished { .. } => TurnVerdict::TestsVanished,
        ProofObjection::TestsChanged { .. } | ProofObjection::RestsOnAddedTests { .. } => {
            TurnVerdict::TestsChanged
        }
        ProofObjection::RestsOnSteering { .. } => TurnVerdict::SteeringChanged,
        ProofObjection::RestsOnFlaggedCode { .. } | ProofObjection::CannotFail { .. } => {
            TurnVerdict::CodeFlagged
        }
    };
    let was_reported = goal.last_verdict == Some(verdict);
    let is_last = goal.turn >= goal.budget.turns;
    if !was_reported && !is_last {
        return Some(end_turn(goal, ended, verdict));
    }
    Some(wait_for_person(
        goal,
        ended,
        ProofQuestion {
            what: objection.question(&report.tree),
            reason: objection.words(),
        },
        now_ms,
    ))
}

/// Checks that fail for want of dependencies say nothing about the work: where a person can let them
/// be downloaded, the agent's turns are not spent on it.
pub(super) fn lacking(
    goal: &Goal,
    report: &VerifyReport,
    ended: &GoalEvent,
    now_ms: i64,
) -> Option<Vec<GoalEvent>> {
    let lacking = report.inspection.lacking.as_ref()?;
    let what = lacking.question()?;
    if goal.consent.allowed.contains(&what) || !report.tampered.is_empty() {
        return None;
    }
    let reason = lacking.why.clone();
    Some(wait_for_person(
        goal,
        ended.clone(),
        ProofQuestion { what, reason },
        now_ms,
    ))
}

/// What a person is asked to allow, and why.
struct ProofQuestion {
    what: String,
    reason: String,
}

fn wait_for_person(
    goal: &Goal,
    ended: GoalEvent,
    question: ProofQuestion,
    now_ms: i64,
) -> Vec<GoalEvent> {
    let wait = GoalWait {
        number: goal.waits.saturating_add(1),
        until: WaitFor::Approval {
            what: question.what,
        },
        reason: Some(question.reason),
        since_ms: now_ms,
        deadline_ms: None,
    };
    vec![ended, GoalEvent::GoalParked { wait }]
}
