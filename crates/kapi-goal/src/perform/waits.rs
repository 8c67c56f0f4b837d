//! Looking whether what a parked goal waits for has come.
//!
//! One look, which changes nothing but a run's directory; who looks, how often, and who ends the
//! wait is not known here. A condition is never told by the agent: it is looked at.

mod command;
mod file;
mod process;

use kapi_core::failure::Failure;
use kapi_core::text::{agent_name, time_words};
use kapi_run::goal_paths::GoalPaths;
use kapi_sys::alarm::WakeSources;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::ProcessName;

use crate::perform::real::RealWorld;
use crate::rules::state::Goal;
use crate::rules::wait::{GoalWait, WaitFor};
use crate::rules::words;

/// The longest until the next look, in milliseconds: clocks are set, and machines sleep.
const LOOK_AGAIN_MS_MAX: u64 = 60_000;
/// The longest until the next look at something that the system may forget to tell about.
const UNTOLD_MS_MAX: u64 = 5_000;

/// What a look at a wait found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitCheck {
    /// The wait is over.
    Met {
        /// Why, as it reads after "goes on:".
        why: String,
    },
    /// It is not.
    NotYet {
        /// Milliseconds until it is worth another look, if nothing told of a change before.
        look_again_ms: u64,
    },
}

/// Whether a look takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckCost {
    /// It takes no time worth speaking of.
    Quick,
    /// It runs a program.
    Slow,
}

/// Tells whether a look at a wait takes time.
#[must_use]
pub const fn pace(wait: &GoalWait) -> CheckCost {
    match wait.until {
        WaitFor::Command { .. } => CheckCost::Slow,
        WaitFor::Time { .. }
        | WaitFor::File { .. }
        | WaitFor::Process { .. }
        | WaitFor::Approval { .. }
        | WaitFor::Judge { .. }
        | WaitFor::Quota { .. } => CheckCost::Quick,
    }
}

/// Returns what to watch for a wait, so that a look is taken when something changes.
#[must_use]
pub fn watched(location: &GoalPaths, wait: &GoalWait) -> WakeSources {
    let mut watched = WakeSources::default();
    match &wait.until {
        WaitFor::File { path, .. } => watched.directories = file::directories(location, path),
        WaitFor::Process { pid, started_ticks } => {
            watched.processes.insert(ProcessName {
                pid: *pid,
                started_ticks: *started_ticks,
            });
        }
        WaitFor::Time { .. }
        | WaitFor::Command { .. }
        | WaitFor::Approval { .. }
        | WaitFor::Judge { .. }
        | WaitFor::Quota { .. } => {}
    }
    watched
}

/// Looks whether a wait of a goal is over.
///
/// A command is run in the goal's sandbox on its work so far, at most as often as the wait says,
/// however many look; it is cut off when the flag is raised.
///
/// # Errors
/// When it cannot be looked. That says nothing of the condition.
pub fn look(
    world: &RealWorld<'_>,
    goal: &Goal,
    wait: &GoalWait,
    cancel: &Cancel,
) -> Result<WaitCheck, Failure> {
    let now_ms = world.clock.now_ms();
    let left_ms = wait
        .deadline_ms
        .map_or(u64::MAX, |deadline_ms| ms_until(deadline_ms, now_ms));
    let found = match &wait.until {
        WaitFor::Time { at_ms } | WaitFor::Judge { at_ms, .. } | WaitFor::Quota { at_ms, .. } => {
            at(*at_ms, now_ms)
        }
        WaitFor::File { path, until } => {
            let is_met = file::is_met(&world.location, path, *until, wait.since_ms)?;
            found(is_met, UNTOLD_MS_MAX)
        }
        WaitFor::Process { pid, started_ticks } => {
            let name = ProcessName {
                pid: *pid,
                started_ticks: *started_ticks,
            };
            let has_ended = process::has_ended(name, wait.since_ms, now_ms);
            found(has_ended, LOOK_AGAIN_MS_MAX)
        }
        // Consent is an event of the goal, and ends the wait itself.
        WaitFor::Approval { .. } => found(false, LOOK_AGAIN_MS_MAX),
        // One try more could take long after the deadline.
        WaitFor::Command { .. } if left_ms == 0 => found(false, 0),
        WaitFor::Command { command, every_ms } => {
            let attempt = command::CommandTry {
                goal,
                number: wait.number,
                command,
                every_ms: *every_ms,
                left_ms,
            };
            attempt.look(world, cancel)?
        }
    };
    Ok(answer(found, &wait.until, left_ms))
}

