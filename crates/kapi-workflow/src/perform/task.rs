//! A task that drives a workflow's goal: asked of the policy once more, then driven to its rest.
//!
//! What the goal uses stands in its own account and is booked by its own world, so nothing of it is
//! told to the kernel. When the task is called off the goal is let go of, and stays as it is.

use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_launch::clean::goals;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::failure;
use kapi_task::perform::ending::{failed, not_launched, refused};
use kapi_task::perform::{Performer, ruling};
use kapi_task::record::worker::LeaseHandle;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::task::{AttemptReport, End, FailureKind, KernelTask};

use crate::perform::drive::{Driven, drive};
use crate::record::workflows::Workflows;
use crate::rules::effect::next;

/// Makes the world of a goal and hands it over, once.
pub type InWorld<'a> =
    dyn Fn(&GoalId, &mut dyn FnMut(RealWorld<'_>)) -> Result<(), Failure> + Sync + 'a;

/// A task, and the goal that it drives.
struct TaskOfGoal<'a> {
    task: &'a KernelTask,
    drive: &'a GoalDrive,
}

/// Drives the goal of a task to its rest.
pub fn perform(
    performer: &Performer<'_>,
    worlds: &InWorld<'_>,
    task: &KernelTask,
    drive: &GoalDrive,
    handle: &LeaseHandle<'_>,
) -> AttemptReport {
    let report = still_wanted(performer, drive)
        .and_then(|()| driven(performer, worlds, &TaskOfGoal { task, drive }, handle))
        .unwrap_or_else(AttemptReport::of);
    if handle.cancel().is_raised() {
        // Whatever failed did so because it was called off.
        return match report.end {
            End::Completed => report,
            End::Skipped { .. } | End::Failed(_) | End::Cancelled => {
                AttemptReport::of(End::Cancelled)
            }
        };
    }
    report
}

/// Refuses what the workflow does not want any more, or not now: it may have gone on, have been
/// given up or be held up since it asked.
fn still_wanted(performer: &Performer<'_>, wanted: &GoalDrive) -> Result<(), End> {
    let key = WorkflowKey {
        mode: wanted.mode,
        id: wanted.workflow.clone(),
    };
    let workflow = Workflows::of(performer.project).workflow(&key);
    let workflow = workflow.map_err(|error| refused(&failure::plain(&error)))?;
    if next(&workflow)
        .iter()
        .any(|effect| effect.id == wanted.effect)
    {
        return Ok(());
    }
    Err(not_launched(format!(
        "workflow {} does not need {} now.",
        wanted.workflow, wanted.task
    )))
}

fn driven(
    performer: &Performer<'_>,
    worlds: &InWorld<'_>,
    wanted: &TaskOfGoal<'_>,
    handle: &LeaseHandle<'_>,
) -> Result<AttemptReport, End> {
    let id = &wanted.drive.goal;
    let goal = performer.project.load(id);
    let goal = goal.map_err(|error| refused(&failure::plain(&error)))?;
    let mut rests = None;
    let made = worlds(id, &mut |world| {
        rests = Some(in_world(performer, wanted, &goal, world, handle));
    });
    made.map_err(|failure| refused(&failure))?;
    rests.unwrap_or_else(|| Err(not_launched("its environment was not set up.")))
}

fn in_world(
    performer: &Performer<'_>,
    wanted: &TaskOfGoal<'_>,
    goal: &Goal,
    mut world: RealWorld<'_>,
    handle: &LeaseHandle<'_>,
) -> Result<AttemptReport, End> {
    world.grants.grant =
        ruling::of_goal(performer, wanted.task, &goal.contract, &world.grants.grant)?;
    let notice = |activity: Activity| (performer.notice)(wanted.task.id, activity);
    let watch = EffectWatch {
        cancel: handle.cancel(),
        notice: &notice,
        room: &unlimited,
    };
    let driven = drive(
        performer.project,
        &world,
        &goal.id,
        &wanted.drive.task,
        &watch,
    );
    let driven = driven.map_err(|failure| refused(&failure.failure))?;
    let Driven::Rests(goal) = driven else {
        return Err(End::Cancelled);
    };
    if goal.status.is_terminal() {
        // What cannot be removed now goes with `kapi cleanup`; the goal has ended all the same.
        drop(goals::remove_homes(&world.location));
    }
    Ok(report(&goal))
}

fn report(goal: &Goal) -> AttemptReport {
    let reason = words::reason(goal);
    let mut report = AttemptReport::of(end(goal, reason.as_deref()));
    report.output = reason.unwrap_or_default();
    report.work.commit.clone_from(&goal.result);
    report.work.start = goal
        .result
        .as_ref()
        .map(|_| goal.contract.base.commit.clone());
    report.work.branch = goal.result.as_ref().map(|_| goal.contract.branch.clone());
    report
}

fn end(goal: &Goal, reason: Option<&str>) -> End {
    match goal.status {
        GoalStatus::Done | GoalStatus::Unverified => End::Completed,
        GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => {
            let why = reason.map(|reason| format!(": {reason}"));
            let (id, status) = (&goal.id, goal.status);
            let message = format!("goal {id} is {status}{}", why.unwrap_or_default());
            failed(FailureKind::GoalRests, message)
        }
    }
}
