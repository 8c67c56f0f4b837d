//! The fold: what each event does to the state. Total, and it never fails.
//!
//! No rule is applied here; whatever was recorded is true.

use crate::goal::breaker::Breaker;
use crate::goal::budget::Spent;
use crate::goal::contract::{Contract, JudgeUnavailable};
use crate::goal::event::{Event, Stop};
use crate::goal::outcome::{AgentRun, Candidate, JudgeAnswer, JudgeRun, Verdict, VerifyReport};
use crate::goal::state::{Goal, InFlight, Stage, Status};
use crate::id::GoalId;
use crate::usage::Usage;

/// Applies one event.
pub fn evolve(state: &mut Option<Goal>, event: &Event) {
    match (state.as_mut(), event) {
        (_, Event::GoalCreated { id, contract, contract_hash, at_ms }) => {
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
    match event {
        Event::GoalCreated { .. } => {}
        Event::ContractApproved { means, .. } => {
            goal.approval = Some(*means);
            goal.status = Status::Active;
        }
        Event::EffectIntended { effect, at_ms } => {
            goal.in_flight = Some(InFlight { effect: effect.clone(), since_ms: *at_ms });
        }
        Event::EffectProgressed { usage, elapsed_ms, .. } => charge(goal, usage, *elapsed_ms),
        Event::WorkspaceCreated { path, elapsed_ms } => {
            land(goal, &Usage::default(), *elapsed_ms);
            goal.workspace = Some(path.clone());
            begin_turn(goal, 1);
        }
        Event::AgentEnded { run, elapsed_ms } => agent_ended(goal, run, *elapsed_ms),
        Event::ProviderFailed { usage, retry_at_ms, elapsed_ms, .. } => {
            land(goal, usage, *elapsed_ms);
            goal.failures = goal.failures.saturating_add(1);
            goal.wait_until_ms = *retry_at_ms;
        }
        Event::WaitEnded => {
            goal.in_flight = None;
            goal.wait_until_ms = None;
            goal.attempt = goal.attempt.saturating_add(1);
        }
        Event::CandidateCommitted { candidate, elapsed_ms } => {
            committed(goal, candidate, *elapsed_ms);
        }
        Event::VerifyEnded { report, elapsed_ms } => verified(goal, report, *elapsed_ms),
        Event::JudgeEnded { run, elapsed_ms } => judged(goal, run, *elapsed_ms),
        Event::JudgeFailed { run, retry_at_ms, elapsed_ms } => {
            judge_failed(goal, run, *retry_at_ms, *elapsed_ms);
        }
        Event::TurnEnded { turn, verdict } => {
            goal.last_verdict = Some(*verdict);
            goal.spent.turns = *turn;
            if let Some(candidate) = &goal.candidate {
                goal.breaker.count(&candidate.tree, *verdict);
            }
            begin_turn(goal, turn.saturating_add(1));
        }
        Event::GoalDone { commit, verified, elapsed_ms } => {
            land(goal, &Usage::default(), *elapsed_ms);
            goal.spent.turns = goal.turn;
            goal.result = Some(commit.clone());
            goal.status = if *verified { Status::Done } else { Status::Unverified };
            enter(goal, Stage::Ended);
        }
        Event::GoalStopped { stop } => stopped(goal, stop),
        Event::EffectCancelled { usage, session, elapsed_ms, .. } => {
            land(goal, usage, *elapsed_ms);
            if session.is_some() {
                goal.session.clone_from(session);
            }
            goal.attempt = goal.attempt.saturating_add(1);
        }
        Event::GoalResumed => {
            goal.status = Status::Active;
            goal.stop = None;
            goal.wait_until_ms = None;
            goal.attempt = goal.attempt.saturating_add(1);
            goal.failures = 0;
            goal.breaker.reset();
        }
        Event::BudgetRaised { raise } => goal.budget.raise(raise, &goal.spent),
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

/// Ends the effect under way.
fn land(goal: &mut Goal, usage: &Usage, elapsed_ms: u64) {
    charge(goal, usage, elapsed_ms);
    goal.in_flight = None;
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

fn agent_ended(goal: &mut Goal, run: &AgentRun, elapsed_ms: u64) {
    land(goal, &run.usage, elapsed_ms);
    goal.claim.clone_from(&run.claim);
    if run.session.is_some() {
        goal.session.clone_from(&run.session);
    }
    enter(goal, Stage::Commit);
}

fn committed(goal: &mut Goal, candidate: &Candidate, elapsed_ms: u64) {
    land(goal, &Usage::default(), elapsed_ms);
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

fn verified(goal: &mut Goal, report: &VerifyReport, elapsed_ms: u64) {
    land(goal, &Usage::default(), elapsed_ms);
    goal.verify = Some(report.clone());
    if report.passed() {
        enter(goal, after_verify(goal));
    }
}

fn after_verify(goal: &Goal) -> Stage {
    if goal.contract.judge_agent().is_some() { Stage::Judge } else { Stage::Publish }
}

fn judged(goal: &mut Goal, run: &JudgeRun, elapsed_ms: u64) {
    land(goal, &run.usage, elapsed_ms);
    goal.judge = Some(run.clone());
    if let JudgeAnswer::Verdict { verdict: Verdict::Done, .. } = run.answer {
        enter(goal, Stage::Publish);
    }
}

fn judge_failed(goal: &mut Goal, run: &JudgeRun, retry_at_ms: Option<i64>, elapsed_ms: u64) {
    land(goal, &run.usage, elapsed_ms);
    goal.judge = Some(run.clone());
    goal.failures = goal.failures.saturating_add(1);
    goal.wait_until_ms = retry_at_ms;
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
