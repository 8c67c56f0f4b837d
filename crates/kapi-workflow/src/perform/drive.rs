//! Driving a task's goal in this process until it rests, and staying with it while it is parked.
//!
//! Somebody else may drive it at the same time, `kapi up` for instance; then it is waited for. When
//! the effect is no longer wanted the goal is let go of, not stopped: whoever comes next goes on.

use std::thread;
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::perform::waits;
use kapi_goal::perform::waits::WaitCheck;
use kapi_goal::record::drive;
use kapi_goal::record::drive::{DriveControl, DriveObservation, GoalDriveError};
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_machine::pace::Pace;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::failure;
use kapi_sys::clock::monotonic_ms;

use crate::perform::NotTasked;
use crate::record::supervise::wake;

/// How often it is looked whether somebody else has come to an end, or a wait is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// The longest between two looks at what a goal waits for, in milliseconds.
const LOOK_MS_MAX: u64 = 2_000;

/// What came of it.
#[derive(Debug)]
pub enum Driven {
    /// The goal goes no further by itself.
    Rests(Box<Goal>),
    /// It was let go of.
    LetGo,
}

/// Drives a goal of a workflow to its rest.
///
/// # Errors
/// When it cannot be read or driven; the goal stays as it is.
pub fn drive(
    project: &Project<'_>,
    world: &RealWorld<'_>,
    id: &GoalId,
    task: &PlanTaskId,
    watch: &EffectWatch<'_>,
) -> Result<Driven, NotTasked> {
    let control = DriveControl {
        // Not the person: then an interrupt would stop the goal for good.
        person: Actor::Engine,
        interrupted: &|| watch.cancel.is_raised(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
    };
    let mut reported = String::new();
    loop {
        let driven = drive::drive(project, id, world, &control, &mut |seen| {
            show(seen, task, watch);
        });
        let goal = match driven {
            Ok(goal) => goal,
            Err(GoalDriveError::Driven { owner, .. }) => {
                if owner != reported {
                    let text = format!("{}: goal {id} is driven by {owner}", task.as_str());
                    (watch.notice)(Activity::Note { text });
                    reported = owner;
                }
                thread::sleep(LOOK);
                if watch.cancel.is_raised() {
                    return Ok(Driven::LetGo);
                }
                continue;
            }
            Err(GoalDriveError::Engine(error)) => return Err(failed(&error)),
        };
        if watch.cancel.is_raised() && !goal.status.is_terminal() {
            return Ok(Driven::LetGo);
        }
        if goal.status != GoalStatus::Waiting {
            return Ok(Driven::Rests(Box::new(goal)));
        }
        if let Some(wait) = &goal.wait {
            let until = words::wait_words(&wait.until);
            let text = format!(
                "{}: goal {id} is parked until {until}; see `kapi inbox`",
                task.as_str()
            );
            (watch.notice)(Activity::Note { text });
        }
        if !stay(project, world, goal, watch)? {
            return Ok(Driven::LetGo);
        }
    }
}

/// Stays with a parked goal until it is not parked any more; `false` when it is called off.
fn stay(
    project: &Project<'_>,
    world: &RealWorld<'_>,
    mut goal: Goal,
    watch: &EffectWatch<'_>,
) -> Result<bool, NotTasked> {
    while let Some(wait) = goal
        .wait
        .as_ref()
        .filter(|_| goal.status == GoalStatus::Waiting)
    {
        if watch.cancel.is_raised() {
            return Ok(false);
        }
        let pause_ms = match waits::look(world, &goal, wait, watch.cancel) {
            Ok(WaitCheck::Met { why }) => {
                let woken = wake(project, &goal.id, wait.number, &why);
                woken.map_err(|error| failed(&error))?;
                return Ok(true);
            }
            Ok(WaitCheck::NotYet { look_again_ms }) => look_again_ms.min(LOOK_MS_MAX),
            // It says nothing of the condition, so the next look may find it.
            Err(_) => LOOK_MS_MAX,
        };
        let until = monotonic_ms().saturating_add(pause_ms);
        while monotonic_ms() < until && !watch.cancel.is_raised() {
            thread::sleep(LOOK);
        }
        let loaded = project.load(&goal.id);
        goal = loaded.map_err(|error| failed(&error))?;
    }
    Ok(true)
}

/// A rule stays, a disk may recover.
fn failed(error: &EngineError) -> NotTasked {
    NotTasked {
        may_pass: !matches!(error, EngineError::Denied(_)),
        failure: failure::plain(error),
    }
}

/// Tells what happens in a goal. What it uses stands in its own account, and is not told.
fn show(seen: DriveObservation, task: &PlanTaskId, watch: &EffectWatch<'_>) {
    let named = |text: &str| format!("{}: {text}", task.as_str());
    match seen {
        DriveObservation::Activity(Activity::Used(_)) | DriveObservation::Recorded(_) => {}
        DriveObservation::Activity(Activity::Note { text }) => {
            (watch.notice)(Activity::Note { text: named(&text) });
        }
        DriveObservation::Activity(
            activity @ (Activity::Tool { .. } | Activity::Text { .. } | Activity::Verifying { .. }),
        ) => (watch.notice)(activity),
        DriveObservation::Performing(effect) => {
            let text = named(&effect.action.words());
            (watch.notice)(Activity::Note { text });
        }
    }
}
