//! What a project's kernel is at, on one screen: tasks, workers, loops, lessons, settings, faults.

use serde::Serialize;

use crate::kernel::task::KernelTaskView;

/// Everything on one screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DashboardView {
    /// Always `dashboard`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The project's path.
    pub project: String,
    /// The tasks.
    pub queue: QueueView,
    /// Who works.
    pub workers: Vec<WorkerView>,
    /// Who triggers loops.
    pub leader: Option<LeaderView>,
    /// The loops that can be used.
    pub loops: Vec<DashboardLoop>,
    /// How many lessons each domain has.
    pub guardrails: Vec<DomainView>,
    /// Every value that was set for the kernel, and where.
    pub settings: Vec<SettingView>,
    /// What is wrong with files.
    pub warnings: Vec<WarningView>,
}

/// Something that is alive: a goal, workflow, task, loop's run or launch that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AliveView {
    /// `goal`, `task`, `loop`, `launch` or the mode of a workflow.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// What a person types to name it.
    pub reference: String,
    /// What it is for.
    pub title: String,
    /// Where it stands, in a word or two.
    pub status: String,
    /// What it does now, where that is known.
    pub phase: Option<String>,
    /// Why it stands there.
    pub why: Option<String>,
    /// The turn under way or last ended.
    pub turn: Option<u32>,
    /// How many turns there may be.
    pub turns_max: Option<u32>,
    /// Tokens so far.
    pub tokens: u64,
    /// The limit on them.
    pub tokens_max: Option<u64>,
    /// Millionths of a US dollar so far; `null` where nobody tells.
    pub usd_micros: Option<u64>,
    /// The limit on them.
    pub usd_micros_max: Option<u64>,
    /// Milliseconds of work so far.
    pub worked_ms: u64,
    /// The limit on them.
    pub work_max_ms: Option<u64>,
}

/// The tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueView {
    /// How many wait.
    pub queued: usize,
    /// How many workers have.
    pub running: usize,
    /// How many may run at once.
    #[serde(rename = "places")]
    pub locations: u32,
    /// How many have ended well.
    pub completed: u64,
    /// How many have ended badly.
    pub failed: u64,
    /// How many nobody wanted any more.
    pub cancelled: u64,
    /// Those that have not ended, the first of them.
    pub tasks: Vec<KernelTaskView>,
}

/// A living worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerView {
    /// The name by which it holds leases.
    pub holder: String,
    /// What it says of itself.
    pub owner: String,
}

/// Who triggers loops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaderView {
    /// The worker.
    pub holder: String,
    /// When its lease ends, in milliseconds since the epoch.
    pub expires_at_ms: i64,
    /// Whether its process lives.
    pub is_alive: bool,
}

/// A loop in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DashboardLoop {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// `manual`, `cron` or `event`.
    pub trigger: &'static str,
    /// Whether it may be triggered.
    pub enabled: bool,
    /// `queued` or `running` while a run is under way, else how the last one ended; `idle` before
    /// the first.
    pub status: &'static str,
    /// When its last run ended, in milliseconds since the epoch.
    pub last_run_at_ms: Option<i64>,
    /// Why it did not run the last time that it did not.
    pub last_skip: Option<String>,
    /// When it is due next, in milliseconds since the epoch.
    pub next_at_ms: Option<i64>,
}

/// How many lessons a domain has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainView {
    /// What they are about.
    pub domain: String,
    /// Told.
    pub accepted: usize,
    /// Waiting for a person.
    pub proposed: usize,
    /// Refused.
    pub rejected: usize,
    /// No longer told.
    pub expired: usize,
}

/// One value and where it was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingView {
    /// The key, as `[kernel]` has it.
    pub key: String,
    /// The value, for people.
    pub value: String,
    /// The place.
    pub source: String,
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WarningView {
    /// What is wrong, the file and line first.
    pub what: String,
    /// What to do.
    pub remedy: Option<String>,
}
