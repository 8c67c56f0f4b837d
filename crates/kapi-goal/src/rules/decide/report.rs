//! The rules for effects that ended: what an outcome makes of the goal.
//!
//! An outcome is accepted only for the effect that was intended, and only in its own kind.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::Checks;
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim, ProviderFailure, ProviderFailureKind};
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;

use super::turn_end::end_turn;
use crate::rules::decide::again::{RetryDecision, again, quota_wait};
use crate::rules::decide::judgement::judge_events;
use crate::rules::decide::proof::{baseline_events, lacking, objected};
use crate::rules::decide::{folded, require_under_way};
use crate::rules::denied::GoalDenial;
use crate::rules::event::{GoalEvent, Stop, TurnVerdict};
use crate::rules::journey::TurnDeclaration;
use crate::rules::outcome::{GoalCandidate, GoalOutcome};
use crate::rules::state::{Goal, GoalStage, GoalStatus};
use crate::rules::wait::GoalWait;

/// Attempts at one agent turn while its provider keeps failing.
const PROVIDER_ATTEMPTS_MAX: u32 = 8;
/// Answers of nothing that are taken for the provider's failure, one after the other.
const SILENT_RETRIES_MAX: u32 = 1;
/// How much of an agent's last message stands in a stop, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Tells whether an effect is still the one that the goal asks for: a person may have spoken, or
/// approved what a run drafted, while it went on.
fn is_wanted(goal: &Goal, effect: &EffectId) -> bool {
    if goal.wait_until_ms.is_some() {
        *effect == goal.wait_effect()
    } else {
        *effect == goal.stage_effect()
    }
}

pub(super) fn decide_report(
    goal: &Goal,
    effect: &EffectId,
    outcome: &GoalOutcome,
    elapsed_ms: u64,
    now_ms: i64,
) -> Result<Vec<GoalEvent>, GoalDenial> {
    require_under_way(goal, effect)?;
    if let GoalOutcome::Cancelled { usage, session } = outcome {
        let (effect, usage, session) = (effect.clone(), *usage, session.clone());
        return Ok(vec![GoalEvent::EffectCancelled {
            effect,
            usage,
            session,
            elapsed_ms,
        }]);
    }
    if !goal.is_driven() || !is_wanted(goal, effect) {
        // A person stopped the goal while the effect ran: what it used counts, what it found does
        // not, and the stage is done again on resume.
        let (usage, session) = used_by(outcome);
        let effect = effect.clone();
        return Ok(vec![GoalEvent::EffectCancelled {
            effect,
            usage,
            session,
            elapsed_ms,
        }]);
    }
    if let Some(stop) = refusal(outcome) {
        let session = used_by(outcome).1;
        return Ok(refused(goal, effect, stop, elapsed_ms, session));
    }
    if goal.wait_until_ms.is_some() {
        return if *outcome == GoalOutcome::Waited {
            Ok(vec![GoalEvent::WaitEnded])
        } else {
            Err(wrong_outcome(effect, outcome))
        };
    }
    let events = match (goal.stage, outcome) {
        (GoalStage::Workspace, GoalOutcome::Workspace { path }) => {
            vec![GoalEvent::WorkspaceCreated {
                path: path.clone(),
                elapsed_ms,
            }]
        }
        (GoalStage::Baseline, GoalOutcome::Verified(report)) => baseline_events(report, elapsed_ms),
        (GoalStage::Setup, GoalOutcome::Agent(run)) => setup_events(goal, run, elapsed_ms, now_ms),
        (GoalStage::Agent, GoalOutcome::Agent(run)) => agent_events(goal, run, elapsed_ms, now_ms),
        (GoalStage::Distill, GoalOutcome::Agent(run)) => vec![GoalEvent::DistillEnded {
            usage: run.usage,
            elapsed_ms,
        }],
        (GoalStage::Commit, GoalOutcome::Committed(candidate)) => {
            commit_events(goal, candidate, elapsed_ms, now_ms)
        }
        (GoalStage::Verify, GoalOutcome::Verified(report)) => {
            verify_events(goal, report, elapsed_ms, now_ms)
        }
        (GoalStage::Judge, GoalOutcome::Judged(run)) => judge_events(goal, run, elapsed_ms, now_ms),
        (GoalStage::Publish, GoalOutcome::Published { commit }) => vec![GoalEvent::GoalDone {
            commit: commit.clone(),
            verified: goal.is_proved(),
            elapsed_ms,
        }],
        (_, _) => return Err(wrong_outcome(effect, outcome)),
    };
    Ok(with_budget_stop(goal, events))
}

