//! A goal as the fold of its events.
//!
//! Its size does not grow with the number of turns, so that loading it does not either.

use std::fmt;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::agent_end::{AgentEnd, Claim};
use kapi_core::id::{EffectId, GoalId};
use kapi_core::verdict::JudgeRun;
use serde::{Deserialize, Serialize};

use crate::rules::breaker::Breaker;
use crate::rules::budget::{Budget, BudgetLimit, GoalUsage};
use crate::rules::consent::Consent;
use crate::rules::contract::Contract;
use crate::rules::event::{ApprovalMeans, Stop, TurnVerdict};
use crate::rules::journey::Journey;
use crate::rules::outcome::GoalCandidate;
use crate::rules::wait::{GoalWait, WaitFor};

/// The fold of a goal's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Its id.
    pub id: GoalId,
    /// What it is held to.
    pub contract: Contract,
    /// SHA-256 of the contract's canonical JSON.
    pub contract_hash: String,
    /// When it was proposed, in milliseconds since the epoch.
    pub created_at_ms: i64,
    /// How the contract was approved, once it was.
    pub approval: Option<ApprovalMeans>,
    /// Where it stands.
    pub status: GoalStatus,
    /// Why it stopped, while it is stopped.
    pub stop: Option<Stop>,
    /// What it does next, while it is active.
    pub stage: GoalStage,
    /// The turn under way or last ended, from 1; 0 before the first.
    pub turn: u32,
    /// The attempt at the stage, from 1.
    pub attempt: u32,
    /// Failures of a provider in a row at this stage.
    pub failures: u32,
    /// The wait before the next attempt.
    pub wait_until_ms: Option<i64>,
    /// The effect that was intended and has not ended.
    pub in_flight: Option<InFlight>,
    /// Where the worktree is.
    pub workspace: Option<String>,
    /// The agent's session, to be resumed next turn.
    pub session: Option<String>,
    /// What the verify commands showed on the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<VerifyReport>,
    /// The work so far as one commit.
    pub candidate: Option<GoalCandidate>,
    /// How the agent's last turn ended.
    pub agent_end: Option<AgentEnd>,
    /// The turns up to the last one that the agent's program ended alike, and badly.
    #[serde(default, skip_serializing_if = "CrashedTurns::is_none")]
    pub crashed: CrashedTurns,
    /// What the agent said last.
    pub claim: Option<Claim>,
    /// The last verify.
    pub verify: Option<VerifyReport>,
    /// The last judge's answer.
    pub judge: Option<JudgeRun>,
    /// The judge that a person named after the approval, in place of the contract's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_judge: Option<String>,
    /// How the last turn ended, if it was not done.
    pub last_verdict: Option<TurnVerdict>,
    /// The commit that was proved or accepted.
    pub result: Option<String>,
    /// The limits now.
    pub budget: Budget,
    /// What was used.
    pub spent: GoalUsage,
    /// What the no-progress breaker has seen since the last resume.
    pub breaker: Breaker,
    /// What the agent recorded of its work.
    pub journey: Journey,
    /// What a person was asked about first, and what they allowed.
    pub consent: Consent,
    /// What a person said and the agent has not heard yet.
    pub said: Option<String>,
    /// How many bytes of it stood in the prompt of the run under way.
    #[serde(rename = "said_told")]
    pub said_reported: usize,
    /// Whether a person spoke in the turn under way or last ended.
    pub is_persons_turn: bool,
    /// What the agent's last run did, counted (pi-until-done: progress signals); `None` where its
    /// tools cannot be seen.
    pub score: Option<u32>,
    /// Whether the last turn ended in the tree it began with.
    pub is_unchanged: bool,
    /// What it waits for, while it is parked.
    pub wait: Option<GoalWait>,
    /// How often it was parked.
    pub waits: u32,
}

/// Turns in a row that the agent's program ended alike, before it ended its turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashedTurns {
    /// How many.
    pub count: u32,
    /// The last that was said in them, capped.
    pub last_words: String,
}

