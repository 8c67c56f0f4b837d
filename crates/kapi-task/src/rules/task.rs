//! A task: what was asked, where it stands, who works on it, and what came of it.
//!
//! Only data and what follows from it at a glance. Which changes are allowed stands in `decide`.

use std::collections::BTreeMap;

use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::inspection::Inspection;
use kapi_core::task_id::{Fence, Holder, KernelTaskId};
use kapi_core::text::counted;
use kapi_core::usage::Usage;
use serde::{Deserialize, Serialize};

use super::loop_run::LoopRun;
use super::task_state::KernelTaskState;
use crate::rules::goal_drive::GoalDrive;
use crate::rules::handoff::{EvalResult, Handoff};
use crate::rules::request::KernelRequest;

/// The longest output that the log keeps, in bytes; the whole of it stands in the run's transcript.
pub const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// A worker's right to a task, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// Who has it.
    pub holder: Holder,
    /// Its number, higher than that of every lease before it.
    pub fence: Fence,
    /// Since when, in milliseconds since the epoch.
    pub acquired_at_ms: i64,
    /// When its holder was heard of last.
    pub heartbeat_at_ms: i64,
    /// When it ends unless its holder is heard of before.
    pub expires_at_ms: i64,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTask {
    /// Which.
    pub id: KernelTaskId,
    /// What was asked.
    pub request: KernelRequest,
    /// Where it stands.
    pub state: KernelTaskState,
    /// When it was asked for, in milliseconds since the epoch.
    pub submitted_at_ms: i64,
    /// It is not worked on before this time.
    pub not_before_ms: i64,
    /// Attempts that were begun, the one under way included.
    pub attempts: u32,
    /// Attempts whose worker was lost.
    pub losses: u32,
    /// Attempts that failed and were followed by another for that.
    pub retries: u32,
    /// Who works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// When the first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
    /// What all attempts used so far.
    #[serde(default)]
    pub usage: Usage,
    /// Why somebody does not want it any more, while a worker still has it, or has to settle it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelling: Option<String>,
    /// Why the attempt before did not come to an end.
    #[serde(default, alias = "setback", skip_serializing_if = "Option::is_none")]
    pub retry_cause: Option<String>,
    /// The phases that are over, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<AttemptReport>>,
}

/// How often a task's worker may be lost before the task is taken for the reason.
pub const LOSSES_MAX: u32 = 10;

impl KernelTask {
    /// Tells whether nothing of it runs again and the next worker only settles what attempts used and left:
    /// it took too many workers with it, or nobody wants it any more.
    #[must_use]
    pub const fn is_only_settled(&self) -> bool {
        self.losses > LOSSES_MAX || (self.cancelling.is_some() && self.is_unsettled())
    }

    /// Tells whether an attempt was begun, which may have used what it has not told, or left something.
    /// What drives a goal keeps no account and leaves nothing of its own.
    #[must_use]
    pub const fn is_unsettled(&self) -> bool {
        self.attempts > 0 && self.request.goal.is_none()
    }

    /// Returns the loop's run that it is.
    #[must_use]
    pub fn loop_run(&self) -> Option<&LoopRun> {
        self.request.loop_run.as_deref()
    }

    /// Returns the goal of a workflow that it drives.
    #[must_use]
    pub fn goal_drive(&self) -> Option<&GoalDrive> {
        self.request.goal.as_deref()
    }

    /// Returns the phase that it is in; `None` when all are over, or it has none.
    #[must_use]
    pub fn phase(&self) -> Option<LoopPhase> {
        if self.loop_run().is_none() && self.state.is_ended() {
            return None;
        }
        self.course().get(self.phases.len()).copied()
    }

    /// Returns the phases that are recorded of it: all of a loop's run; of any other task that its agent
    /// has ended, and that its checks have.
    fn course(&self) -> &'static [LoopPhase] {
        let has_checks = !self.request.verify.is_empty();
        match (self.loop_run(), self.goal_drive()) {
            (Some(_), _) => &LoopPhase::ALL,
            (None, Some(_)) => &[],
            (None, None) if has_checks => &[LoopPhase::Execute, LoopPhase::Evaluate],
            (None, None) => &[LoopPhase::Execute],
        }
    }
}

/// A phase of a loop's run, or of another task. They follow each other; none is left out without a
/// record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoopPhase {
    /// It was triggered.
    Trigger,
    /// Its condition was looked at.
    ShouldRun,
    /// Its prompt was made.
    Context,
    /// Its agent ran.
    Execute,
    /// What came of it was judged by the definition's evals.
    Evaluate,
    /// Lessons were noted.
    Learn,
    /// What the next run should know was written.
    Handoff,
    /// The next run was triggered.
    Retrigger,
}

impl LoopPhase {
    /// All phases in their order.
    pub const ALL: [Self; 8] = [
        Self::Trigger,
        Self::ShouldRun,
        Self::Context,
        Self::Execute,
        Self::Evaluate,
        Self::Learn,
        Self::Handoff,
        Self::Retrigger,
    ];

