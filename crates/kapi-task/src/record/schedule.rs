//! Which instants of a loop's schedule fire now, which are given up, and when to look again.
//!
//! A function of the schedule, what was handled before and the time: knows no clock, starts
//! nothing, records nothing. Two schedulers that ask the same are told the same.

#[cfg(test)]
mod tests;

use kapi_core::task_id::LoopName;

use crate::record::cron::Cron;
use crate::record::cron::error::CronError;
use crate::rules::definition::trigger::{LoopTrigger, MISFIRES_MAX, Misfire};

/// An instant that is looked at within this time is on time.
pub const GRACE_MS: i64 = 60_000;
/// As many given-up instants are named at most.
pub const SKIPPED_MAX: usize = 100;

/// When a loop is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The loop, from whose name its jitter is made.
    pub name: LoopName,
    /// The instants.
    pub cron: Cron,
    /// What becomes of instants that were missed.
    pub misfire: Misfire,
    /// By how much an instant is delayed at most. It is never delayed beyond the next one.
    pub jitter_ms: u64,
}

impl Schedule {
    /// Reads the schedule of a loop; none when it is not the clock that triggers it.
    ///
    /// # Errors
    /// When the text is no schedule, never fires, or its zone is unknown.
    pub fn of(name: &LoopName, trigger: &LoopTrigger) -> Result<Option<Self>, CronError> {
        match trigger {
            LoopTrigger::Cron {
                schedule,
                zone,
                misfire,
                jitter_ms,
            } => Ok(Some(Self {
                name: name.clone(),
                cron: Cron::parse(schedule, zone)?,
                misfire: *misfire,
                jitter_ms: *jitter_ms,
            })),
            LoopTrigger::Manual | LoopTrigger::Event { .. } => Ok(None),
        }
    }
}

/// One instant of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Firing {
    /// The instant the schedule names; with the loop's name it is the key of the run.
    pub instant_ms: i64,
    /// When it is due: the instant and its jitter.
    pub at_ms: i64,
}

/// What a scheduler does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// What fires, the oldest first.
    pub fire: Vec<Firing>,
    /// The latest of what is given up, the oldest first.
    pub skipped: Vec<Firing>,
    /// Whether more was given up before the first of `skipped`.
    pub skipped_earlier: bool,
    /// What comes next; none only at the end of the calendar.
    pub next: Option<Firing>,
}

/// Returns what fires at `now_ms` of a loop that has been enabled since `enabled_since_ms`.
///
/// What is on time fires, and only what was missed falls under the policy: `Skip` gives it up;
/// `Once` makes up for the latest, unless a later instant is on time and does so by itself; `All`
/// makes up for the latest so many, since the oldest are the least useful.
///
/// `last_handled_ms` is the latest instant that fired or was skipped. Nothing up to it ever fires
/// again, also when the clock went backwards; then `next` is later than it. The work is bounded,
/// however long nobody looked, but it is not nothing: until `next` is due there is nothing to ask.
#[must_use]
pub fn due(
    schedule: &Schedule,
    last_handled_ms: Option<i64>,
    enabled_since_ms: i64,
    now_ms: i64,
) -> Due {
    let floor_ms = last_handled_ms.map_or(enabled_since_ms, |last| last.max(enabled_since_ms));
    let (mut last, next) = around(schedule, floor_ms, now_ms);
    let mut due = Due {
        fire: Vec::new(),
        skipped: Vec::new(),
        skipped_earlier: false,
        next,
    };
    let mut on_time = 0;
    // From the latest backwards. The grace holds an instant a second at most, so this ends.
    while let Some(found) = last {
        if now_ms.saturating_sub(found.at_ms) <= GRACE_MS {
            on_time += 1;
            due.fire.push(found);
        } else if due.fire.len() - on_time < missed_max(schedule.misfire, on_time) {
            due.fire.push(found);
        } else if due.skipped.len() < SKIPPED_MAX {
            due.skipped.push(found);
        } else {
            due.skipped_earlier = true;
            break;
        }
        last = last_between(schedule, floor_ms, found.instant_ms.saturating_sub(1));
    }
    due.fire.reverse();
    due.skipped.reverse();
    due
}

/// Returns the next so many instants after a moment; fewer only at the end of the calendar.
#[must_use]
pub fn upcoming(schedule: &Schedule, after_ms: i64, n: usize) -> Vec<Firing> {
    let next = |from_ms: &i64| schedule.cron.next_after(*from_ms);
    let instants = std::iter::successors(next(&after_ms), next);
    instants.take(n).map(|at| firing(schedule, at)).collect()
}

/// Returns the latest instant that is due after `floor_ms`, and the first that is not yet due.
fn around(schedule: &Schedule, floor_ms: i64, now_ms: i64) -> (Option<Firing>, Option<Firing>) {
    let last = last_between(schedule, floor_ms, now_ms);
    if let Some(delayed) = last.filter(|last| last.at_ms > now_ms) {
        // Every earlier one is due: none is delayed beyond the one after it.
        let before = last_between(schedule, floor_ms, delayed.instant_ms.saturating_sub(1));
        return (before, Some(delayed));
    }
    let next = schedule.cron.next_after(floor_ms.max(now_ms));
    (last, next.map(|next| firing(schedule, next)))
}

/// Returns how many missed instants fire, beside so many that are on time.
fn missed_max(misfire: Misfire, on_time: usize) -> usize {
    match misfire {
        Misfire::Skip => 0,
        Misfire::Once => usize::from(on_time == 0),
        Misfire::All { max } => usize::try_from(max.min(MISFIRES_MAX)).unwrap_or(0),
    }
}

fn last_between(schedule: &Schedule, after_ms: i64, until_ms: i64) -> Option<Firing> {
    let found = schedule.cron.last_between(after_ms, until_ms)?;
    Some(firing(schedule, found))
}

/// Delays an instant by its own jitter, which is less than the time to the next instant.
fn firing(schedule: &Schedule, instant_ms: i64) -> Firing {
    let capacity_ms = schedule
        .cron
        .next_after(instant_ms)
        .map_or(0, |next| next.abs_diff(instant_ms).saturating_sub(1));
    let width_ms = schedule.jitter_ms.min(capacity_ms).saturating_add(1);
    let delay_ms = hash(schedule.name.as_str(), instant_ms) % width_ms;
    Firing {
        instant_ms,
        at_ms: instant_ms.saturating_add_unsigned(delay_ms),
    }
}

/// Mixes a name and an instant: FNV-1a, then the finish of `SplitMix64`, so that neighbouring
/// instants are delayed quite differently. All schedulers must agree on it, so it never changes.
fn hash(name: &str, instant_ms: i64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes().chain(instant_ms.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
