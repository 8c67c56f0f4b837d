//! What the clock triggers: instants that are due, made up for or given up, the oldest first.
//!
//! Each is recorded as dealt with before the next, so that a crash in between forgets and repeats
//! none.

use kapi_core::value::KernelValue;

use crate::record::error::KernelError;
use crate::record::leader::{
    HandledOccurrence, LoopLauncher, LoopMemory, Occurrence, WAIT_MS, is_off,
};
use crate::record::schedule::{Due, Firing, Schedule, due};
use crate::rules::definition::trigger::{LoopTrigger, Misfire};
use crate::rules::loop_run::RunTrigger;
use crate::rules::task_state::KernelTaskState;

/// One instant and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockStep {
    Fire(Firing),
    /// So many in a row are given up, this one the latest of them.
    GiveUp(Firing, usize),
}

/// Deals with what is due of one loop, and returns when to ask again.
pub(super) fn step(
    plan: &mut LoopMemory,
    launcher: &mut LoopLauncher<'_, '_, '_>,
    dealt: &mut Vec<HandledOccurrence>,
) -> Result<Option<i64>, KernelError> {
    let Some(schedule) = plan.schedule.clone() else {
        return Ok(None);
    };
    let now_ms = launcher.around.now_ms;
    // A clock that was put back makes every plan void.
    if (plan.planned_at_ms..plan.next_at_ms).contains(&now_ms) {
        return Ok(Some(plan.next_at_ms));
    }
    get_to_know(plan, launcher, dealt)?;
    let Some(state) = launcher
        .state(plan)
        .filter(|state| !is_off(&plan.definition, Some(state)))
    else {
        plan.next_at_ms = 0;
        return Ok(None);
    };
    let since_ms = state.seen_at_ms.unwrap_or(now_ms);
    let found = due(&schedule, state.fired_at_ms, since_ms, now_ms);
    plan.planned_at_ms = now_ms;
    plan.next_at_ms = found.next.map_or(i64::MAX, |next| next.at_ms);
    for step in steps(&found) {
        match step {
            ClockStep::GiveUp(latest, count) => {
                let reason = given_up(count, found.skipped_earlier);
                dealt.push(launcher.skip(plan, instant(latest), &reason)?);
            }
            // The run that waits would stand for all; here each is wanted.
            ClockStep::Fire(_) if wants_each(&schedule) && waits(plan, launcher) => {
                plan.next_at_ms = now_ms.saturating_add(WAIT_MS);
                break;
            }
            ClockStep::Fire(firing) => {
                let occurrence = Occurrence {
                    trigger: instant(firing),
                    key: format!("loop:{}@{}", plan.definition.name, firing.instant_ms),
                    payload: KernelValue::Null,
                    depth: 0,
                };
                dealt.push(launcher.fire(plan, occurrence)?);
            }
        }
    }
    Ok(Some(plan.next_at_ms))
}

/// Notes a loop that is new, and one whose schedule is another now: nothing that lies before this
/// moment is made up for.
fn get_to_know(
    plan: &LoopMemory,
    launcher: &mut LoopLauncher<'_, '_, '_>,
    dealt: &mut Vec<HandledOccurrence>,
) -> Result<(), KernelError> {
    let LoopTrigger::Cron { schedule, zone, .. } = &plan.definition.trigger else {
        return Ok(());
    };
    let mark = format!("cron {schedule} {zone}");
    let state = launcher.state(plan);
    let known = state.and_then(|state| state.mark.as_ref());
    if known == Some(&mark) {
        return Ok(());
    }
    if known.is_some() {
        let due_at_ms = launcher.around.now_ms;
        let trigger = RunTrigger::Cron { due_at_ms };
        dealt.push(launcher.skip(plan, trigger, "its schedule has changed")?);
    }
    launcher.see(plan, mark)
}

/// Orders what is due by time, and counts what is given up in a row.
fn steps(due: &Due) -> Vec<ClockStep> {
    let fire = due.fire.iter().map(|&firing| ClockStep::Fire(firing));
    let skipped = due
        .skipped
        .iter()
        .map(|&firing| ClockStep::GiveUp(firing, 1));
    let mut all: Vec<ClockStep> = fire.chain(skipped).collect();
    all.sort_by_key(|step| match step {
        ClockStep::Fire(firing) | ClockStep::GiveUp(firing, _) => *firing,
    });
    let mut steps: Vec<ClockStep> = Vec::new();
    for step in all {
        match (steps.last_mut(), step) {
            (Some(ClockStep::GiveUp(latest, count)), ClockStep::GiveUp(firing, _)) => {
                *latest = firing;
                *count += 1;
            }
            (_, step) => steps.push(step),
        }
    }
    steps
}

fn given_up(count: usize, is_more: bool) -> String {
    match (count, is_more) {
        (1, false) => "no supervisor was running at the time".to_owned(),
        (count, false) => format!("no supervisor was running at the time, {count} times in a row"),
        (count, true) => format!(
            "no supervisor was running at the time, more than {count} \
            times in a row"
        ),
    }
}

const fn instant(firing: Firing) -> RunTrigger {
    RunTrigger::Cron {
        due_at_ms: firing.instant_ms,
    }
}

const fn wants_each(schedule: &Schedule) -> bool {
    matches!(schedule.misfire, Misfire::All { .. })
}

fn waits(plan: &LoopMemory, launcher: &LoopLauncher<'_, '_, '_>) -> bool {
    let mut tasks = launcher.queue.kernel().tasks.values();
    tasks.any(|task| {
        let run = task.loop_run();
        task.state == KernelTaskState::Pending
            && run.is_some_and(|run| *run.name() == plan.definition.name)
    })
}

#[cfg(test)]
mod tests {
    use super::{ClockStep, given_up, steps};
    use crate::record::schedule::{Due, Firing};

    #[test]
    fn what_is_given_up_in_a_row_is_one_step_and_the_oldest_comes_first() {
        let at = |instant_ms| Firing {
            instant_ms,
            at_ms: instant_ms,
        };
        let due = Due {
            fire: vec![at(3), at(6)],
            skipped: vec![at(1), at(2), at(4), at(5)],
            skipped_earlier: false,
            next: None,
        };
        let expected = [
            ClockStep::GiveUp(at(2), 2),
            ClockStep::Fire(at(3)),
            ClockStep::GiveUp(at(5), 2),
            ClockStep::Fire(at(6)),
        ];
        assert_eq!(steps(&due), expected);
        assert_eq!(given_up(1, false), "no supervisor was running at the time");
        assert!(given_up(100, true).ends_with("more than 100 times in a row"));
    }
}