fn refused(
    goal: &Goal,
    effect: &EffectId,
    stop: Stop,
    elapsed_ms: u64,
    session: Option<String>,
) -> Vec<GoalEvent> {
    let landed = GoalEvent::EffectCancelled {
        effect: effect.clone(),
        usage: Usage::default(),
        session,
        elapsed_ms,
    };
    // What is done stays done; only the account of it is left out.
    let after = if goal.stage == GoalStage::Distill {
        GoalEvent::DistillSkipped
    } else {
        GoalEvent::GoalStopped { stop }
    };
    vec![landed, after]
}

fn used_by(outcome: &GoalOutcome) -> (Usage, Option<String>) {
    match outcome {
        GoalOutcome::Agent(run) => (run.usage, run.session.clone()),
        GoalOutcome::Judged(run) => (run.usage, None),
        GoalOutcome::Workspace { .. }
        | GoalOutcome::Committed(_)
        | GoalOutcome::Verified(_)
        | GoalOutcome::Published { .. }
        | GoalOutcome::Waited
        | GoalOutcome::Cancelled { .. }
        | GoalOutcome::Failed(_) => (Usage::default(), None),
        GoalOutcome::CapReached { session, .. } => (Usage::default(), session.clone()),
    }
}

/// Returns the stop that an outcome without a result leads to.
fn refusal(outcome: &GoalOutcome) -> Option<Stop> {
    match outcome {
        GoalOutcome::Failed(failure) => Some(Stop::WorldFailed {
            failure: failure.clone(),
        }),
        GoalOutcome::CapReached { cap, .. } => Some(Stop::CapReached { cap: cap.clone() }),
        GoalOutcome::Workspace { .. }
        | GoalOutcome::Agent(_)
        | GoalOutcome::Committed(_)
        | GoalOutcome::Verified(_)
        | GoalOutcome::Judged(_)
        | GoalOutcome::Published { .. }
        | GoalOutcome::Waited
        | GoalOutcome::Cancelled { .. } => None,
    }
}

/// A drafting agent that ended without a draft has failed at it; one with a draft was cut off by
/// the draft itself, and does not come here.
fn setup_events(goal: &Goal, run: &AgentRun, elapsed_ms: u64, now_ms: i64) -> Vec<GoalEvent> {
    if let AgentEnd::Provider(failure) = &run.end
        && !is_silent_turn(goal, run, failure)
    {
        return provider_events(goal, failure, run.usage, elapsed_ms, now_ms);
    }
    let message = run.message.chars().take(MESSAGE_CHARS_MAX).collect();
    vec![
        GoalEvent::SetupEnded {
            run: run.clone(),
            elapsed_ms,
        },
        GoalEvent::GoalStopped {
            stop: Stop::NotDrafted { message },
        },
    ]
}

fn agent_events(goal: &Goal, run: &AgentRun, elapsed_ms: u64, now_ms: i64) -> Vec<GoalEvent> {
    let AgentEnd::Provider(failure) = &run.end else {
        return vec![GoalEvent::AgentEnded {
            run: run.clone(),
            elapsed_ms,
        }];
    };
    if is_silent_turn(goal, run, failure) {
        let run = AgentRun {
            end: AgentEnd::Finished,
            ..run.clone()
        };
        return vec![GoalEvent::AgentEnded { run, elapsed_ms }];
    }
    provider_events(goal, failure, run.usage, elapsed_ms, now_ms)
}

