//! The fold: what each event does to the state. Total, and it never fails.
//!
//! No rule is applied here; whatever was recorded is true.

use crate::goal::breaker::Breaker;
use crate::goal::budget::Spent;
use crate::goal::contract::{Contract, JudgeUnavailable};
use crate::goal::event::{Event, Stop, TurnVerdict};
use crate::goal::outcome::{AgentRun, Candidate, JudgeAnswer, JudgeRun, Verdict, VerifyReport};
use crate::goal::state::{Goal, InFlight, Stage, Status};
use crate::id::GoalId;
use crate::usage::Usage;

/// Applies one event.
pub fn evolve(state: &mut Option<Goal>, event: &Event) {
    match (state.as_mut(), event) {
        (
            _,
            Event::GoalCreated {
                id,
                contract,
                contract_hash,
                at_ms,
            },
        ) => {
            *state = Some(created(id, contract, contract_hash, *at_ms));
        }
        (Some(goal), event) => apply(goal, event),
        (None, _) => {}
    }
}

fn created(id: &GoalId, contract: &Contract, contract_hash: &str, at_ms: i64) -> Goal {
    Goal {
        id: id.clone(),
        contract: contract.clone(),
        contract_hash: contract_hash.to_owned(),
        created_at_ms: at_ms,
        approval: None,
        status: Status::Proposed,
        stop: None,
        stage: Stage::Workspace,
        turn: 0,
        attempt: 1,
        failures: 0,
        wait_until_ms: None,
        in_flight: None,
        workspace: None,
        session: None,
        candidate: None,
        agent_end: None,
        claim: None,
        verify: None,
        judge: None,
        last_verdict: None,
        result: None,
        budget: contract.budget,
        spent: Spent::default(),
        breaker: Breaker::default(),
    }
}

fn apply(goal: &mut Goal, event: &Event) {
    charge(goal, &event.usage(), event.elapsed_ms());
    if event.ends_effect() {
        goal.in_flight = None;
    }
    match event {
        Event::GoalCreated { .. } | Event::EffectProgressed { .. } => {}
        Event::ContractApproved { means, .. } => {
            goal.approval = Some(*means);
            goal.status = Status::Active;
        }
        Event::EffectIntended { effect, at_ms } => {
            let (effect, since_ms) = (effect.clone(), *at_ms);
            goal.in_flight = Some(InFlight { effect, since_ms });
        }
        Event::WorkspaceCreated { path, .. } => {
            goal.workspace = Some(path.clone());
            begin_turn(goal, 1);
        }
        Event::AgentEnded { run, .. } => agent_ended(goal, run),
        Event::ProviderFailed { retry_at_ms, .. } => provider_failed(goal, *retry_at_ms),
        Event::WaitEnded => {
            goal.wait_until_ms = None;
            goal.attempt = goal.attempt.saturating_add(1);
        }
        Event::CandidateCommitted { candidate, .. } => committed(goal, candidate),
        Event::VerifyEnded { report, .. } => verified(goal, report),
        Event::JudgeEnded { run, .. } => judged(goal, run),
        Event::JudgeFailed {
            run, retry_at_ms, ..
        } => judge_failed(goal, run, *retry_at_ms),
        Event::TurnEnded { turn, verdict } => turn_ended(goal, *turn, *verdict),
        Event::GoalDone {
            commit, verified, ..
        } => done(goal, commit, *verified),
        Event::GoalStopped { stop } => stopped(goal, stop),
        Event::EffectCancelled { session, .. } => {
            keep_session(goal, session.as_ref());
            goal.attempt = goal.attempt.saturating_add(1);
        }
        Event::GoalResumed => resumed(goal),
        Event::BudgetRaised { raise } => goal.budget.raise(raise),
    }
}