    /// Returns the name of the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::ShouldRun => "shouldRun",
            Self::Context => "context",
            Self::Execute => "execute",
            Self::Evaluate => "evaluate",
            Self::Learn => "learn",
            Self::Handoff => "handoff",
            Self::Retrigger => "retrigger",
        }
    }
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    /// Well.
    Ok,
    /// There was nothing to do in it, or the run ended before it.
    Skipped,
    /// Badly.
    Error,
}

/// A phase that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRecord {
    /// Which.
    pub phase: LoopPhase,
    /// How it ended.
    pub status: PhaseStatus,
    /// What is worth knowing of it, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it ended, in milliseconds since the epoch.
    pub at_ms: i64,
}

/// What came of an attempt, as its worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptReport {
    /// How it ended.
    pub end: End,
    /// The agent's last words, or what is left of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What the attempt used and no heartbeat has told.
    #[serde(default)]
    pub usage: Usage,
    /// What it changed.
    #[serde(default)]
    pub work: AttemptChanges,
    /// What the next run should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// How the evals came out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evals: Vec<EvalResult>,
    /// What metric evals measured, by the eval's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, String>,
}

impl AttemptReport {
    /// Returns a report that says how an attempt ended and nothing else.
    #[must_use]
    pub fn of(end: End) -> Self {
        Self {
            end,
            output: String::new(),
            usage: Usage::default(),
            work: AttemptChanges::default(),
            handoff: None,
            evals: Vec::new(),
            metrics: BTreeMap::new(),
        }
    }
}

/// What an attempt changed, and where it can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptChanges {
    /// The run whose transcript it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The branch that has its changes, and until the task has ended well the ref that holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that has its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit that its changes begin at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// How many files it changed.
    #[serde(default)]
    pub n_files: u64,
    /// How much its verify commands show, where they pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// What it does to the checks themselves; of commands that were run again, only how they ended.
    #[serde(default, skip_serializing_if = "Inspection::is_empty")]
    pub inspection: Box<Inspection>,
}

impl AttemptChanges {
    /// Returns the revision that its changes begin at, where it has any in a commit.
    #[must_use]
    pub fn began_at(&self) -> Option<String> {
        let (_, commit) = (self.branch.as_ref()?, self.commit.as_ref()?);
        // What was recorded before says no start, and is one commit.
        Some(self.start.clone().unwrap_or_else(|| format!("{commit}^")))
    }

    /// Tells whether its changes are on no branch of the person's: the task has not ended well.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        let branch = self.branch.as_ref();
        branch.is_some_and(|branch| branch.starts_with("refs/"))
    }

    /// Says where it is, for an attempt that did not come to a good end; nothing where it changed
    /// nothing.
    #[must_use]
    pub fn left(&self) -> String {
        let files = match self.n_files {
            0 => return String::new(),
            n => counted(n, "file"),
        };
        match &self.branch {
            Some(held) if self.is_held_back() => {
                format!("; its work so far ({files}) is at {held}")
            }
            Some(branch) => format!("; its work so far ({files}) is on branch {branch}"),
            None => format!(
                "; its work so far ({files}) is in sandbox {}",
                self.run.as_deref().unwrap_or_default()
            ),
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// Well.
    Completed,
    /// There was nothing to do: a condition did not hold.
    Skipped {
        /// Which, and what was found.
        reason: String,
    },
    /// Badly.
    Failed(AttemptFailure),
    /// It was cut off because nobody wanted it any more.
    Cancelled,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptFailure {
    /// The kind.
    pub kind: FailureKind,
    /// What happened, as a sentence for people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The agent's exit code, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The agent ended with an error.
    Agent,
    /// It took too long.
    TimedOut,
    /// It used more than it may.
    BudgetSpent,
    /// A blocking eval, or a verify command, did not pass.
    EvalFailed,
    /// A rule of the policy forbids it.
    PolicyDenied,
    /// It could not be launched: no program, no sandbox, a template that cannot be filled.
    NotLaunched,
    /// The provider did not answer.
    Provider,
    /// Its workers were lost, again and again.
    Lost,
    /// The goal that it drives rests without a proof.
    GoalRests,
}

impl FailureKind {
    /// Returns the kind as it stands in the log and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::TimedOut => "timed_out",
            Self::BudgetSpent => "budget_spent",
            Self::EvalFailed => "eval_failed",
            Self::PolicyDenied => "policy_denied",
            Self::NotLaunched => "not_launched",
            Self::Provider => "provider",
            Self::Lost => "lost",
            Self::GoalRests => "goal_rests",
        }
    }

    /// Tells whether the same again may come to another end.
    #[must_use]
    pub const fn is_worth_a_retry(self) -> bool {
        match self {
            Self::Agent | Self::TimedOut | Self::EvalFailed | Self::Provider => true,
            Self::BudgetSpent
            | Self::PolicyDenied
            | Self::NotLaunched
            | Self::Lost
            | Self::GoalRests => false,
        }
    }
}
