//! Every request that can be made of a workflow, reports of finished effects included.

use kapi_core::evidence::EvidenceFile;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;

use crate::rules::evidence::WorkflowEvidence;
use crate::rules::limits::{GoalAccount, LimitRaises};
use crate::rules::modes::{Begin, ModeCommand};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::pending::Means;
use crate::rules::terms::WorkflowTerms;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowCommand {
    /// Begin under a new id.
    Start(Box<WorkflowStart>),
    /// Approve what waits.
    Approve {
        /// The hash that was shown.
        sha256: String,
        /// The hash of the artifact's file as it is now.
        found: String,
        /// How the approval is given.
        means: Means,
        /// Whether the risks that stand with the decision were accepted with it.
        accepts_risks: bool,
    },
    /// Want something changed.
    Revise {
        /// In the person's words.
        text: String,
    },
    /// Hold it up until a person goes on with it. What is under way is let go of.
    Pause {},
    /// Go on after something was mended.
    Unblock {},
    /// Allow more tokens, money or time for the whole.
    RaiseLimits {
        /// What is added.
        more: LimitRaises,
    },
    /// Give it up. Worktrees and branches stay.
    Abandon {
        /// Why.
        reason: String,
    },
    /// Record evidence that was brought from outside.
    RecordEvidence(Box<WorkflowEvidence>),
    /// Record that an effect is about to be performed.
    Intend {
        /// Which.
        effect: EffectId,
    },
    /// Report what a running effect used.
    Progress {
        /// Which.
        effect: EffectId,
        /// Since the last report.
        usage: Usage,
    },
    /// Record what a goal has used by its own account.
    RecordGoalUse {
        /// Which.
        goal: GoalId,
        /// What, altogether.
        account: GoalAccount,
    },
    /// Report for how long somebody was at work; recorded only where time is limited.
    UseTime {
        /// Milliseconds since the last report.
        ms: u64,
    },
    /// Record the files of a run that is over, before how it ended is reported.
    RecordRun {
        /// The effect whose run it is.
        effect: EffectId,
        /// Every file of its directory.
        files: Vec<EvidenceFile>,
    },
    /// Report how an effect ended.
    Report {
        /// Which.
        effect: EffectId,
        /// What came back.
        outcome: Box<WorkflowOutcome>,
    },
    /// Record what was heard of a worker.
    RefreshWorker {
        /// Which.
        worker: crate::rules::worker::WorkerId,
        /// What, in a line.
        note: Option<String>,
        /// Where it can be watched now.
        terminal: Option<String>,
        /// What it works in now.
        isolated: Option<String>,
    },
    /// Record which task of the kernel does the work of an effect.
    QueueWork {
        /// The effect.
        effect: EffectId,
        /// The goal that the task drives.
        goal: GoalId,
        /// The task.
        task: KernelTaskId,
    },
    /// Record that Integrate took the work over: from its own landing only.
    MarkIntegrated {
        /// The integration.
        by: GoalId,
    },
    /// Ask something that only the mode knows.
    Mode(ModeCommand),
}

/// What begins a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowStart {
    /// The id.
    pub id: GoalId,
    /// What it is for.
    pub purpose: String,
    /// What it may use.
    pub terms: WorkflowTerms,
    /// The mode's own beginning.
    pub begin: Begin,
}