/// Charges what was used; whose account it is follows from the stage.
fn charge(goal: &mut Goal, usage: &Usage, elapsed_ms: u64) {
    match goal.stage {
        Stage::Judge => goal.spent.judge.add(usage),
        Stage::Workspace
        | Stage::Agent
        | Stage::Commit
        | Stage::Verify
        | Stage::Publish
        | Stage::Ended => goal.spent.executor.add(usage),
    }
    goal.spent.wall_ms = goal.spent.wall_ms.saturating_add(elapsed_ms);
}

fn enter(goal: &mut Goal, stage: Stage) {
    goal.stage = stage;
    goal.attempt = 1;
    goal.failures = 0;
}

fn begin_turn(goal: &mut Goal, turn: u32) {
    goal.turn = turn;
    enter(goal, Stage::Agent);
}

fn agent_ended(goal: &mut Goal, run: &AgentRun) {
    goal.agent_end = Some(run.end.clone());
    goal.claim.clone_from(&run.claim);
    keep_session(goal, run.session.as_ref());
    enter(goal, Stage::Commit);
}

/// A run that names no session leaves the one before to be resumed.
fn keep_session(goal: &mut Goal, session: Option<&String>) {
    if let Some(session) = session {
        goal.session = Some(session.clone());
    }
}

fn provider_failed(goal: &mut Goal, retry_at_ms: Option<i64>) {
    goal.failures = goal.failures.saturating_add(1);
    goal.wait_until_ms = retry_at_ms;
}

fn turn_ended(goal: &mut Goal, turn: u32, verdict: TurnVerdict) {
    goal.last_verdict = Some(verdict);
    goal.spent.turns = turn;
    if let Some(candidate) = &goal.candidate {
        goal.breaker.count(&candidate.tree, verdict);
    }
    begin_turn(goal, turn.saturating_add(1));
}

fn done(goal: &mut Goal, commit: &str, verified: bool) {
    goal.spent.turns = goal.turn;
    goal.result = Some(commit.to_owned());
    goal.status = if verified {
        Status::Done
    } else {
        Status::Unverified
    };
    enter(goal, Stage::Ended);
}

fn resumed(goal: &mut Goal) {
    goal.status = Status::Active;
    goal.stop = None;
    goal.wait_until_ms = None;
    goal.attempt = goal.attempt.saturating_add(1);
    goal.failures = 0;
    goal.breaker.reset();
}

fn committed(goal: &mut Goal, candidate: &Candidate) {
    goal.candidate = Some(candidate.clone());
    goal.verify = None;
    goal.judge = None;
    let stage = if goal.contract.is_verified() || !goal.contract.protect.is_empty() {
        Stage::Verify
    } else {
        after_verify(goal)
    };
    enter(goal, stage);
}

fn verified(goal: &mut Goal, report: &VerifyReport) {
    goal.verify = Some(report.clone());
    if report.passed() {
        enter(goal, after_verify(goal));
    }
}

fn after_verify(goal: &Goal) -> Stage {
    if goal.contract.judge_agent().is_some() {
        Stage::Judge
    } else {
        Stage::Publish
    }
}

fn judged(goal: &mut Goal, run: &JudgeRun) {
    goal.judge = Some(run.clone());
    if let JudgeAnswer::Verdict {
        verdict: Verdict::Done,
        ..
    } = run.answer
    {
        enter(goal, Stage::Publish);
    }
}

fn judge_failed(goal: &mut Goal, run: &JudgeRun, retry_at_ms: Option<i64>) {
    goal.judge = Some(run.clone());
    provider_failed(goal, retry_at_ms);
    let is_open = goal.contract.judge_unavailable == JudgeUnavailable::Open;
    if retry_at_ms.is_none() && is_open {
        enter(goal, Stage::Publish);
    }
}

fn stopped(goal: &mut Goal, stop: &Stop) {
    goal.status = stop.status();
    goal.stop = Some(stop.clone());
    goal.wait_until_ms = None;
    if goal.status.is_terminal() {
        goal.stage = Stage::Ended;
    }
}