impl CrashedTurns {
    /// Tells whether the last turn was ended by the agent.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.count == 0
    }
}

/// An effect between its intent and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InFlight {
    /// Its id.
    pub effect: EffectId,
    /// When it was intended, in milliseconds since the epoch.
    pub since_ms: i64,
}

/// Where a goal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// Its contract is being drafted.
    Setup,
    /// Its contract waits for approval.
    Proposed,
    /// It goes on by itself whenever somebody drives it.
    Active,
    /// It is parked until a condition holds; whoever watches wakes it.
    Waiting,
    /// Something outside must change first.
    Blocked,
    /// It made no progress.
    Stalled,
    /// A limit or a person stopped it.
    Paused,
    /// A judge found that the criteria cannot be met.
    Impossible,
    /// A person ended it.
    Cancelled,
    /// Accepted without a verify command.
    Unverified,
    /// Proved.
    Done,
}

impl GoalStatus {
    /// Tells whether nothing can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Impossible | Self::Cancelled | Self::Unverified | Self::Done
        )
    }

    /// Returns the status as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Proposed => "proposed",
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Stalled => "stalled",
            Self::Paused => "paused",
            Self::Impossible => "impossible",
            Self::Cancelled => "cancelled",
            Self::Unverified => "unverified",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for GoalStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The next thing an active goal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStage {
    /// Let the agent draft the contract.
    Setup,
    /// Make the worktree and branch.
    Workspace,
    /// Run the verify commands on the base, before anything is spent.
    Baseline,
    /// Let the agent work.
    Agent,
    /// Record the workspace as a commit.
    Commit,
    /// Run the verify commands on a clean checkout of it.
    Verify,
    /// Ask the judge.
    Judge,
    /// Move the branch to the proved commit.
    Publish,
    /// Let the agent say what was learnt, once the goal is done.
    Distill,
    /// Nothing.
    Ended,
}

impl GoalStage {
    /// Returns the stage's name, as it stands in effect ids.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Workspace => "workspace",
            Self::Baseline => "baseline",
            Self::Agent => "agent",
            Self::Commit => "commit",
            Self::Verify => "verify",
            Self::Judge => "judge",
            Self::Publish => "publish",
            Self::Distill => "distill",
            Self::Ended => "ended",
        }
    }
}

impl Stop {
    /// Returns the status this stop leads to.
    #[must_use]
    pub const fn status(&self) -> GoalStatus {
        match self {
            Self::BudgetUsedUp { .. }
            | Self::Interrupted
            | Self::CapReached { .. }
            | Self::CleanEnd { .. } => GoalStatus::Paused,
            Self::NoProgress { .. } | Self::SameFailure { .. } => GoalStatus::Stalled,
            Self::AgentBlocked { .. }
            | Self::SpinGuard
            | Self::ConsentNeeded { .. }
            | Self::NotDrafted { .. }
            | Self::ChecksCannotRun { .. }
            | Self::JudgeBlocked { .. }
            | Self::JudgeUnavailable { .. }
            | Self::ProviderUnavailable { .. }
            | Self::WorldFailed { .. } => GoalStatus::Blocked,
            Self::Impossible { .. } => GoalStatus::Impossible,
            Self::Cancelled { .. } => GoalStatus::Cancelled,
        }
    }
}

impl Goal {
    /// Tells whether something is under way or due: the work itself, the drafting of its
    /// contract, or the account of a goal that is done.
    #[must_use]
    pub const fn is_driven(&self) -> bool {
        match self.status {
            GoalStatus::Active | GoalStatus::Setup => true,
            GoalStatus::Done | GoalStatus::Unverified => matches!(self.stage, GoalStage::Distill),
            GoalStatus::Proposed
            | GoalStatus::Waiting
            | GoalStatus::Blocked
            | GoalStatus::Stalled
            | GoalStatus::Paused
            | GoalStatus::Impossible
            | GoalStatus::Cancelled => false,
        }
    }

