//! `snapshot.json`: the public view of a goal, the only file that status, hooks and tools read.
//!
//! A plain document built from the state. Fields are only ever added.

use kapi_check::rules::proof::verify_report::first_failure;
use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::budget::{Budget, GoalUsage};
use crate::rules::event::{Stop, TurnVerdict};
use crate::rules::plan::task::{PlanTaskId, TaskPhase};
use crate::rules::plan::{Plan, TaskCounts};
use crate::rules::state::{Goal, GoalStage, GoalStatus};
use crate::rules::wait::WaitFor;
use crate::rules::words;

/// The layout of `snapshot.json`.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The public view of a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalSnapshot {
    /// The layout of this document.
    pub v: u32,
    /// The number of the last event it includes.
    pub seq: u64,
    /// The goal.
    pub id: GoalId,
    /// Always `goal`.
    pub mode: String,
    /// What it does next, while it is active.
    pub phase: GoalStage,
    /// The effect under way, if one is.
    pub subphase: Option<String>,
    /// Where it stands.
    pub status: GoalStatus,
    /// What waits for a person.
    pub pending_decision: Option<GoalPendingDecision>,
    /// Why it stands there, in one sentence.
    pub reason: Option<String>,
    /// What it is for, in the person's words.
    pub intent: String,
    /// How far it has come.
    pub progress: GoalProgress,
    /// What a person can type next, most useful first.
    pub next_commands: Vec<String>,
    /// The limits now.
    pub budget: Budget,
    /// What was used.
    pub spent: GoalUsage,
    /// The branch that receives the proved commit.
    pub branch: String,
    /// The worktree, once there is one.
    pub worktree: Option<String>,
    /// The commit that was proved or accepted.
    pub commit: Option<String>,
    /// The work so far as a commit, proved or not.
    pub candidate: Option<String>,
    /// Goals and workflows this one came from or led to.
    pub links: Vec<String>,
}

/// What a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalPendingDecision {
    /// Whether the contract holds.
    ApproveContract,
    /// Whether it may use more.
    RaiseBudget,
    /// Whether it goes on, after something outside was mended.
    ResumeGoal,
    /// Whether what it was asked about is allowed.
    GiveConsent,
    /// What the answer to its question is.
    AnswerQuestion,
}

/// How far a goal has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalProgress {
    /// The turn under way or last ended, from 1; 0 before the first.
    pub turn: u32,
    /// The most turns there are.
    pub turns_max: u32,
    /// The attempt at the phase, from 1.
    pub attempt: u32,
    /// Until when it waits, in milliseconds since the epoch.
    pub wait_until_ms: Option<i64>,
    /// Why the last turn was not done.
    pub last_verdict: Option<TurnVerdict>,
    /// What made the last verification fail.
    pub failure: Option<String>,
    /// What it is parked on, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The phase the agent says it is in.
    #[serde(default)]
    pub phase: TaskPhase,
    /// How many tasks of the agent's plan stand where, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskCounts>,
    /// The task at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_task: Option<PlanTaskId>,
}

impl GoalSnapshot {
    /// Builds the view of a goal after the event of this number.
    #[must_use]
    pub fn of(goal: &Goal, seq: u64) -> Self {
        Self {
            v: SNAPSHOT_VERSION,
            seq,
            id: goal.id.clone(),
            mode: "goal".to_owned(),
            phase: goal.stage,
            subphase: goal
                .in_flight
                .as_ref()
                .map(|in_flight| in_flight.effect.to_string()),
            status: goal.status,
            pending_decision: pending_decision(goal),
            reason: words::reason(goal),
            intent: goal.contract.intent.clone(),
            progress: GoalProgress {
                turn: goal.turn,
                turns_max: goal.budget.turns,
                attempt: goal.attempt,
                wait_until_ms: goal.wait_until_ms,
                last_verdict: goal.last_verdict,
                failure: goal.verify.as_ref().and_then(first_failure),
                waiting_for: goal
                    .wait
                    .as_ref()
                    .map(|wait| words::wait_words(&wait.until)),
                phase: goal.journey.phase,
                tasks: goal.journey.plan.as_ref().map(Plan::counts),
                current_task: current_task(goal),
            },
            next_commands: words::next_commands(goal),
            budget: goal.budget,
            spent: goal.spent,
            branch: goal.contract.branch.clone(),
            worktree: goal.workspace.clone(),
            commit: goal.result.clone(),
            candidate: goal
                .candidate
                .as_ref()
                .map(|candidate| candidate.commit.clone()),
            links: Vec::new(),
        }
    }
}

fn current_task(goal: &Goal) -> Option<PlanTaskId> {
    let plan = goal.journey.plan.as_ref()?;
    plan.current().map(|task| task.id.clone())
}

fn pending_decision(goal: &Goal) -> Option<GoalPendingDecision> {
    match goal.status {
        GoalStatus::Proposed => Some(GoalPendingDecision::ApproveContract),
        GoalStatus::Paused => match goal.stop {
            Some(Stop::BudgetUsedUp { .. }) => Some(GoalPendingDecision::RaiseBudget),
            Some(_) | None => Some(GoalPendingDecision::ResumeGoal),
        },
        GoalStatus::Blocked | GoalStatus::Stalled => Some(match goal.stop {
            Some(Stop::ConsentNeeded { .. }) => GoalPendingDecision::GiveConsent,
            Some(Stop::AgentBlocked { .. }) => GoalPendingDecision::AnswerQuestion,
            Some(_) | None => GoalPendingDecision::ResumeGoal,
        }),
        GoalStatus::Waiting if waits_for_person(goal) => Some(GoalPendingDecision::GiveConsent),
        GoalStatus::Setup
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Impossible
        | GoalStatus::Cancelled
        | GoalStatus::Unverified
        | GoalStatus::Done => None,
    }
}

fn waits_for_person(goal: &Goal) -> bool {
    let wait = goal.wait.as_ref();
    wait.is_some_and(|wait| matches!(wait.until, WaitFor::Approval { .. }))
}
