//! The thread that drives the session's goal, for as long as the host is there.

use std::time::Duration;

use kapi_check::perform::judge::host_model::HostModels;
use kapi_core::actor::Actor;
use kapi_goal::perform::session::{SessionVoice, SessionWorld, TurnOffer};
use kapi_goal::perform::waits;
use kapi_goal::perform::waits::WaitCheck;
use kapi_goal::record::drive::{DriveControl, DriveObservation, drive};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::effect::AgentPurpose;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::pace::Pace;
use kapi_machine::watch::Activity;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::monotonic_ms;
use kapi_wire::rpc::{ReplyLevel, RpcNotice, TurnNotice};

use crate::commands::rpc::attached::AttachedGoal;
use crate::commands::rpc::host::Host;
use crate::commands::rpc::view;
use crate::error::Error;

/// How often it is looked whether a parked goal's wait is over.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Drives whatever goal the session has, until the host has gone.
pub(super) fn drive_goals(host: &Host<'_>) {
    while let Some(attached) = host.next_drive() {
        let driven = drive_to_rest(host, &attached);
        host.drive_ended();
        match driven {
            Ok(_) if host.is_leaving() => {}
            Ok(goal) => host.settle(&goal),
            Err(error) => host.fail(&error),
        }
    }
}

/// Drives a goal until it waits for the person, and past its waits for anything else.
fn drive_to_rest(host: &Host<'_>, attached: &AttachedGoal<'_>) -> Result<Goal, Error> {
    loop {
        let goal = drive_once(host, attached)?;
        host.notify(&RpcNotice::Goal(view::of(&goal)));
        if host.is_due_again() {
            continue;
        }
        if goal.status != GoalStatus::Waiting || goal.waits_for_person() {
            return Ok(goal);
        }
        host.rest(&goal);
        if !wait_over(host, attached)? {
            return attached.goal();
        }
    }
}

fn drive_once(host: &Host<'_>, attached: &AttachedGoal<'_>) -> Result<Goal, Error> {
    let offer = |offer: &TurnOffer| {
        host.notify(&RpcNotice::Turn(TurnNotice {
            goal: offer.goal.to_string(),
            message: offer.message.clone(),
        }));
    };
    let hold = |held: &TurnOffer| {
        // A contract that was drafted meanwhile is waited for no more, which is seen in a moment.
        let is_over =
            |goal: &Goal| held.purpose == AgentPurpose::Setup && goal.status != GoalStatus::Setup;
        if let Some(goal) = attached.goal().ok().filter(|goal| !is_over(goal)) {
            host.rest(&goal);
        }
    };
    let world = SessionWorld {
        real: &attached.real,
        seat: &host.seat,
        voice: SessionVoice {
            offer: &offer,
            hold: &hold,
        },
        models: Some(HostModels {
            has: &|name| host.models.has(name),
            own: &|| host.models.own(),
            ask: &|question, cancel| {
                let notify = |notice: &RpcNotice| host.notify(notice);
                host.models.ask(question, cancel, &notify)
            },
        }),
    };
    // Whoever hangs up lets go of the goal, which stays as it is.
    let control = DriveControl {
        person: Actor::Engine,
        interrupted: &|| host.is_leaving(),
        monotonic_ms: &monotonic_ms,
        pace: Pace::STANDARD,
    };
    let mut shown = None;
    drive(
        &attached.project,
        &attached.id,
        &world,
        &control,
        &mut |seen| match seen {
            DriveObservation::Recorded(_) | DriveObservation::Performing(_) => {
                let now = attached.goal().ok().map(|goal| view::of(&goal));
                if let Some(now) = now.filter(|now| shown.as_ref() != Some(now)) {
                    host.notify(&RpcNotice::Goal(now.clone()));
                    shown = Some(now);
                }
            }
            DriveObservation::Activity(Activity::Note { text }) => {
                host.note(text, ReplyLevel::Info);
            }
            DriveObservation::Activity(
                Activity::Tool { .. }
                | Activity::Text { .. }
                | Activity::Used(_)
                | Activity::Verifying { .. },
            ) => {}
        },
    )
    .map_err(|error| Error::drive(&error, &attached.id.to_string()))
}

/// Stays with a parked goal; tells whether it goes on, and not whether the host has gone.
fn wait_over(host: &Host<'_>, attached: &AttachedGoal<'_>) -> Result<bool, Error> {
    loop {
        let goal = attached.goal()?;
        let parked = goal.wait.clone();
        let Some(wait) = parked.filter(|_| goal.status == GoalStatus::Waiting) else {
            return Ok(goal.is_driven());
        };
        if host.is_leaving() {
            return Ok(false);
        }
        let found = waits::look(&attached.real, &goal, &wait, &Cancel::new());
        match found.map_err(|failure| Error::world(&failure))? {
            WaitCheck::Met { why } => {
                let command = GoalCommand::Wake {
                    number: wait.number,
                    why,
                };
                attached
                    .project
                    .submit(&attached.id, &Actor::Engine, &command)
                    .map_err(|error| Error::engine(&error, &attached.id.reference()))?;
            }
            WaitCheck::NotYet { look_again_ms } => {
                host.pause(LOOK_MAX.min(Duration::from_millis(look_again_ms)));
            }
        }
    }
}
