//! The rules for what a judge answered: a verdict, or none.
//!
//! A judge that cannot be asked or understood never completes a goal, unless the contract says so.
//! One that cannot be reached is tried again for days: the goal is parked with its verified work, and
//! nothing but the judge is run again.

use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_core::judge::JudgeUnavailable;
use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};

use super::turn_end::end_turn;
use crate::rules::decide::again::{RetryDecision, again};
use crate::rules::event::{GoalEvent, Stop, TurnVerdict};
use crate::rules::state::Goal;
use crate::rules::wait::{GoalWait, WaitFor};

/// Attempts at a verdict in the required form.
const MALFORMED_ATTEMPTS_MAX: u32 = 3;
/// Attempts to reach a judge before the goal is parked; they take about 15 seconds.
const NEAR_ATTEMPTS_MAX: u32 = 5;
/// Attempts to reach a judge in all: hourly for more than a week.
const ATTEMPTS_MAX: u32 = 200;
/// The first time that a goal is parked for its judge, in milliseconds; it doubles each time.
const FIRST_PARK_MS: u64 = 60 * 1_000;
/// The longest time that a goal is parked for its judge, unless the provider asks for more.
const PARK_MS_MAX: u64 = 60 * 60 * 1_000;

pub(super) fn judge_events(
    goal: &Goal,
    run: &JudgeRun,
    elapsed_ms: u64,
    now_ms: i64,
) -> Vec<GoalEvent> {
    let ended = GoalEvent::JudgeEnded {
        run: run.clone(),
        elapsed_ms,
    };
    match &run.answer {
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Done,
            ..
        } if goal.said.is_some() => end_turn(goal, ended, TurnVerdict::PersonSpoke),
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Done,
            ..
        } => vec![ended],
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Continue,
            ..
        } => end_turn(goal, ended, TurnVerdict::JudgeContinue),
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Blocked,
            reason,
        } => {
            let stop = Stop::JudgeBlocked {
                reason: reason.clone(),
            };
            let verdict = TurnVerdict::JudgeContinue;
            let turn_ended = GoalEvent::TurnEnded {
                turn: goal.turn,
                verdict,
            };
            vec![ended, turn_ended, GoalEvent::GoalStopped { stop }]
        }
        JudgeAnswer::Verdict {
            verdict: JudgeVerdict::Impossible,
            reason,
        } => {
            let stop = Stop::Impossible {
                reason: reason.clone(),
            };
            vec![ended, GoalEvent::GoalStopped { stop }]
        }
        JudgeAnswer::Malformed { text } => {
            let failure = ProviderFailure {
                kind: ProviderFailureKind::EmptyAnswer,
                message: format!("the judge's answer is not a verdict: {text}"),
                retry_after_ms: None,
            };
            let then = asked_for_form(goal, &failure, now_ms);
            let mut events = vec![judge_failed(run, then, elapsed_ms)];
            events.extend(after_failure(goal, &failure, then, now_ms));
            events
        }
        JudgeAnswer::Unavailable(failure) => {
            let then = asked_later(goal, failure, now_ms);
            let mut events = vec![judge_failed(run, then, elapsed_ms)];
            events.extend(after_failure(goal, failure, then, now_ms));
            events
        }
    }
}

/// Returns when a judge is asked again that was reached and gave no verdict.
fn asked_for_form(goal: &Goal, failure: &ProviderFailure, now_ms: i64) -> RetryDecision {
    let was_malformed = goal
        .judge
        .as_ref()
        .is_some_and(|run| matches!(run.answer, JudgeAnswer::Malformed { .. }));
    // One answer after an outage is not yet a judge that cannot be understood.
    if was_malformed {
        again(goal, failure, MALFORMED_ATTEMPTS_MAX, now_ms)
    } else {
        again(goal, failure, ATTEMPTS_MAX, now_ms)
    }
}

/// Returns when a judge is asked again that was not reached.
fn asked_later(goal: &Goal, failure: &ProviderFailure, now_ms: i64) -> RetryDecision {
    let soon = again(goal, failure, ATTEMPTS_MAX, now_ms);
    let is_near = goal.failures.saturating_add(1) < NEAR_ATTEMPTS_MAX;
    match (soon, goal.contract.judge_unavailable) {
        (RetryDecision::At(_), _) if is_near => soon,
        // The contract lets the checks decide where no judge is there soon.
        (_, JudgeUnavailable::Open) | (RetryDecision::Never, JudgeUnavailable::Closed) => {
            RetryDecision::Never
        }
        (RetryDecision::At(at_ms) | RetryDecision::Parked(at_ms), JudgeUnavailable::Closed) => {
            let doublings = goal
                .failures
                .saturating_add(1)
                .saturating_sub(NEAR_ATTEMPTS_MAX);
            let parked_ms = FIRST_PARK_MS
                .saturating_mul(1 << doublings.min(20))
                .min(PARK_MS_MAX);
            let parked_ms = i64::try_from(parked_ms).unwrap_or(i64::MAX);
            RetryDecision::Parked(at_ms.max(now_ms.saturating_add(parked_ms)))
        }
    }
}

fn judge_failed(run: &JudgeRun, then: RetryDecision, elapsed_ms: u64) -> GoalEvent {
    GoalEvent::JudgeFailed {
        run: run.clone(),
        retry_at_ms: then.retry_at_ms(),
        elapsed_ms,
    }
}

/// A judge that cannot be asked or understood never completes a goal, unless the contract says so.
fn after_failure(
    goal: &Goal,
    failure: &ProviderFailure,
    then: RetryDecision,
    now_ms: i64,
) -> Option<GoalEvent> {
    match (then, goal.contract.judge_unavailable) {
        (RetryDecision::At(_), _) | (RetryDecision::Never, JudgeUnavailable::Open) => None,
        (RetryDecision::Parked(at_ms), _) => Some(parked(goal, failure, at_ms, now_ms)),
        (RetryDecision::Never, JudgeUnavailable::Closed) => Some(GoalEvent::GoalStopped {
            stop: Stop::JudgeUnavailable {
                reason: failure.message.clone(),
            },
        }),
    }
}

/// Parks a goal whose candidate is verified and whose judge could not be reached.
fn parked(goal: &Goal, failure: &ProviderFailure, at_ms: i64, now_ms: i64) -> GoalEvent {
    let judge = goal.judge_agent().unwrap_or_default().to_owned();
    GoalEvent::GoalParked {
        wait: GoalWait {
            number: goal.waits.saturating_add(1),
            until: WaitFor::Judge { judge, at_ms },
            reason: Some(format!(
                "it could not be reached ({}), and the verified candidate is kept",
                failure.kind.words()
            )),
            since_ms: now_ms,
            deadline_ms: None,
        },
    }
}
