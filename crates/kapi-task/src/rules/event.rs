//! The facts of the kernel, as they stand in its log.
//!
//! When a fact was recorded stands in the envelope around it.

use kapi_core::evidence::EvidenceFile;
use kapi_core::task_id::{Fence, Holder, KernelTaskId, LoopName};
use kapi_core::usage::Usage;
use serde::{Deserialize, Serialize};

use super::loop_run::RunTrigger;
use crate::rules::request::KernelRequest;
use crate::rules::task::{AttemptReport, LoopPhase, PhaseStatus};

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum KernelEvent {
    /// A task was asked for and let in.
    Submitted {
        /// Which.
        task: KernelTaskId,
        /// What was asked.
        request: Box<KernelRequest>,
    },
    /// A worker has a task.
    Claimed {
        /// Which.
        task: KernelTaskId,
        /// Who.
        holder: Holder,
        /// The lease's number.
        fence: Fence,
        /// When it ends unless its holder is heard of before, in milliseconds since the epoch.
        expires_at_ms: i64,
    },
    /// A worker is about to launch the agent.
    Begun {
        /// Which.
        task: KernelTaskId,
    },
    /// A worker was heard of.
    Beat {
        /// Which.
        task: KernelTaskId,
        /// When the lease ends now.
        expires_at_ms: i64,
        /// What was used since the last word.
        usage: Usage,
    },
    /// What an attempt wrote was hashed, before what came of it is recorded.
    RunRecorded {
        /// Which task.
        task: KernelTaskId,
        /// The name of the attempt's sandbox, where the files are.
        run: String,
        /// Every file of its runs.
        files: Vec<EvidenceFile>,
    },
    /// A phase of a loop's run is over.
    PhaseEnded {
        /// Which run.
        task: KernelTaskId,
        /// Which phase.
        phase: LoopPhase,
        /// How.
        status: PhaseStatus,
        /// What is worth knowing of it.
        detail: Option<String>,
        /// What came of it so far, where the phases after it build on that.
        report: Option<Box<AttemptReport>>,
    },
    /// Somebody does not want a task any more that a worker has.
    CancelAsked {
        /// Which.
        task: KernelTaskId,
        /// Why.
        why: String,
    },
    /// A task waits for a worker again.
    Requeued {
        /// Which.
        task: KernelTaskId,
        /// Since when it may be worked on, in milliseconds since the epoch.
        not_before_ms: i64,
        /// What came between.
        cause: RetryCause,
        /// Why, as a sentence for people.
        why: String,
        /// What the attempt used and no word before has told.
        usage: Usage,
    },
    /// Nothing becomes of a task any more.
    Ended {
        /// Which.
        task: KernelTaskId,
        /// What came of it.
        report: Box<AttemptReport>,
    },
    /// A loop was due or triggered, and did not run.
    LoopSkipped {
        /// Which.
        #[serde(rename = "loop")]
        name: LoopName,
        /// What would have triggered it.
        trigger: RunTrigger,
        /// Why not.
        reason: String,
        /// Whether a rule or a fault kept it, and not its own terms.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_refused: bool,
    },
    /// A person switched a loop on or off.
    LoopSwitched {
        /// Which.
        #[serde(rename = "loop")]
        name: LoopName,
        /// On, or off.
        is_enabled: bool,
    },
    /// The scheduler saw a loop's definition for the first time, or what its events watch: only
    /// what comes after triggers it.
    LoopSeen {
        /// Which.
        #[serde(rename = "loop")]
        name: LoopName,
        /// What its events watch, as it is now.
        mark: Option<String>,
    },
    /// A process leads: it is the one that triggers loops.
    Led {
        /// Who.
        holder: Holder,
        /// The lease's number.
        fence: Fence,
        /// When it ends unless its holder is heard of before.
        expires_at_ms: i64,
    },
    /// Nobody leads.
    Resigned {},
}

/// Why an attempt did not come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// It failed and is tried again.
    Retry,
    /// Its worker gave it back, and had launched nothing or was told to stop.
    GivenBack,
    /// Its worker was lost before it launched anything.
    LostBefore,
    /// Its worker was lost, and may have launched it.
    Lost,
}

#[cfg(test)]
mod tests;