/// Tells whether a run that ended without a word is a turn all the same: it worked, or the same
/// happened before. Whoever limits turns limits these, too.
fn is_silent_turn(goal: &Goal, run: &AgentRun, failure: &ProviderFailure) -> bool {
    let has_worked = run.tools > 0;
    failure.kind == ProviderFailureKind::EmptyAnswer
        && (has_worked || goal.failures >= SILENT_RETRIES_MAX)
}

fn provider_events(
    goal: &Goal,
    failure: &ProviderFailure,
    usage: Usage,
    elapsed_ms: u64,
    now_ms: i64,
) -> Vec<GoalEvent> {
    let again = again(goal, failure, PROVIDER_ATTEMPTS_MAX, now_ms);
    let failed = GoalEvent::ProviderFailed {
        failure: failure.clone(),
        usage,
        retry_at_ms: again.retry_at_ms(),
        elapsed_ms,
    };
    match again {
        RetryDecision::At(_) => vec![failed],
        RetryDecision::Parked(at_ms) => vec![
            failed,
            quota_wait(goal, &goal.contract.agent, at_ms, now_ms),
        ],
        RetryDecision::Never => {
            let stop = Stop::ProviderUnavailable {
                failure: failure.clone(),
            };
            vec![failed, GoalEvent::GoalStopped { stop }]
        }
    }
}

fn commit_events(
    goal: &Goal,
    candidate: &GoalCandidate,
    elapsed_ms: u64,
    now_ms: i64,
) -> Vec<GoalEvent> {
    let committed = GoalEvent::CandidateCommitted {
        candidate: candidate.clone(),
        elapsed_ms,
    };
    if let Some(AgentEnd::Crashed { .. } | AgentEnd::OutOfResources { .. }) = goal.agent_end {
        // Whatever it left is kept, but a turn that was not ended cannot be the last one. Only a
        // tree that stayed as the turn found it goes to its checks and a judge all the same: then
        // nothing was broken off, and an agent that dies at its end loses no finished work.
        let is_whole = goal.turn_start_tree() == candidate.tree && candidate.files_changed > 0;
        let is_judged = goal.judge_agent().is_some();
        if is_whole && is_judged && goal.contract.is_verified() {
            return vec![committed];
        }
        return end_turn(goal, committed, TurnVerdict::AgentFailed);
    }
    if let Some(TurnDeclaration::Wait {
        until,
        reason,
        deadline_ms,
    }) = &goal.journey.declared
    {
        let turn_ended = GoalEvent::TurnEnded {
            turn: goal.turn,
            verdict: TurnVerdict::Waiting,
        };
        let wait = GoalWait {
            number: goal.waits.saturating_add(1),
            until: until.clone(),
            reason: Some(reason.clone()),
            since_ms: now_ms,
            deadline_ms: *deadline_ms,
        };
        return vec![committed, turn_ended, GoalEvent::GoalParked { wait }];
    }
    if goal.contract.is_session()
        && let Some(events) = session_turn(goal, &committed)
    {
        return events;
    }
    if let Some(stop) = blocked_and_unchecked(goal)
        && goal.contract.protect.is_empty()
    {
        return blocked(goal, committed, stop);
    }
    let is_judged = goal.contract.is_verified() || goal.judge_agent().is_some();
    if candidate.files_changed == 0 && !is_judged {
        return end_turn(goal, committed, TurnVerdict::NothingDone);
    }
    let is_checked = goal.contract.is_verified() || !goal.contract.protect.is_empty();
    if !is_checked && let Some(verdict) = unclaimed(goal) {
        return end_turn(goal, committed, verdict);
    }
    vec![committed]
}

/// Returns how a turn of a session ends that nobody claims to be the last: it is a person's own
/// checkout, and nothing is run on it before.
fn session_turn(goal: &Goal, committed: &GoalEvent) -> Option<Vec<GoalEvent>> {
    let verdict = match &goal.claim {
        Some(Claim::Done) => return None,
        Some(Claim::Blocked { reason }) => {
            let stop = Stop::AgentBlocked {
                reason: reason.clone(),
            };
            return Some(blocked(goal, committed.clone(), stop));
        }
        None if goal.is_persons_turn => TurnVerdict::PersonSpoke,
        None if goal.journey.is_worked_off() => TurnVerdict::Unclaimed,
        None => TurnVerdict::Unfinished,
    };
    Some(end_turn(goal, committed.clone(), verdict))
}