/// What a look at a condition found, whatever the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionState {
    Met,
    NotYet { again_ms: u64 },
}

/// Returns what was found with so many milliseconds left to the deadline, which ends any wait.
fn answer(found: ConditionState, until: &WaitFor, left_ms: u64) -> WaitCheck {
    match found {
        ConditionState::Met => WaitCheck::Met {
            why: met_words(until),
        },
        ConditionState::NotYet { .. } if left_ms == 0 => WaitCheck::Met {
            why: format!("its deadline passed before {}", before_words(until)),
        },
        ConditionState::NotYet { again_ms } => WaitCheck::NotYet {
            look_again_ms: again_ms.min(left_ms),
        },
    }
}

const fn found(is_met: bool, again_ms: u64) -> ConditionState {
    if is_met {
        ConditionState::Met
    } else {
        ConditionState::NotYet { again_ms }
    }
}

fn at(at_ms: i64, now_ms: i64) -> ConditionState {
    let left_ms = ms_until(at_ms, now_ms);
    found(left_ms == 0, left_ms.min(LOOK_AGAIN_MS_MAX))
}

fn ms_until(at_ms: i64, now_ms: i64) -> u64 {
    u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)
}

fn met_words(until: &WaitFor) -> String {
    match until {
        WaitFor::Time { at_ms } => format!("it is {}", time_words(*at_ms)),
        WaitFor::Quota { provider, .. } => format!("the quota of {provider} has reset"),
        WaitFor::Judge { judge, .. } => {
            format!("the judge {} is asked again", agent_name(judge))
        }
        WaitFor::File { .. }
        | WaitFor::Process { .. }
        | WaitFor::Command { .. }
        | WaitFor::Approval { .. } => words::wait_words(until),
    }
}

fn before_words(until: &WaitFor) -> String {
    match until {
        WaitFor::Time { .. } => format!("it is {}", words::wait_words(until)),
        WaitFor::Quota { .. }
        | WaitFor::Judge { .. }
        | WaitFor::File { .. }
        | WaitFor::Process { .. }
        | WaitFor::Command { .. }
        | WaitFor::Approval { .. } => words::wait_words(until),
    }
}

#[cfg(test)]
mod tests {
    use super::{ConditionState, LOOK_AGAIN_MS_MAX, WaitCheck, answer, at, found};
    use crate::rules::wait::WaitFor;

    fn met(why: &str) -> WaitCheck {
        let why = why.to_owned();
        WaitCheck::Met { why }
    }

    fn not_yet(look_again_ms: u64) -> WaitCheck {
        WaitCheck::NotYet { look_again_ms }
    }

    #[test]
    fn a_time_is_met_when_it_has_come_and_not_a_millisecond_before() {
        assert_eq!(at(1_000, 999), ConditionState::NotYet { again_ms: 1 });
        assert_eq!(at(1_000, 1_000), ConditionState::Met);
        assert_eq!(
            at(1_000, 9_000),
            ConditionState::Met,
            "nobody checked it for a while"
        );
        let far = ConditionState::NotYet {
            again_ms: LOOK_AGAIN_MS_MAX,
        };
        assert_eq!(at(i64::MAX, 0), far, "clocks are set");
    }

    #[test]
    fn a_quota_is_a_time() {
        let until = WaitFor::Quota {
            provider: "claude".to_owned(),
            at_ms: 5_000,
        };
        let look = |now_ms| answer(at(5_000, now_ms), &until, u64::MAX);
        assert_eq!(look(2_000), not_yet(3_000));
        assert_eq!(look(5_000), met("the quota of claude has reset"));
    }

    #[test]
    fn the_deadline_ends_a_wait_and_what_has_come_by_then_is_said_first() {
        let until = WaitFor::Process {
            pid: 7,
            started_ticks: 9,
        };
        let not_met = found(false, 60_000);
        assert_eq!(answer(not_met, &until, u64::MAX), not_yet(60_000));
        assert_eq!(answer(not_met, &until, 250), not_yet(250));
        let late = met("its deadline passed before process 7 has exited");
        assert_eq!(answer(not_met, &until, 0), late);
        assert_eq!(
            answer(ConditionState::Met, &until, 0),
            met("process 7 has exited")
        );
    }
}
