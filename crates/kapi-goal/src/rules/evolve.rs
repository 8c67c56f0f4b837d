//! The fold: what each event does to the state. Total, and it never fails.
//!
//! No rule is applied here; whatever was recorded is true.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim};
use kapi_core::id::{EffectId, GoalId};
use kapi_core::judge::JudgeUnavailable;
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};

use crate::rules::breaker;
use crate::rules::breaker::Breaker;
use crate::rules::budget::GoalUsage;
use crate::rules::consent::Consent;
use crate::rules::contract::{Contract, Distillation};
use crate::rules::event::{ApprovalMeans, GoalEvent, Stop, TurnVerdict};
use crate::rules::journey::{Journey, ProgressNote, TurnDeclaration};
use crate::rules::outcome::GoalCandidate;
use crate::rules::plan::Plan;
use crate::rules::plan::delta::PlanDelta;
use crate::rules::plan::task::TaskPhase;
use crate::rules::state::{CrashedTurns, Goal, GoalStage, GoalStatus, InFlight};
use crate::rules::wait::{GoalWait, WaitFor};

/// Applies one event.
pub fn evolve(state: &mut Option<Goal>, event: &GoalEvent) {
    match (state.as_mut(), event) {
        (
            _,
            GoalEvent::GoalCreated {
                id,
                contract,
                contract_hash,
                at_ms,
                setup,
            },
        ) => {
            let mut goal = created(id, contract, contract_hash, *at_ms);
            if *setup {
                goal.status = GoalStatus::Setup;
                goal.stage = GoalStage::Setup;
            }
            *state = Some(goal);
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
        status: GoalStatus::Proposed,
        stop: None,
        stage: GoalStage::Workspace,
        turn: 0,
        attempt: 1,
        failures: 0,
        wait_until_ms: None,
        in_flight: None,
        workspace: None,
        session: None,
        baseline: None,
        candidate: None,
        agent_end: None,
        crashed: CrashedTurns::default(),
        claim: None,
        verify: None,
        judge: None,
        changed_judge: None,
        last_verdict: None,
        result: None,
        budget: contract.budget,
        spent: GoalUsage::default(),
        breaker: Breaker::default(),
        journey: Journey {
            phase: contract.working.start_phase,
            ..Journey::default()
        },
        consent: Consent::default(),
        said: None,
        said_reported: 0,
        is_persons_turn: false,
        score: None,
        is_unchanged: false,
        wait: None,
        waits: 0,
    }
}

fn apply(goal: &mut Goal, event: &GoalEvent) {
    skip_baseline_of_old_logs(goal, event);
    charge(goal, &event.usage(), event.elapsed_ms());
    if event.ends_effect() {
        goal.in_flight = None;
    }
    match event {
        GoalEvent::GoalCreated { .. }
        | GoalEvent::EffectProgressed { .. }
        | GoalEvent::RunRecorded { .. } => {}
        GoalEvent::ContractDrafted {
            contract,
            contract_hash,
        } => drafted(goal, contract, contract_hash),
        GoalEvent::ContractApproved { means, .. } => approved(goal, *means),
        GoalEvent::SetupEnded { .. } => goal.attempt = goal.attempt.saturating_add(1),
        GoalEvent::EffectIntended { effect, at_ms } => intended(goal, effect, *at_ms),
        GoalEvent::WorkspaceCreated { path, .. } => {
            goal.workspace = Some(path.clone());
            if goal.contract.is_verified() && goal.baseline.is_none() {
                enter(goal, GoalStage::Baseline);
            } else {
                begin_turn(goal, goal.spent.turns.saturating_add(1));
            }
        }
        GoalEvent::BaselineEnded { report, .. } => {
            goal.baseline = Some(report.clone());
            begin_turn(goal, goal.spent.turns.saturating_add(1));
        }
        GoalEvent::AgentEnded { run, .. } => agent_ended(goal, run),
        GoalEvent::ProviderFailed { retry_at_ms, .. } => provider_failed(goal, *retry_at_ms),
        GoalEvent::WaitEnded => {
            goal.wait_until_ms = None;
            goal.attempt = goal.attempt.saturating_add(1);
        }
        GoalEvent::CandidateCommitted { candidate, .. } => committed(goal, candidate),
        GoalEvent::VerifyEnded { report, .. } => verified(goal, report),
        GoalEvent::JudgeEnded { run, .. } => judged(goal, run),
        GoalEvent::JudgeFailed {
            run, retry_at_ms, ..
        } => judge_failed(goal, run, *retry_at_ms),
        GoalEvent::TurnEnded { turn, verdict } => turn_ended(goal, *turn, *verdict),
        GoalEvent::GoalDone {
            commit, verified, ..
        } => done(goal, commit, *verified),
        GoalEvent::GoalStopped { stop } => stopped(goal, stop),
        GoalEvent::EffectCancelled { session, .. } => {
            goal.journey.declared = None;
            keep_session(goal, session.as_ref());
            goal.attempt = goal.attempt.saturating_add(1);
        }
        GoalEvent::GoalResumed => resumed(goal),
        GoalEvent::BudgetRaised { raise } => goal.budget.raise(raise),
        GoalEvent::TurnsSet { turns } => goal.budget.turns = *turns,
        GoalEvent::JudgeChanged { judge } => judge_changed(goal, judge),
        GoalEvent::GoalReopened { reason } => reopened(goal, reason),
        GoalEvent::PersonSaid { text } => heard(goal, text),
        GoalEvent::GoalParked { wait } => parked(goal, wait),
        GoalEvent::GoalWoken { .. } => woken(goal),
        GoalEvent::DistillEnded { .. } | GoalEvent::DistillSkipped => enter(goal, GoalStage::Ended),
        GoalEvent::PlanMade { delta }
        | GoalEvent::Replanned { delta }
        | GoalEvent::TaskUpdated { delta, .. } => planned(goal, delta),
        GoalEvent::ProgressNoted { note, phase, at_ms } => noted(goal, note, *phase, *at_ms),
        GoalEvent::TurnDeclared { declared } => goal.journey.declared = Some(declared.clone()),
        GoalEvent::JourneyDistilled { markdown } => goal.journey.distilled = Some(markdown.clone()),
        GoalEvent::ConsentAsked { asked } => goal.consent.refused(asked.clone()),
        GoalEvent::ConsentGiven { what } => allowed(goal, what),
        GoalEvent::SideQuestionAnswered { .. } => {}
    }
}

/// Logs from before there was a baseline go from the workspace straight to the agent.
fn skip_baseline_of_old_logs(goal: &mut Goal, event: &GoalEvent) {
    if let GoalEvent::EffectIntended { effect, .. } = event
        && goal.stage == GoalStage::Baseline
        && *effect != goal.stage_effect()
    {
        begin_turn(goal, goal.spent.turns.saturating_add(1));
    }
}

fn planned(goal: &mut Goal, delta: &PlanDelta) {
    let journey = &mut goal.journey;
    let plan = delta.apply(journey.plan.as_ref());
    let ended = |plan: &Plan| plan.counts().done;
    journey.has_moved |= journey.plan.as_ref().map_or(0, ended) < ended(&plan);
    journey.phase = plan.phase().unwrap_or(journey.phase);
    journey.plan = Some(plan);
}

fn noted(goal: &mut Goal, note: &str, phase: Option<TaskPhase>, at_ms: i64) {
    let (turn, text) = (goal.turn, note.to_owned());
    goal.journey.phase = phase.unwrap_or(goal.journey.phase);
    goal.journey.note(ProgressNote { at_ms, turn, text });
}

fn approved(goal: &mut Goal, means: ApprovalMeans) {
    goal.approval = Some(means);
    goal.status = GoalStatus::Active;
    enter(goal, GoalStage::Workspace);
}

fn drafted(goal: &mut Goal, contract: &Contract, contract_hash: &str) {
    goal.contract = contract.clone();
    contract_hash.clone_into(&mut goal.contract_hash);
    goal.budget = contract.budget;
    goal.journey.phase = contract.working.start_phase;
    goal.status = GoalStatus::Proposed;
    goal.stop = None;
}

/// A person's words wait for the next turn; one that is under way is begun anew with them.
fn heard(goal: &mut Goal, text: &str) {
    match &mut goal.said {
        Some(said) => {
            said.push_str("\n\n");
            said.push_str(text);
        }
        None => goal.said = Some(text.to_owned()),
    }
    if goal.stage == GoalStage::Agent && goal.in_flight.is_some() {
        goal.journey.declared = None;
        goal.attempt = goal.attempt.saturating_add(1);
    }
}

fn reopened(goal: &mut Goal, reason: &str) {
    goal.journey.distilled = None;
    goal.journey.declared = None;
    goal.status = GoalStatus::Active;
    goal.stop = None;
    goal.said = Some(format!("The result was rejected: {reason}"));
    goal.breaker.reset();
    forget_reminders(goal);
    enter(goal, GoalStage::Workspace);
}

fn parked(goal: &mut Goal, wait: &GoalWait) {
    goal.status = GoalStatus::Waiting;
    goal.stop = None;
    goal.wait_until_ms = None;
    goal.waits = wait.number;
    goal.wait = Some(wait.clone());
    if !matches!(wait.until, WaitFor::Quota { .. } | WaitFor::Judge { .. }) {
        goal.failures = 0;
        goal.breaker.reset();
    }
}

fn woken(goal: &mut Goal) {
    goal.status = GoalStatus::Active;
    goal.stop = None;
    goal.wait = None;
    goal.attempt = goal.attempt.saturating_add(1);
}

fn intended(goal: &mut Goal, effect: &EffectId, since_ms: i64) {
    let effect = effect.clone();
    goal.in_flight = Some(InFlight { effect, since_ms });
    let is_reported = goal.stage == GoalStage::Agent;
    let said = goal.said.as_ref().filter(|_| is_reported);
    goal.said_reported = said.map_or(0, String::len);
}

/// Forgets what a person said as far as a run was told it and ended well.
fn reported(goal: &mut Goal, end: &AgentEnd) {
    let n_reported = std::mem::take(&mut goal.said_reported);
    goal.is_persons_turn = n_reported > 0;
    let Some(said) = goal.said.take() else { return };
    let rest = if is_sound(end) {
        said.get(n_reported..).unwrap_or_default().trim_start()
    } else {
        &said
    };
    goal.said = (!rest.is_empty()).then(|| rest.to_owned());
}

/// Charges what was used; whose account it is follows from the stage.
fn charge(goal: &mut Goal, usage: &Usage, elapsed_ms: u64) {
    match goal.stage {
        GoalStage::Judge => goal.spent.judge.add(usage),
        GoalStage::Setup
        | GoalStage::Workspace
        | GoalStage::Baseline
        | GoalStage::Agent
        | GoalStage::Distill
        | GoalStage::Commit
        | GoalStage::Verify
        | GoalStage::Publish
        | GoalStage::Ended => goal.spent.executor.add(usage),
    }
    goal.spent.wall_ms = goal.spent.wall_ms.saturating_add(elapsed_ms);
}

fn enter(goal: &mut Goal, stage: GoalStage) {
    goal.stage = stage;
    goal.attempt = 1;
    goal.failures = 0;
}

fn begin_turn(goal: &mut Goal, turn: u32) {
    goal.turn = turn;
    goal.journey.declared = None;
    goal.consent.refused_in_turn = 0;
    enter(goal, GoalStage::Agent);
}

fn agent_ended(goal: &mut Goal, run: &AgentRun) {
    goal.crashed = crashed_turns(goal, run);
    goal.agent_end = Some(run.end.clone());
    // What was declared by a tool outweighs what was read from the agent's words.
    goal.claim = match &goal.journey.declared {
        Some(TurnDeclaration::Complete { .. }) => Some(Claim::Done),
        Some(TurnDeclaration::Blocked { question, reason }) => Some(Claim::Blocked {
            reason: format!("{question} ({reason})"),
        }),
        Some(TurnDeclaration::Wait { .. }) | None => run.claim.clone(),
    };
    goal.score = run.score;
    reported(goal, &run.end);
    keep_session(goal, run.session.as_ref());
    enter(goal, GoalStage::Commit);
}

fn crashed_turns(goal: &Goal, run: &AgentRun) -> CrashedTurns {
    if is_sound(&run.end) {
        return CrashedTurns::default();
    }
    let is_again = goal.agent_end.as_ref() == Some(&run.end);
    let before = if is_again { goal.crashed.count } else { 0 };
    CrashedTurns {
        count: before.saturating_add(1),
        last_words: run.message.clone(),
    }
}

/// Tells whether the agent's program was not broken off.
const fn is_sound(end: &AgentEnd) -> bool {
    !matches!(
        end,
        AgentEnd::Crashed { .. } | AgentEnd::OutOfResources { .. }
    )
}

/// A run that names no session leaves the one before to be resumed.
fn keep_session(goal: &mut Goal, session: Option<&String>) {
    if let Some(session) = session {
        goal.session = Some(session.clone());
    }
}

fn provider_failed(goal: &mut Goal, retry_at_ms: Option<i64>) {
    goal.journey.declared = None;
    goal.failures = goal.failures.saturating_add(1);
    goal.wait_until_ms = retry_at_ms;
}

fn turn_ended(goal: &mut Goal, turn: u32, verdict: TurnVerdict) {
    goal.last_verdict = Some(verdict);
    goal.spent.turns = turn;
    if verdict == TurnVerdict::Unclaimed {
        goal.journey.plan = goal.journey.plan.as_ref().map(Plan::prompted);
    }
    if verdict.is_counted() && !goal.is_persons_turn {
        count_turn(goal, verdict);
    }
    begin_turn(goal, turn.saturating_add(1));
}

fn count_turn(goal: &mut Goal, verdict: TurnVerdict) {
    let failure = goal.verify.as_ref().and_then(breaker::fingerprint);
    let has_moved = std::mem::take(&mut goal.journey.has_moved);
    if let Some(candidate) = &goal.candidate {
        goal.breaker
            .count(&candidate.tree, verdict, failure, has_moved);
    }
}

fn done(goal: &mut Goal, commit: &str, verified: bool) {
    goal.spent.turns = goal.turn;
    goal.result = Some(commit.to_owned());
    goal.status = if verified {
        GoalStatus::Done
    } else {
        GoalStatus::Unverified
    };
    let distills = goal.contract.working.distill == Distillation::WhenPlanned
        && goal.journey.plan.is_some()
        && goal.journey.distilled.is_none()
        && goal.budget.used_up_within_turn(&goal.spent).is_none();
    enter(
        goal,
        if distills {
            GoalStage::Distill
        } else {
            GoalStage::Ended
        },
    );
}

fn resumed(goal: &mut Goal) {
    if let Some(Stop::ChecksCannotRun { .. }) = goal.stop {
        // What stood in the way may be mended now.
        goal.baseline = None;
        enter(goal, GoalStage::Baseline);
    }
    // A goal whose contract nobody approved goes on being drafted, and nothing else.
    goal.status = if goal.approval.is_some() {
        GoalStatus::Active
    } else {
        GoalStatus::Setup
    };
    goal.stop = None;
    goal.wait = None;
    goal.wait_until_ms = None;
    goal.attempt = goal.attempt.saturating_add(1);
    goal.failures = 0;
    forget_reminders(goal);
    goal.breaker.reset();
}

fn forget_reminders(goal: &mut Goal) {
    goal.journey.plan = goal.journey.plan.as_ref().map(Plan::resumed);
}

fn committed(goal: &mut Goal, candidate: &GoalCandidate) {
    goal.is_unchanged = goal.turn_start_tree() == candidate.tree;
    goal.candidate = Some(candidate.clone());
    goal.verify = None;
    goal.judge = None;
    let stage = if goal.contract.is_verified() || !goal.contract.protect.is_empty() {
        GoalStage::Verify
    } else {
        after_verify(goal)
    };
    enter(goal, stage);
}

fn verified(goal: &mut Goal, report: &VerifyReport) {
    goal.verify = Some(report.clone());
    if goal.accepts(report) {
        enter(goal, after_verify(goal));
    }
}

/// What stood against the checks may be what was allowed: then nothing has to be run again.
fn allowed(goal: &mut Goal, what: &str) {
    goal.consent.allow(what);
    let is_accepted = |report: &VerifyReport| goal.accepts(report);
    if goal.stage == GoalStage::Verify && goal.verify.as_ref().is_some_and(is_accepted) {
        enter(goal, after_verify(goal));
    }
}

fn after_verify(goal: &Goal) -> GoalStage {
    if goal.judge_agent().is_some() {
        GoalStage::Judge
    } else {
        GoalStage::Publish
    }
}

fn judged(goal: &mut Goal, run: &JudgeRun) {
    goal.judge = Some(run.clone());
    if let JudgeAnswer::Verdict {
        verdict: JudgeVerdict::Done,
        ..
    } = run.answer
    {
        enter(goal, GoalStage::Publish);
    }
}

/// The failures of the judge before are not held against the next one, and what that one still says
/// is not waited for.
fn judge_changed(goal: &mut Goal, judge: &str) {
    goal.changed_judge = Some(judge.to_owned());
    if goal.stage == GoalStage::Judge {
        goal.judge = None;
        goal.failures = 0;
        goal.wait_until_ms = None;
        goal.attempt = goal.attempt.saturating_add(1);
    }
}

fn judge_failed(goal: &mut Goal, run: &JudgeRun, retry_at_ms: Option<i64>) {
    goal.judge = Some(run.clone());
    provider_failed(goal, retry_at_ms);
    let is_open = goal.contract.judge_unavailable == JudgeUnavailable::Open;
    if retry_at_ms.is_none() && is_open {
        enter(goal, GoalStage::Publish);
    }
}

fn stopped(goal: &mut Goal, stop: &Stop) {
    goal.status = stop.status();
    goal.stop = Some(stop.clone());
    goal.wait = None;
    goal.wait_until_ms = None;
    if goal.status.is_terminal() {
        goal.stage = GoalStage::Ended;
    }
}