/// Returns why a turn whose checks pass is not the last one all the same: a person spoke, or the
/// agent works by a plan and has not claimed the goal.
fn unclaimed(goal: &Goal) -> Option<TurnVerdict> {
    if goal.said.is_some() {
        return Some(TurnVerdict::PersonSpoke);
    }
    if goal.claim == Some(Claim::Done) {
        return None;
    }
    if goal.journey.open_plan().is_some() {
        return Some(TurnVerdict::PlanOpen);
    }
    goal.journey
        .is_worked_off()
        .then_some(TurnVerdict::Unclaimed)
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

fn blocked(goal: &Goal, ended: GoalEvent, stop: Stop) -> Vec<GoalEvent> {
    let turn_ended = GoalEvent::TurnEnded {
        turn: goal.turn,
        verdict: TurnVerdict::AgentBlocked,
    };
    vec![ended, turn_ended, GoalEvent::GoalStopped { stop }]
}

fn verify_events(
    goal: &Goal,
    report: &VerifyReport,
    elapsed_ms: u64,
    now_ms: i64,
) -> Vec<GoalEvent> {
    let ended = GoalEvent::VerifyEnded {
        report: report.clone(),
        elapsed_ms,
    };
    if report.passed() {
        if let Some(events) = objected(goal, report, &ended, now_ms) {
            return events;
        }
        return match (blocked_and_unchecked(goal), unclaimed(goal)) {
            (Some(stop), _) => blocked(goal, ended, stop),
            (None, Some(verdict)) => end_turn(goal, ended, verdict),
            (None, None) => vec![ended],
        };
    }
    if let Some(events) = lacking(goal, report, &ended, now_ms) {
        return events;
    }
    let verdict = failed_verdict(report);
    if let Some(Claim::Blocked { reason }) = &goal.claim {
        let stop = Stop::AgentBlocked {
            reason: reason.clone(),
        };
        let turn_ended = GoalEvent::TurnEnded {
            turn: goal.turn,
            verdict,
        };
        return vec![ended, turn_ended, GoalEvent::GoalStopped { stop }];
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

/// Stops the goal when a limit is used up and it would otherwise go on.
fn with_budget_stop(goal: &Goal, mut events: Vec<GoalEvent>) -> Vec<GoalEvent> {
    let after = folded(goal, &events);
    if after.status != GoalStatus::Active {
        return events;
    }
    // A turn that is about to be proved is let through to its proof: only a new agent run or a
    // judge costs tokens, and only a new agent run is a turn.
    let limit = match after.stage {
        GoalStage::Agent if after.attempt == 1 => after.budget.used_up(&after.spent),
        GoalStage::Setup | GoalStage::Agent | GoalStage::Judge => {
            after.budget.used_up_within_turn(&after.spent)
        }
        GoalStage::Workspace
        | GoalStage::Baseline
        | GoalStage::Commit
        | GoalStage::Verify
        | GoalStage::Publish
        | GoalStage::Distill
        | GoalStage::Ended => None,
    };
    if let Some(limit) = limit {
        events.push(GoalEvent::GoalStopped {
            stop: Stop::BudgetUsedUp { limit },
        });
    }
    events
}

fn wrong_outcome(effect: &EffectId, outcome: &GoalOutcome) -> GoalDenial {
    let kind = match outcome {
        GoalOutcome::Workspace { .. } => "a workspace",
        GoalOutcome::Agent(_) => "an agent run",
        GoalOutcome::Committed(_) => "a commit",
        GoalOutcome::Verified(_) => "a verify report",
        GoalOutcome::Judged(_) => "a judgement",
        GoalOutcome::Published { .. } => "a publication",
        GoalOutcome::Waited => "a wait",
        GoalOutcome::Cancelled { .. } => "a cancellation",
        GoalOutcome::CapReached { .. } => "a cap",
        GoalOutcome::Failed(_) => "a failure",
    };
    GoalDenial::WrongOutcome {
        effect: effect.clone(),
        outcome: kind,
    }
}
