//! The live fold of a kernel: what has not ended, and what must be known to let the next one in.
//!
//! Ended tasks are handed over to whoever keeps the history and then forgotten, so the fold does
//! not grow with what was.

use std::collections::BTreeMap;

use kapi_core::task_id::{Fence, Holder, KernelTaskId, LoopName};
use kapi_core::usage::Usage;
use kapi_spend::rules::day::Day;
use serde::{Deserialize, Serialize};

use super::task_state::KernelTaskState;
use crate::rules::definition::Definition;
use crate::rules::handoff::Handoff;
use crate::rules::task::KernelTask;

/// How many days of spending are remembered.
const SPENT_DAYS_MAX: usize = 31;

/// One project's kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelState {
    /// The number of the last task.
    pub last_task: u64,
    /// The number of the last lease.
    pub last_fence: Fence,
    /// The tasks that have not ended.
    pub tasks: BTreeMap<KernelTaskId, KernelTask>,
    /// Those that have, until the history has them.
    #[serde(default)]
    pub ended: BTreeMap<KernelTaskId, KernelTask>,
    /// What makes a request the same as an earlier one.
    pub keys: BTreeMap<String, KeyEntry>,
    /// The last lease that each group of requests got, so that their turns go round.
    #[serde(default)]
    pub served: BTreeMap<String, Fence>,
    /// What is known of each loop.
    pub loops: BTreeMap<LoopName, LoopState>,
    /// Who triggers loops.
    #[serde(default)]
    pub leader: Option<LeaderRecord>,
    /// How many tasks have ended.
    #[serde(default)]
    pub totals: TaskTotals,
    /// What attempts cost by day, in millionths of a US dollar; whoever works on the queue, and
    /// wherever, adds to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<Day, u64>,
}

/// What an idempotency key stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// The task that was let in with it.
    pub task: KernelTaskId,
    /// When it ends, once the task has completed; in milliseconds since the epoch.
    pub expires_at_ms: i64,
}

/// What is known of a loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopState {
    /// Whether a person switched it on or off; `None` where nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_enabled: Option<bool>,
    /// Since when a scheduler knows it: nothing that was due before triggers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at_ms: Option<i64>,
    /// The last due instant of its schedule that was dealt with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at_ms: Option<i64>,
    /// What its events watch, as it was when it was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Its last run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// When its last run ended that worked on something: its cooldown begins there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_at_ms: Option<i64>,
    /// The last time it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_skip: Option<LastSkip>,
    /// What its last run left for the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// The values its metric evals measured last, by the eval's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, String>,
    /// How many of its runs have ended.
    #[serde(default)]
    pub totals: TaskTotals,
}

impl LoopState {
    /// Returns when the cooldown after its last run is over, which may be in the past.
    #[must_use]
    pub fn rests_until_ms(&self, cooldown_ms: u64) -> Option<i64> {
        let cooldown_ms = i64::try_from(cooldown_ms).unwrap_or(i64::MAX);
        let worked_at_ms = self.worked_at_ms?;
        Some(worked_at_ms.saturating_add(cooldown_ms))
    }

    /// Returns how it was refused since its last run, if it was.
    #[must_use]
    pub fn refused(&self) -> Option<&LastSkip> {
        let ended_at_ms = self.last_run.as_ref().map(|last| last.ended_at_ms);
        let is_newer = |skip: &&LastSkip| ended_at_ms.is_none_or(|ended| ended <= skip.at_ms);
        let skip = self.last_skip.as_ref().filter(is_newer)?;
        skip.is_refused.then_some(skip)
    }
}

/// Tells whether its schedule or events may set a loop off.
///
/// A person's word decides. Where there is none, a loop whose file may have come with the
/// repository does nothing by itself, so that cloning a project and supervising it spends nothing;
/// one that was set off here before goes on when its file is committed.
#[must_use]
pub fn is_on(definition: &Definition, known: Option<&LoopState>) -> bool {
    let was_set_off = known.is_some_and(|state| state.fired_at_ms.is_some());
    known
        .and_then(|state| state.is_enabled)
        .unwrap_or(was_set_off || !definition.waits_for_a_word())
}

/// The last run of a loop that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastRun {
    /// Which.
    pub task: KernelTaskId,
    /// When it began, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// When it ended.
    pub ended_at_ms: i64,
    /// Where it ended.
    pub state: KernelTaskState,
    /// Whether there was nothing to do.
    pub was_skipped: bool,
    /// The commit it worked on or made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit that its changes begin at, where it made any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// A time when a loop did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastSkip {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// Why.
    pub reason: String,
    /// Whether a rule or a fault kept it, and not its own terms.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
}

/// Who triggers loops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaderRecord {
    /// Who.
    pub holder: Holder,
    /// The number of its lease.
    pub fence: Fence,
    /// When it ends unless its holder is heard of before, in milliseconds since the epoch.
    pub expires_at_ms: i64,
}

/// How many tasks have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTotals {
    /// Well.
    pub completed: u64,
    /// Badly.
    pub failed: u64,
    /// Unwanted.
    pub cancelled: u64,
}

impl KernelState {
    /// Returns a task that has not ended, or whose history is not written yet.
    #[must_use]
    pub fn task(&self, id: KernelTaskId) -> Option<&KernelTask> {
        self.tasks.get(&id).or_else(|| self.ended.get(&id))
    }

    /// Returns how many tasks have not ended.
    #[must_use]
    pub fn n_tasks(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    /// Returns how many tasks workers have.
    #[must_use]
    pub fn n_held(&self) -> u32 {
        let held = self.tasks.values().filter(|task| task.lease.is_some());
        u32::try_from(held.count()).unwrap_or(u32::MAX)
    }

    /// Returns what the day of a moment has cost so far, in millionths of a US dollar.
    #[must_use]
    pub fn spent_on_day_of(&self, at_ms: i64) -> u64 {
        self.spent.get(&Day::of_ms(at_ms)).copied().unwrap_or(0)
    }

    /// Adds what was used to the day on which it was told.
    pub(crate) fn grants(&mut self, usage: &Usage, at_ms: i64) {
        let Some(usd_micros @ 1..) = usage.usd_micros else {
            return;
        };
        let day = self.spent.entry(Day::of_ms(at_ms)).or_default();
        *day = day.saturating_add(usd_micros);
        while self.spent.len() > SPENT_DAYS_MAX {
            self.spent.pop_first();
        }
    }

    /// Hands over the tasks that have ended and forgets them.
    pub fn take_ended(&mut self) -> Vec<KernelTask> {
        std::mem::take(&mut self.ended).into_values().collect()
    }

    /// Tells who has this key, if it holds at that time.
    #[must_use]
    pub fn holder_of(&self, key: &str, now_ms: i64) -> Option<KernelTaskId> {
        let entry = self.keys.get(key)?;
        let is_under_way = self.tasks.contains_key(&entry.task);
        (is_under_way || entry.expires_at_ms > now_ms).then_some(entry.task)
    }
}

#[cfg(test)]
mod tests;
