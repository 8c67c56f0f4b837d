//! The rules for what a judge answered: a verdict, or none.
//!
//! A judge that cannot be asked or understood never completes a goal, unless the contract says so.

use crate::goal::contract::JudgeUnavailable;
use crate::goal::decide::again::{Again, again, quota_wait};
use crate::goal::decide::report::end_turn;
use crate::goal::event::{Event, Stop, TurnVerdict};
use crate::goal::outcome::{JudgeAnswer, JudgeRun, ProviderFailure, Verdict};
use crate::goal::state::Goal;

/// Attempts at one judgement.
const JUDGE_ATTEMPTS_MAX: u32 = 3;

pub(super) fn judge_events(
    goal: &Goal,
    run: &JudgeRun,
    elapsed_ms: u64,
    now_ms: i64,
) -> Vec<Event> {
    let ended = Event::JudgeEnded {
        run: run.clone(),
        elapsed_ms,
    };
    match &run.answer {
        JudgeAnswer::Verdict {
            verdict: Verdict::Done,
            ..
        } if goal.said.is_some() => end_turn(goal, ended, TurnVerdict::PersonSpoke),
        JudgeAnswer::Verdict {
            verdict: Verdict::Done,
            ..
        } => vec![ended],
        JudgeAnswer::Verdict {
            verdict: Verdict::Continue,
            ..
        } => end_turn(goal, ended, TurnVerdict::JudgeContinue),
        JudgeAnswer::Verdict {
            verdict: Verdict::Blocked,
            reason,
        } => {
            let stop = Stop::JudgeBlocked {
                reason: reason.clone(),
            };
            let verdict = TurnVerdict::JudgeContinue;
            let turn_ended = Event::TurnEnded {
                turn: goal.turn,
                verdict,
            };
            vec![ended, turn_ended, Event::GoalStopped { stop }]
        }
        JudgeAnswer::Verdict {
            verdict: Verdict::Impossible,
            reason,
        } => {
            let stop = Stop::Impossible {
                reason: reason.clone(),
            };
            vec![ended, Event::GoalStopped { stop }]
        }
        JudgeAnswer::Malformed { text } => {
            let failure = ProviderFailure {
                kind: crate::goal::outcome::ProviderFailureKind::EmptyAnswer,
                message: format!("the judge's answer is not a verdict: {text}"),
                retry_after_ms: None,
            };
            judge_failed(goal, run, &failure, (elapsed_ms, now_ms))
        }
        JudgeAnswer::Unavailable(failure) => judge_failed(goal, run, failure, (elapsed_ms, now_ms)),
    }
}

/// A judge that cannot be asked or understood never completes a goal, unless the contract says so.
fn judge_failed(
    goal: &Goal,
    run: &JudgeRun,
    failure: &ProviderFailure,
    (elapsed_ms, now_ms): (u64, i64),
) -> Vec<Event> {
    let again = again(goal, failure, JUDGE_ATTEMPTS_MAX, now_ms);
    let failed = Event::JudgeFailed {
        run: run.clone(),
        retry_at_ms: again.retry_at_ms(),
        elapsed_ms,
    };
    match (again, goal.contract.judge_unavailable) {
        (Again::At(_), _) => return vec![failed],
        (Again::Parked(at_ms), _) => {
            return vec![failed, quota_wait(goal, &run.by, at_ms, now_ms)];
        }
        (Again::Never, _) => {}
    }
    match goal.contract.judge_unavailable {
        JudgeUnavailable::Open => vec![failed],
        JudgeUnavailable::Closed => {
            let stop = Stop::JudgeUnavailable {
                reason: failure.message.clone(),
            };
            vec![failed, Event::GoalStopped { stop }]
        }
    }
}
