//! What can be asked of the kernel.
//!
//! Only data; `decide` answers.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::evidence::EvidenceFile;
use kapi_core::task_id::{Fence, Holder, KernelTaskId, LoopName};
use kapi_core::usage::Usage;

use super::loop_run::RunTrigger;
use crate::rules::request::KernelRequest;
use crate::rules::task::{AttemptReport, LoopPhase, PhaseStatus};

/// A request to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelCommand {
    /// Have something done.
    Submit {
        /// What.
        request: Box<KernelRequest>,
        /// How many tasks there may be.
        admission: Admission,
    },
    /// Take the next task that may be worked on.
    Claim {
        /// Who asks.
        holder: Holder,
        /// How long the lease lasts without a word, in milliseconds.
        ttl_ms: u64,
        /// How many tasks may run at once.
        capacity: Capacity,
        /// Only this one.
        only: Option<KernelTaskId>,
        /// The machine and directory it asks from, where several machines share the queue.
        reach: Option<String>,
    },
    /// Launch the agent.
    Begin(Hold),
    /// Go on holding the lease.
    Beat {
        /// Of what.
        hold: Hold,
        /// How long it lasts without a further word, in milliseconds.
        ttl_ms: u64,
        /// What was used since the last word.
        usage: Usage,
    },
    /// Note that a phase of a loop's run is over.
    EndPhase {
        /// Of what.
        hold: Hold,
        /// Which.
        phase: LoopPhase,
        /// How.
        status: PhaseStatus,
        /// What is worth knowing of it, in one line.
        detail: Option<String>,
        /// What came of it so far, where the phases after it build on that.
        report: Option<Box<AttemptReport>>,
    },
    /// Record the files of an attempt that is over, before what came of it is said.
    RecordRun {
        /// Of what.
        hold: Hold,
        /// The name of its sandbox.
        run: String,
        /// Every file of its runs.
        files: Vec<EvidenceFile>,
    },
    /// Say what came of the attempt.
    Finish {
        /// Of what.
        hold: Hold,
        /// What.
        report: Box<AttemptReport>,
    },
    /// Leave a task to others.
    GiveBack {
        /// Which.
        hold: Hold,
        /// Why.
        why: String,
        /// What was used since the last word.
        usage: Usage,
        /// How long nobody takes it, in milliseconds.
        pause_ms: u64,
    },
    /// Not have a task done after all.
    Cancel {
        /// Which.
        task: KernelTaskId,
        /// Why.
        why: String,
    },
    /// Take tasks from workers that are lost.
    Expire {
        /// Holders that are known to be gone, besides those whose lease has run out.
        gone: BTreeSet<Holder>,
    },
    /// Note that a loop was due and did not run.
    Skip {
        /// Which.
        name: LoopName,
        /// What would have triggered it.
        trigger: RunTrigger,
        /// Why not.
        reason: String,
        /// Whether a rule or a fault kept it, and not its own terms.
        is_refused: bool,
    },
    /// Switch a loop on or off.
    Switch {
        /// Which.
        name: LoopName,
        /// On, or off.
        is_enabled: bool,
    },
    /// Note what a loop's events watch, as it is now.
    See {
        /// Which.
        name: LoopName,
        /// What they watch.
        mark: Option<String>,
    },
    /// Be, or go on being, the one that triggers loops.
    Lead {
        /// Who asks.
        holder: Holder,
        /// How long without a word, in milliseconds.
        ttl_ms: u64,
        /// Holders that are known to be gone.
        gone: BTreeSet<Holder>,
    },
    /// Not lead any more.
    Resign {
        /// Who.
        holder: Holder,
    },
}

/// A worker's claim to speak for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Which.
    pub task: KernelTaskId,
    /// The number of its lease.
    pub fence: Fence,
}

/// How many tasks there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// Tasks that have not ended.
    pub tasks_max: u32,
    /// What becomes of one that finds every place taken.
    pub overflow: Overflow,
    /// Tasks that run at once.
    pub running_max: u32,
}

impl Admission {
    /// Returns how many tasks there may be, if so many are too many for another one.
    #[must_use]
    pub fn full_at(&self, n_tasks: u32) -> Option<u32> {
        match self.overflow {
            Overflow::Reject if n_tasks >= self.running_max => Some(self.running_max),
            Overflow::Queue | Overflow::Reject if n_tasks >= self.tasks_max => Some(self.tasks_max),
            Overflow::Queue | Overflow::Reject => None,
        }
    }
}

/// What becomes of a task that finds every place taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// It waits.
    Queue,
    /// It is refused.
    Reject,
}

/// How many tasks may run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Of the project.
    pub project: u32,
    /// Of one agent profile, by its name.
    pub per_agent: BTreeMap<String, u32>,
    /// Millionths of a US dollar that a day of the project may cost, UTC: when it has, nothing more
    /// is begun.
    pub usd_micros_per_day: Option<u64>,
}
