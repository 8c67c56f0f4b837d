//! Loops as others see them: the specification's status, and all that is known besides.
//!
//! Built from a definition and what the kernel knows of it; when it is due next is told by whoever
//! asks.

use kapi_core::task_id::LoopName;
use kapi_status::file::timestamp;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::state::{KernelState, LastSkip, TaskTotals, is_on};
use kapi_task::rules::task::KernelTask;
use serde::Serialize;

use crate::kernel_tools::answers::loop_status_word;

/// A loop's status as the specification has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopStatus {
    /// Its name.
    pub name: String,
    /// When its last run ended, UTC.
    pub last_run: Option<String>,
    /// `running`, `queued`, how the last run ended, or `idle`.
    pub status: &'static str,
    /// When it is due next, UTC; `null` where no clock triggers it, or it is off.
    pub next_scheduled: Option<String>,
}

/// One loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopView {
    /// Its name.
    pub name: String,
    /// As in the specification's status.
    pub status: &'static str,
    /// When its last run ended, in milliseconds since the epoch.
    pub last_run_at_ms: Option<i64>,
    /// The last run that ended.
    pub last_run: Option<String>,
    /// When it is due next.
    pub next_at_ms: Option<i64>,
    /// What it does, in one line.
    pub description: String,
    /// Its version.
    pub version: u32,
    /// What triggers it, besides a person: `manual`, `cron` or `event`.
    pub trigger: &'static str,
    /// The same in words.
    pub trigger_words: String,
    /// Whether a clock or an event triggers it.
    pub is_enabled: bool,
    /// The file it comes from.
    pub file: String,
    /// The SHA-256 of that file.
    pub sha256: String,
    /// The agent profile.
    pub agent: String,
    /// Its runs that have not ended.
    pub live: Vec<String>,
    /// The last time it did not run, and why.
    pub last_skip: Option<LastSkip>,
    /// How many of its runs have ended.
    pub totals: TaskTotals,
}

/// What a clock or a file says of a loop beside its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// What triggers it, in words.
    pub words: String,
    /// When it is due next, in milliseconds since the epoch.
    pub next_at_ms: Option<i64>,
}

impl LoopView {
    /// Builds the view of one loop.
    #[must_use]
    pub fn of(kernel: &KernelState, definition: &Definition, timing: Timing) -> Self {
        let known = kernel.loops.get(&definition.name);
        let live: Vec<&KernelTask> = live(kernel, &definition.name).collect();
        let last = known.and_then(|known| known.last_run.as_ref());
        Self {
            name: definition.name.to_string(),
            status: loop_status_word(live.iter().copied(), known),
            last_run_at_ms: last.map(|last| last.ended_at_ms),
            last_run: last.map(|last| last.task.to_string()),
            next_at_ms: timing.next_at_ms.filter(|_| is_on(definition, known)),
            description: definition.description.clone(),
            version: definition.version,
            trigger: kind(definition),
            trigger_words: timing.words,
            is_enabled: is_on(definition, known),
            file: definition.source.file.clone(),
            sha256: definition.source.sha256.clone(),
            agent: definition.agent.clone(),
            live: live.iter().map(|task| task.id.to_string()).collect(),
            last_skip: known.and_then(|known| known.last_skip.clone()),
            totals: known.map(|known| known.totals).unwrap_or_default(),
        }
    }

    /// Returns the specification's part of it.
    #[must_use]
    pub fn status(&self) -> LoopStatus {
        LoopStatus {
            name: self.name.clone(),
            last_run: self.last_run_at_ms.map(timestamp),
            status: self.status,
            next_scheduled: self.next_at_ms.map(timestamp),
        }
    }
}

/// Returns the runs of a loop that have not ended.
pub fn live<'k>(kernel: &'k KernelState, name: &LoopName) -> impl Iterator<Item = &'k KernelTask> {
    let name = name.clone();
    let tasks = kernel.tasks.values();
    tasks.filter(move |task| task.loop_run().is_some_and(|run| *run.name() == name))
}

const fn kind(definition: &Definition) -> &'static str {
    use kapi_task::rules::definition::trigger::LoopTrigger;
    match definition.trigger {
        LoopTrigger::Manual => "manual",
        LoopTrigger::Cron { .. } => "cron",
        LoopTrigger::Event { .. } => "event",
    }
}
