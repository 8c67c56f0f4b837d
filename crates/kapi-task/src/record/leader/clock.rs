//! What the clock triggers: instants that are due, made up for or given up, the oldest first.
//!
//! Each is recorded as dealt with before the next, so that a crash in between forgets and repeats
//! none.

use kapi_core::value::Value;

use crate::record::error::KernelError;
use crate::record::leader::{Dealt, Desk, Occurrence, Plan, WAIT_MS, is_off};
use crate::record::schedule::{Due, Firing, Schedule, due};
use crate::rules::definition::trigger::{Misfire, Trigger as SetOffBy};
use crate::rules::loop_run::Trigger;
use crate::rules::task_state::State;

/// One instant and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Fire(Firing),
    /// So many in a row are given up, this one the latest of them.
    GiveUp(Firing, usize),
}

/// Deals with what is due of one loop, and returns when to ask again.
pub(super) fn step(
    plan: &mut Plan,
    desk: &mut Desk<'_, '_, '_>,
    dealt: &mut Vec<Dealt>,
) -> Result<Option<i64>, KernelError> {
    let Some(schedule) = plan.schedule.clone() else {
        return Ok(None);
    };
    let now_ms = desk.around.now_ms;
    // A clock that was put back makes every plan void.
    if (plan.planned_at_ms..plan.next_at_ms).contains(&now_ms) {
        return Ok(Some(plan.next_at_ms));
    }
    get_to_know(plan, desk, dealt)?;
    let Some(state) = desk
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
            Step::GiveUp(latest, count) => {
                let reason = given_up(count, found.skipped_earlier);
                dealt.push(desk.skip(plan, instant(latest), &reason)?);
            }
            // The run that waits would stand for all; here each is wanted.
            Step::Fire(_) if wants_each(&schedule) && waits(plan, desk) => {
                plan.next_at_ms = now_ms.saturating_add(WAIT_MS);
                break;
            }
            Step::Fire(firing) => {
                let occurrence = Occurrence {
                    trigger: instant(firing),
                    key: format!("loop:{}@{}", plan.definition.name, firing.instant_ms),
                    payload: Value::Null,
                    depth: 0,
                };
                dealt.push(desk.fire(plan, occurrence)?);
            }
        }
    }
    Ok(Some(plan.next_at_ms))
}

/// Notes a loop that is new, and one whose schedule is another now: nothing that lies before this
/// moment is made up for.
fn get_to_know(
    plan: &Plan,
    desk: &mut Desk<'_, '_, '_>,
    dealt: &mut Vec<Dealt>,
) -> Result<(), KernelError> {
    let SetOffBy::Cron { schedule, zone, .. } = &plan.definition.trigger else {
        return Ok(());
    };
    let mark = format!("cron {schedule} {zone}");
    let state = desk.state(plan);
    let known = state.and_then(|state| state.mark.as_ref());
    if known == Some(&mark) {
        return Ok(());
    }
    if known.is_some() {
        let due_at_ms = desk.around.now_ms;
        let trigger = Trigger::Cron { due_at_ms };
        dealt.push(desk.skip(plan, trigger, "its schedule has changed")?);
    }
    desk.see(plan, mark)
}

/// Orders what is due by time, and counts what is given up in a row.
fn steps(due: &Due) -> Vec<Step> {
    let fire = due.fire.iter().map(|&firing| Step::Fire(firing));
    let skipped = due.skipped.iter().map(|&firing| Step::GiveUp(firing, 1));
    let mut all: Vec<Step> = fire.chain(skipped).collect();
    all.sort_by_key(|step| match step {
        Step::Fire(firing) | Step::GiveUp(firing, _) => *firing,
    });
    let mut steps: Vec<Step> = Vec::new();
    for step in all {
        match (steps.last_mut(), step) {
            (Some(Step::GiveUp(latest, count)), Step::GiveUp(firing, _)) => {
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

const fn instant(firing: Firing) -> Trigger {
    Trigger::Cron {
        due_at_ms: firing.instant_ms,
    }
}

const fn wants_each(schedule: &Schedule) -> bool {
    matches!(schedule.misfire, Misfire::All { .. })
}

fn waits(plan: &Plan, desk: &Desk<'_, '_, '_>) -> bool {
    let mut tasks = desk.queue.kernel().tasks.values();
    tasks.any(|task| {
        let run = task.loop_run();
        task.state == State::Pending && run.is_some_and(|run| *run.name() == plan.definition.name)
    })
}

#[cfg(test)]
mod tests {
    use super::{Step, given_up, steps};
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
            Step::GiveUp(at(2), 2),
            Step::Fire(at(3)),
            Step::GiveUp(at(5), 2),
            Step::Fire(at(6)),
        ];
        assert_eq!(steps(&due), expected);
        assert_eq!(given_up(1, false), "no supervisor was running at the time");
        assert!(given_up(100, true).ends_with("more than 100 times in a row"));
    }
}
