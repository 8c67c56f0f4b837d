//! The rules for effects that ended: what an outcome makes of the goal.
//!
//! An outcome is accepted only for the effect that was intended, and only in its own kind.

use crate::goal::contract::JudgeUnavailable;
use crate::goal::decide::{folded, require_under_way};
use crate::goal::denied::Denied;
use crate::goal::event::{Event, Stop, TurnVerdict};
use crate::goal::outcome::{
    AgentEnd, AgentRun, Candidate, Checks, Claim, JudgeAnswer, JudgeRun, Outcome, ProviderFailure,
    Verdict, VerifyReport,
};
use crate::goal::state::{Goal, Stage, Status};
use crate::id::EffectId;
use crate::usage::Usage;

/// Attempts at one agent turn while its provider keeps failing.
const PROVIDER_ATTEMPTS_MAX: u32 = 8;
/// Attempts at one judgement.
const JUDGE_ATTEMPTS_MAX: u32 = 3;
/// The first wait after a provider's failure, in milliseconds; it doubles each time.
const FIRST_DELAY_MS: u64 = 1_000;
/// The longest wait, in milliseconds, unless the provider asks for more.
const DELAY_MS_MAX: u64 = 5 * 60 * 1_000;
/// The longest wait a provider may ask for, in milliseconds.
const RETRY_AFTER_MS_MAX: u64 = 60 * 60 * 1_000;

pub(super) fn decide_report(
    goal: &Goal,
    effect: &EffectId,
    outcome: &Outcome,
    elapsed_ms: u64,
    now_ms: i64,
) -> Result<Vec<Event>, Denied> {
    require_under_way(goal, effect)?;
    if let Outcome::Cancelled { usage, session } = outcome {
        let (effect, usage, session) = (effect.clone(), *usage, session.clone());
        return Ok(vec![Event::EffectCancelled {
            effect,
            usage,
            session,
            elapsed_ms,
        }]);
    }
    if goal.status != Status::Active {
        // A person stopped the goal while the effect ran: what it used counts, what it found does
        // not, and the stage is done again on resume.
        let (usage, session) = used_by(outcome);
        let effect = effect.clone();
        return Ok(vec![Event::EffectCancelled {
            effect,
            usage,
            session,
            elapsed_ms,
        }]);
    }
    if let Outcome::Failed(failure) = outcome {
        let stop = Stop::WorldFailed {
            failure: failure.clone(),
        };
        let (effect, usage) = (effect.clone(), Usage::default());
        let landed = Event::EffectCancelled {
            effect,
            usage,
            session: None,
            elapsed_ms,
        };
        return Ok(vec![landed, Event::GoalStopped { stop }]);
    }
    if goal.wait_until_ms.is_some() {
        return if *outcome == Outcome::Waited {
            Ok(vec![Event::WaitEnded])
        } else {
            Err(wrong_outcome(effect, outcome))
        };
    }
    let events = match (goal.stage, outcome) {
        (Stage::Workspace, Outcome::Workspace { path }) => {
            vec![Event::WorkspaceCreated {
                path: path.clone(),
                elapsed_ms,
            }]
        }
        (Stage::Agent, Outcome::Agent(run)) => agent_events(goal, run, elapsed_ms, now_ms),
        (Stage::Commit, Outcome::Committed(candidate)) => {
            commit_events(goal, candidate, elapsed_ms)
        }
        (Stage::Verify, Outcome::Verified(report)) => verify_events(goal, report, elapsed_ms),
        (Stage::Judge, Outcome::Judged(run)) => judge_events(goal, run, elapsed_ms, now_ms),
        (Stage::Publish, Outcome::Published { commit }) => vec![Event::GoalDone {
            commit: commit.clone(),
            verified: goal.verify.as_ref().is_some_and(VerifyReport::passed)
                && goal.contract.is_verified(),
            elapsed_ms,
        }],
        (_, _) => return Err(wrong_outcome(effect, outcome)),
    };
    Ok(with_budget_stop(goal, events))
}

fn used_by(outcome: &Outcome) -> (Usage, Option<String>) {
    match outcome {
        Outcome::Agent(run) => (run.usage, run.session.clone()),
        Outcome::Judged(run) => (run.usage, None),
        Outcome::Workspace { .. }
        | Outcome::Committed(_)
        | Outcome::Verified(_)
        | Outcome::Published { .. }
        | Outcome::Waited
        | Outcome::Cancelled { .. }
        | Outcome::Failed(_) => (Usage::default(), None),
    }
}

fn agent_events(goal: &Goal, run: &AgentRun, elapsed_ms: u64, now_ms: i64) -> Vec<Event> {
    let AgentEnd::Provider(failure) = &run.end else {
        return vec![Event::AgentEnded {
            run: run.clone(),
            elapsed_ms,
        }];
    };
    let retry_at_ms = retry_at_ms(goal, failure, PROVIDER_ATTEMPTS_MAX, now_ms);
    let mut events = vec![Event::ProviderFailed {
        failure: failure.clone(),
        usage: run.usage,
        retry_at_ms,
        elapsed_ms,
    }];
    if retry_at_ms.is_none() {
        let stop = Stop::ProviderUnavailable {
            failure: failure.clone(),
        };
        events.push(Event::GoalStopped { stop });
    }
    events
}

