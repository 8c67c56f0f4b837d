//! The facts of a workflow, as they stand in its log.
//!
//! When a fact was recorded and by whom stands in the envelope around it; where the fold needs the
//! time, the fact repeats it.

mod codec;

use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use serde::{Deserialize, Serialize};

use crate::rules::conflict::Settlement;
use crate::rules::evidence::WorkflowEvidence;
use crate::rules::limits::{GoalAccount, LimitRaises};
use crate::rules::modes::{Begin, ModeEvent};
use crate::rules::pending::{DecisionApproval, WaitingDecision};
use crate::rules::terms::WorkflowTerms;
use crate::rules::worker::{WorkerId, WorkerStatus, WorkflowWorker};

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    remote = "Self",
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum WorkflowEvent {
    /// It began.
    Started {
        /// Its id.
        id: GoalId,
        /// What it is for.
        purpose: String,
        /// Who started it.
        by: String,
        /// What it may use.
        terms: Box<WorkflowTerms>,
        /// The mode's own beginning.
        begin: Begin,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// An artifact waits for a person.
    DecisionAsked {
        /// What is asked.
        pending: WaitingDecision,
    },
    /// A person approved.
    Approved {
        /// What.
        approval: DecisionApproval,
    },
    /// A person wants something changed.
    Revised {
        /// In their words.
        text: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// Something holds it up.
    Blocked {
        /// Why.
        reason: String,
        /// What to do about it.
        unblock: String,
    },
    /// It goes on.
    Unblocked {},
    /// A person allowed more for the whole.
    LimitsRaised {
        /// What was added.
        more: LimitRaises,
        /// By whom.
        by: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// A person gave it up.
    Abandoned {
        /// Why.
        reason: String,
    },
    /// It cannot be completed.
    Failed {
        /// Why.
        reason: String,
    },
    /// It is complete.
    Completed {},
    /// Its work was integrated.
    Integrated {
        /// By what.
        by: GoalId,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// There is evidence.
    EvidenceRecorded {
        /// What.
        evidence: Box<WorkflowEvidence>,
    },
    /// Something did not fit on a branch.
    ConflictFound {
        /// What.
        what: String,
        /// Where it did not.
        paths: Vec<String>,
        /// The commit that it did not fit on.
        onto: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// The open conflicts of something are settled.
    ConflictSettled {
        /// Of what.
        what: String,
        /// How.
        settlement: Settlement,
    },
    /// A worker was recorded.
    WorkerPrepared {
        /// It.
        worker: WorkflowWorker,
    },
    /// A worker was given something to do.
    WorkerDispatched {
        /// Which.
        worker: WorkerId,
        /// The effect that does it.
        effect: EffectId,
        /// What: the task of the plan.
        what: String,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// Something was heard of a worker.
    WorkerRefreshed {
        /// Which.
        worker: WorkerId,
        /// Where it stands.
        status: WorkerStatus,
        /// The goal it drives.
        goal: Option<GoalId>,
        /// What was heard.
        note: Option<String>,
        /// Where it can be watched.
        terminal: Option<String>,
        /// What it works in.
        isolated: Option<String>,
        /// The task of the kernel that drives the goal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<KernelTaskId>,
    },
    /// A worker has nothing more to do.
    WorkerClosed {
        /// Which.
        worker: WorkerId,
    },
    /// An effect is about to be performed.
    EffectIntended {
        /// Which.
        effect: EffectId,
        /// When, in milliseconds since the epoch.
        at_ms: i64,
    },
    /// An effect used something.
    EffectUsed {
        /// Which.
        effect: EffectId,
        /// What.
        usage: Usage,
    },
    /// What a run wrote was hashed, before what came of it is recorded; the last record of a run
    /// holds.
    RunRecorded {
        /// The effect whose run it is.
        effect: EffectId,
        /// Every file of its directory.
        files: Vec<EvidenceFile>,
    },
    /// A goal has used this much so far, by its own account.
    GoalUsed {
        /// Which.
        goal: GoalId,
        /// The task it is of, and what it used altogether.
        account: GoalAccount,
    },
    /// Somebody was at work for it; recorded only where its time is limited.
    TimeUsed {
        /// For how many milliseconds since the last report.
        ms: u64,
    },
    /// An effect ended.
    EffectEnded {
        /// Which.
        effect: EffectId,
        /// What it used since the last report.
        usage: Usage,
        /// Why it is tried again, if it failed.
        failed: Option<String>,
    },
    /// Something happened that only its mode knows; written as the mode's own fact.
    #[serde(skip)]
    Mode(ModeEvent),
}

#[cfg(test)]
mod tests;
