//! Every fact that can stand in a goal's log.
//!
//! Tags are explicit and stable; a variant is only ever added. The envelope (sequence, time,
//! actor, hash) belongs to the store.

use serde::{Deserialize, Serialize};

use crate::goal::budget::{Limit, Raise};
use crate::goal::contract::Contract;
use crate::goal::outcome::{AgentRun, Candidate, Failure, JudgeRun, ProviderFailure, VerifyReport};
use crate::id::{EffectId, GoalId};
use crate::usage::Usage;

/// A recorded fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum Event {
    /// A contract was proposed.
    GoalCreated {
        /// The goal's id.
        id: GoalId,
        /// The contract.
        contract: Box<Contract>,
        /// SHA-256 of the contract's canonical JSON.
        contract_hash: String,
        /// Milliseconds since the epoch.
        at_ms: i64,
    },
    /// A person approved the contract with this hash.
    ContractApproved {
        /// The hash that was approved.
        contract_hash: String,
        /// How the approval was given.
        means: ApprovalMeans,
    },
    /// An effect is about to be performed.
    EffectIntended {
        /// Its id.
        effect: EffectId,
        /// Milliseconds since the epoch.
        at_ms: i64,
    },
    /// A running effect used something.
    EffectProgressed {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The worktree and branch exist.
    WorkspaceCreated {
        /// Where the worktree is.
        path: String,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// An agent's turn is over.
    AgentEnded {
        /// How it went.
        run: AgentRun,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The provider of executor or judge failed; the effect is tried again after `retry_at_ms`.
    ProviderFailed {
        /// What failed.
        failure: ProviderFailure,
        /// Used all the same.
        usage: Usage,
        /// When it is tried again, in milliseconds since the epoch; `None` if it is not.
        retry_at_ms: Option<i64>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The wait is over.
    WaitEnded,
    /// The workspace was recorded as a commit on the base.
    CandidateCommitted {
        /// The commit.
        candidate: Candidate,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The verify commands ran.
    VerifyEnded {
        /// What they showed.
        report: VerifyReport,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A judge gave a verdict.
    JudgeEnded {
        /// What it said.
        run: JudgeRun,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A judge could not be asked or understood.
    JudgeFailed {
        /// What came instead.
        run: JudgeRun,
        /// When it is asked again, in milliseconds since the epoch; `None` if it is not.
        retry_at_ms: Option<i64>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The turn came to a verdict other than done.
    TurnEnded {
        /// Its number, from 1.
        turn: u32,
        /// Why it is not done.
        verdict: TurnVerdict,
    },
    /// The branch points at the commit that was proved or accepted.
    GoalDone {
        /// That commit.
        commit: String,
        /// Whether a verify command proved it.
        verified: bool,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// The goal does not go on by itself.
    GoalStopped {
        /// Which way it stopped.
        stop: Stop,
    },
    /// An effect ended because it was no longer wanted.
    EffectCancelled {
        /// Its id.
        effect: EffectId,
        /// Used since the last report.
        usage: Usage,
        /// The agent's session, where one had begun.
        session: Option<String>,
        /// Milliseconds since the last report.
        elapsed_ms: u64,
    },
    /// A person let it go on.
    GoalResumed,
    /// A person raised the limits.
    BudgetRaised {
        /// By how much.
        raise: Raise,
    },
}

impl Event {
    /// Returns what was used, as this event reports it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match self {
            Self::EffectProgressed { usage, .. }
            | Self::ProviderFailed { usage, .. }
            | Self::EffectCancelled { usage, .. } => *usage,
            Self::AgentEnded { run, .. } => run.usage,
            Self::JudgeEnded { run, .. } | Self::JudgeFailed { run, .. } => run.usage,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::WorkspaceCreated { .. }
            | Self::WaitEnded
            | Self::CandidateCommitted { .. }
            | Self::VerifyEnded { .. }
            | Self::TurnEnded { .. }
            | Self::GoalDone { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::BudgetRaised { .. } => Usage::default(),
        }
    }

    /// Returns the milliseconds since the last report, where something was being performed.
    #[must_use]
    pub const fn elapsed_ms(&self) -> u64 {
        match self {
            Self::EffectProgressed { elapsed_ms, .. }
            | Self::WorkspaceCreated { elapsed_ms, .. }
            | Self::AgentEnded { elapsed_ms, .. }
            | Self::ProviderFailed { elapsed_ms, .. }
            | Self::CandidateCommitted { elapsed_ms, .. }
            | Self::VerifyEnded { elapsed_ms, .. }
            | Self::JudgeEnded { elapsed_ms, .. }
            | Self::JudgeFailed { elapsed_ms, .. }
            | Self::GoalDone { elapsed_ms, .. }
            | Self::EffectCancelled { elapsed_ms, .. } => *elapsed_ms,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::WaitEnded
            | Self::TurnEnded { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::BudgetRaised { .. } => 0,
        }
    }

    /// Tells whether the effect under way has ended with it.
    #[must_use]
    pub const fn ends_effect(&self) -> bool {
        match self {
            Self::WorkspaceCreated { .. }
            | Self::AgentEnded { .. }
            | Self::ProviderFailed { .. }
            | Self::WaitEnded
            | Self::CandidateCommitted { .. }
            | Self::VerifyEnded { .. }
            | Self::JudgeEnded { .. }
            | Self::JudgeFailed { .. }
            | Self::GoalDone { .. }
            | Self::EffectCancelled { .. } => true,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::EffectProgressed { .. }
            | Self::TurnEnded { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::BudgetRaised { .. } => false,
        }
    }
}

/// How an approval was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMeans {
    /// Typed at a terminal after the contract was shown.
    Terminal,
    /// Given with `--yes`.
    YesFlag,
}

/// Why a turn did not end in done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnVerdict {
    /// Protected files were changed.
    Tampered,
    /// A verify command failed.
    VerifyFailed,
    /// The visible checks passed and the hidden ones did not.
    HiddenFailed,
    /// The judge wants more.
    JudgeContinue,
    /// The agent did not end its turn by itself.
    AgentFailed,
    /// The agent says that it needs a person, and no check says otherwise.
    AgentBlocked,
    /// Nothing was changed, and nothing else says that nothing had to be.
    NothingDone,
}

/// A way to stop without being done, with its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// A limit is used up.
    BudgetUsedUp {
        /// Which one.
        limit: Limit,
    },
    /// A person interrupted it.
    Interrupted,
    /// The same tree came back with the same verdict.
    NoProgress {
        /// How many turns ended that way.
        turns: u32,
    },
    /// The agent says it needs a person.
    AgentBlocked {
        /// Why.
        reason: String,
    },
    /// The judge says a person is needed.
    JudgeBlocked {
        /// Why.
        reason: String,
    },
    /// The judge says the criteria cannot be met.
    Impossible {
        /// Why.
        reason: String,
    },
    /// No judge could be asked or understood.
    JudgeUnavailable {
        /// What came instead.
        reason: String,
    },
    /// The provider kept failing, or failed in a way that waiting does not mend.
    ProviderUnavailable {
        /// The last failure.
        failure: ProviderFailure,
    },
    /// The world refused an effect.
    WorldFailed {
        /// The refusal.
        failure: Failure,
    },
    /// A person cancelled it for good.
    Cancelled {
        /// Why, if it was said.
        reason: Option<String>,
    },
}
