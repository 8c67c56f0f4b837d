//! Which task is next, and what the others wait for.
//!
//! More urgent ones first, where waiting makes urgent; among equals the groups of requests take
//! turns; within a group the older first. Knows no pressure of the machine: a worker that has no
//! room does not ask.

use std::collections::BTreeMap;
use std::fmt;

use kapi_core::task_id::{Fence, KernelTaskId};

use super::task_state::KernelTaskState;
use crate::rules::command::Capacity;
use crate::rules::loop_run::RunTrigger;
use crate::rules::state::KernelState;
use crate::rules::task::KernelTask;

/// The time after which a waiting task counts as one step more urgent, in milliseconds.
const AGEING_MS: u64 = 15 * 60 * 1_000;
/// Millionths of a US dollar in one.
const MICROS: u64 = 1_000_000;

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// A time: the pause before it is tried again.
    Until {
        /// In milliseconds since the epoch.
        at_ms: i64,
    },
    /// The end of its loop's cooldown.
    Cooldown {
        /// In milliseconds since the epoch.
        at_ms: i64,
    },
    /// A place in the project.
    Project {
        /// How many there are.
        locations: u32,
    },
    /// A place of its agent profile.
    Agent {
        /// Which.
        agent: String,
        /// How many there are.
        locations: u32,
    },
    /// An earlier run of its loop.
    Loop {
        /// How many may run at once.
        locations: u32,
    },
    /// The next day, UTC: this one has cost what it may.
    Spend {
        /// What a day may cost, in millionths of a US dollar.
        usd_micros: u64,
    },
    /// A worker: nothing else keeps it.
    Worker,
}

impl fmt::Display for Waits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until { .. } => out.write_str("waiting to retry"),
            Self::Cooldown { .. } => out.write_str("waiting for its loop's cooldown"),
            Self::Project { locations } => {
                write!(out, "all {locations} slots of the project are in use")
            }
            Self::Agent { agent, locations } => {
                write!(out, "all {locations} slots of agent {agent} are in use")
            }
            Self::Loop { locations } => {
                write!(out, "{locations} runs of its loop are already running")
            }
            Self::Spend { usd_micros } => write!(
                out,
                "spend: the daily cap of ${}.{:02} is spent",
                usd_micros / MICROS,
                usd_micros % MICROS / (MICROS / 100)
            ),
            Self::Worker => out.write_str("waiting for a worker"),
        }
    }
}

/// What is taken at a moment.
struct TakenSlots<'a> {
    n: u32,
    kernel: &'a KernelState,
    per_agent: BTreeMap<&'a str, u32>,
    per_loop: BTreeMap<&'a str, u32>,
}

impl<'a> TakenSlots<'a> {
    fn of(kernel: &'a KernelState) -> Self {
        let mut taken = Self {
            n: 0,
            kernel,
            per_agent: BTreeMap::new(),
            per_loop: BTreeMap::new(),
        };
        for task in kernel.tasks.values().filter(|task| task.lease.is_some()) {
            taken.n += 1;
            *taken.per_agent.entry(&task.request.agent).or_default() += 1;
            if let Some(run) = task.loop_run() {
                *taken.per_loop.entry(run.name().as_str()).or_default() += 1;
            }
        }
        taken
    }

    /// Returns when the cooldown of a loop ends that an event triggered: others were asked before they
    /// were let in.
    fn rests_until_ms(&self, task: &KernelTask) -> Option<i64> {
        let run = task.loop_run()?;
        let RunTrigger::Event { .. } = run.trigger else {
            return None;
        };
        let state = self.kernel.loops.get(run.name())?;
        state.rests_until_ms(run.definition.cooldown_ms)
    }

    /// Returns what keeps a pending task.
    fn keeps(&self, task: &KernelTask, capacity: &Capacity, now_ms: i64) -> Option<Waits> {
        // Nothing of it runs.
        if task.is_only_settled() {
            return None;
        }
        // The clock may have been set back since it was asked for: that time has come.
        if task.not_before_ms > now_ms.max(task.submitted_at_ms) {
            let at_ms = task.not_before_ms;
            return Some(Waits::Until { at_ms });
        }
        if let Some(usd_micros) = capacity.usd_micros_per_day
            && self.kernel.spent_on_day_of(now_ms) >= usd_micros
        {
            return Some(Waits::Spend { usd_micros });
        }
        if let Some(at_ms) = self.rests_until_ms(task).filter(|at_ms| *at_ms > now_ms) {
            return Some(Waits::Cooldown { at_ms });
        }
        if let Some(run) = task.loop_run() {
            let locations = run.definition.max_concurrent;
            let n = self.per_loop.get(run.name().as_str()).copied();
            if n.unwrap_or(0) >= locations {
                return Some(Waits::Loop { locations });
            }
        }
        let agent = task.request.agent.as_str();
        if let Some(&locations) = capacity.per_agent.get(agent)
            && self.per_agent.get(agent).copied().unwrap_or(0) >= locations
        {
            let agent = agent.to_owned();
            return Some(Waits::Agent { agent, locations });
        }
        let locations = capacity.project;
        (self.n >= locations).then_some(Waits::Project { locations })
    }
}

/// Returns the task that a worker gets next: of all, or only this one; of those that drive a goal,
/// only what is within its reach.
#[must_use]
pub fn pick(
    kernel: &KernelState,
    capacity: &Capacity,
    only: Option<KernelTaskId>,
    reach: Option<&str>,
    now_ms: i64,
) -> Option<KernelTaskId> {
    let taken = TakenSlots::of(kernel);
    let is_for_it = |task: &&KernelTask| {
        let drive = task.goal_drive();
        only.is_none_or(|only| only == task.id) && drive.is_none_or(|drive| drive.is_within(reach))
    };
    let pending = kernel
        .tasks
        .values()
        .filter(|task| task.state == KernelTaskState::Pending)
        .filter(is_for_it);
    let free = pending.filter(|task| taken.keeps(task, capacity, now_ms).is_none());
    free.min_by_key(|task| {
        let group = task.request.origin.group();
        let served = kernel.served.get(&group).copied().unwrap_or(Fence(0));
        (u64::MAX - urgency(task, now_ms), served, task.id)
    })
    .map(|task| task.id)
}

/// Returns what each task that waits is waiting for.
#[must_use]
pub fn waits(
    kernel: &KernelState,
    capacity: &Capacity,
    now_ms: i64,
) -> BTreeMap<KernelTaskId, Waits> {
    let taken = TakenSlots::of(kernel);
    let pending = kernel
        .tasks
        .values()
        .filter(|task| task.state == KernelTaskState::Pending);
    pending
        .map(|task| {
            let waits = taken.keeps(task, capacity, now_ms);
            (task.id, waits.unwrap_or(Waits::Worker))
        })
        .collect()
}

fn urgency(task: &KernelTask, now_ms: i64) -> u64 {
    let waited_ms = u64::try_from(now_ms.saturating_sub(task.submitted_at_ms)).unwrap_or(0);
    task.request.priority.step() + waited_ms / AGEING_MS
}