fn commit_events(goal: &Goal, candidate: &Candidate, elapsed_ms: u64) -> Vec<Event> {
    let committed = Event::CandidateCommitted {
        candidate: candidate.clone(),
        elapsed_ms,
    };
    if let Some(AgentEnd::Crashed { .. } | AgentEnd::OutOfResources { .. }) = goal.agent_end {
        // Whatever it left is kept, but a turn that was not ended cannot be the last one.
        return end_turn(goal, committed, TurnVerdict::AgentFailed);
    }
    if let Some(stop) = blocked_and_unchecked(goal)
        && goal.contract.protect.is_empty()
    {
        return blocked(goal, committed, stop);
    }
    let is_judged = goal.contract.is_verified() || goal.contract.judge_agent().is_some();
    if candidate.files_changed == 0 && !is_judged {
        return end_turn(goal, committed, TurnVerdict::NothingDone);
    }
    vec![committed]
}

/// Returns the stop of an agent that says it is blocked, where no verify command can tell better.
fn blocked_and_unchecked(goal: &Goal) -> Option<Stop> {
    match &goal.claim {
        Some(Claim::Blocked { reason }) if !goal.contract.is_verified() => {
            Some(Stop::AgentBlocked {
                reason: reason.clone(),
            })
        }
        Some(_) | None => None,
    }
}

fn blocked(goal: &Goal, ended: Event, stop: Stop) -> Vec<Event> {
    let turn_ended = Event::TurnEnded {
        turn: goal.turn,
        verdict: TurnVerdict::AgentBlocked,
    };
    vec![ended, turn_ended, Event::GoalStopped { stop }]
}

fn verify_events(goal: &Goal, report: &VerifyReport, elapsed_ms: u64) -> Vec<Event> {
    let ended = Event::VerifyEnded {
        report: report.clone(),
        elapsed_ms,
    };
    if report.passed() {
        return match blocked_and_unchecked(goal) {
            Some(stop) => blocked(goal, ended, stop),
            None => vec![ended],
        };
    }
    let verdict = failed_verdict(report);
    if let Some(Claim::Blocked { reason }) = &goal.claim {
        let stop = Stop::AgentBlocked {
            reason: reason.clone(),
        };
        let turn_ended = Event::TurnEnded {
            turn: goal.turn,
            verdict,
        };
        return vec![ended, turn_ended, Event::GoalStopped { stop }];
    }
    end_turn(goal, ended, verdict)
}

fn failed_verdict(report: &VerifyReport) -> TurnVerdict {
    if !report.tampered.is_empty() {
        return TurnVerdict::Tampered;
    }
    let failed = report.runs.iter().find(|run| !run.passed());
    match failed.map(|run| run.checks) {
        Some(Checks::Hidden) => TurnVerdict::HiddenFailed,
        Some(Checks::Visible) | None => TurnVerdict::VerifyFailed,
    }
}

fn judge_events(goal: &Goal, run: &JudgeRun, elapsed_ms: u64, now_ms: i64) -> Vec<Event> {
    let ended = Event::JudgeEnded {
        run: run.clone(),
        elapsed_ms,
    };
    match &run.answer {
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
    let retry_at_ms = retry_at_ms(goal, failure, JUDGE_ATTEMPTS_MAX, now_ms);
    let failed = Event::JudgeFailed {
        run: run.clone(),
        retry_at_ms,
        elapsed_ms,
    };
    if retry_at_ms.is_some() {
        return vec![failed];
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

fn end_turn(goal: &Goal, ended: Event, verdict: TurnVerdict) -> Vec<Event> {
    let mut events = vec![
        ended,
        Event::TurnEnded {
            turn: goal.turn,
            verdict,
        },
    ];
    let after = folded(goal, &events);
    let times = after
        .candidate
        .as_ref()
        .map_or(0, |candidate| after.breaker.times(&candidate.tree, verdict));
    if times >= goal.contract.stall_after {
        events.push(Event::GoalStopped {
            stop: Stop::NoProgress { turns: times },
        });
    }
    events
}

/// Stops the goal when a limit is used up and it would otherwise go on.
fn with_budget_stop(goal: &Goal, mut events: Vec<Event>) -> Vec<Event> {
    let after = folded(goal, &events);
    if after.status != Status::Active {
        return events;
    }
    // A turn that is about to be proved is let through to its proof: only a new agent run or a
    // judge costs tokens, and only a new agent run is a turn.
    let limit = match after.stage {
        Stage::Agent if after.attempt == 1 => after.budget.used_up(&after.spent),
        Stage::Agent | Stage::Judge => after.budget.used_up_within_turn(&after.spent),
        Stage::Workspace | Stage::Commit | Stage::Verify | Stage::Publish | Stage::Ended => None,
    };
    if let Some(limit) = limit {
        events.push(Event::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        });
    }
    events
}

fn retry_at_ms(
    goal: &Goal,
    failure: &ProviderFailure,
    attempts_max: u32,
    now_ms: i64,
) -> Option<i64> {
    if !failure.kind.may_pass() || goal.failures.saturating_add(1) >= attempts_max {
        return None;
    }
    let doublings = goal.failures.min(20);
    let backoff = FIRST_DELAY_MS
        .saturating_mul(1 << doublings)
        .min(DELAY_MS_MAX);
    let asked = failure.retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    let delay = i64::try_from(backoff.max(asked)).unwrap_or(i64::MAX);
    Some(now_ms.saturating_add(delay))
}

fn wrong_outcome(effect: &EffectId, outcome: &Outcome) -> Denied {
    let kind = match outcome {
        Outcome::Workspace { .. } => "a workspace",
        Outcome::Agent(_) => "an agent run",
        Outcome::Committed(_) => "a commit",
        Outcome::Verified(_) => "a verify report",
        Outcome::Judged(_) => "a judgement",
        Outcome::Published { .. } => "a publication",
        Outcome::Waited => "a wait",
        Outcome::Cancelled { .. } => "a cancellation",
        Outcome::Failed(_) => "a failure",
    };
    Denied::WrongOutcome {
        effect: effect.clone(),
        outcome: kind,
    }
}