    /// Tells whether its limits can still be changed: a result that is not accepted needs room.
    #[must_use]
    pub const fn takes_budget(&self) -> bool {
        !matches!(self.status, GoalStatus::Impossible | GoalStatus::Cancelled)
    }

    /// Returns who judges, if anyone does: whom a person named last, or the contract's judge.
    #[must_use]
    pub fn judge_agent(&self) -> Option<&str> {
        let changed = self.changed_judge.as_deref();
        changed.or_else(|| self.contract.judge_agent())
    }

    /// Tells whether the executor's own model judges.
    #[must_use]
    pub fn judges_itself(&self) -> bool {
        self.judge_agent() == Some(&self.contract.agent)
    }

    /// Tells whether it waits for its judge alone: nobody has judged, and none could be asked.
    #[must_use]
    pub fn lacks_a_judge(&self) -> bool {
        if self.stage != GoalStage::Judge {
            return false;
        }
        match (
            self.status,
            &self.stop,
            self.wait.as_ref().map(|wait| &wait.until),
        ) {
            (
                GoalStatus::Blocked,
                Some(Stop::JudgeUnavailable { .. } | Stop::WorldFailed { .. }),
                _,
            ) => true,
            (GoalStatus::Waiting, _, Some(WaitFor::Judge { .. })) => true,
            (_, _, _) => false,
        }
    }

    /// Tells whether it is parked until a person allows something.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        let is_approval = |wait: &GoalWait| matches!(wait.until, WaitFor::Approval { .. });
        self.wait.as_ref().is_some_and(is_approval)
    }

    /// Returns the name of the run that performs an effect of this goal.
    #[must_use]
    pub fn run_name(&self, effect: &EffectId) -> String {
        format!("{}-{effect}", self.id)
    }

    /// Returns the commit the branch points at while it has not been moved to a new result.
    #[must_use]
    pub fn published(&self) -> &str {
        self.result.as_deref().unwrap_or(&self.contract.base.commit)
    }

    /// Returns the id of the effect its stage calls for now.
    #[must_use]
    pub fn stage_effect(&self) -> EffectId {
        EffectId::new(self.turn, self.stage.as_str(), self.attempt)
    }

    /// Returns the id of the wait before the next attempt.
    #[must_use]
    pub fn wait_effect(&self) -> EffectId {
        EffectId::new(
            self.turn,
            &format!("{}-wait", self.stage.as_str()),
            self.attempt,
        )
    }

    /// Returns the limit that ends the effect under way, if one is used up.
    #[must_use]
    pub fn limit_within_turn(&self) -> Option<BudgetLimit> {
        self.limit_within_turn_at(&self.spent)
    }

    /// Returns the limit that would end the effect under way if this much were spent.
    ///
    /// Only an agent or a judge costs tokens: what is left of a turn that has its work done is
    /// let through to its proof, as long as there is time.
    #[must_use]
    pub fn limit_within_turn_at(&self, spent: &GoalUsage) -> Option<BudgetLimit> {
        match self.stage {
            GoalStage::Setup | GoalStage::Agent | GoalStage::Judge | GoalStage::Distill => {
                self.budget.used_up_within_turn(spent)
            }
            GoalStage::Workspace
            | GoalStage::Baseline
            | GoalStage::Commit
            | GoalStage::Verify
            | GoalStage::Publish
            | GoalStage::Ended => {
                (self.budget.wall_left_ms(spent) == Some(0)).then_some(BudgetLimit::Wall)
            }
        }
    }

    /// Returns the commit the turn under way began with.
    #[must_use]
    pub fn turn_start_commit(&self) -> &str {
        let base = &self.contract.base.commit;
        self.candidate
            .as_ref()
            .map_or(base, |candidate| &candidate.commit)
    }

    /// Returns the tree the turn under way began with.
    #[must_use]
    pub fn turn_start_tree(&self) -> &str {
        self.candidate
            .as_ref()
            .map_or(&self.contract.base.tree, |candidate| &candidate.tree)
    }
}
