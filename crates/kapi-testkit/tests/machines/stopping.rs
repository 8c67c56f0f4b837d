//! Cancel and interrupt, also from another process while an effect runs.

use std::sync::atomic::{AtomicBool, Ordering};

use kapi_goal::record::drive::{DriveControl, DriveObservation, drive};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::effect::GoalAction;
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::pace::Pace;

use crate::support::{Fixture, Script, contract, kind, person, until_cancelled, usage, well};

#[test]
fn a_cancel_from_another_process_stops_a_running_effect() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let mut seen = Vec::new();
    let act = |effect: &kapi_goal::rules::effect::GoalEffect,
               watch: &kapi_machine::watch::EffectWatch<'_>| {
        if !matches!(effect.action, GoalAction::RunAgent(_)) {
            return well(effect);
        }
        let reason = Some("changed my mind".to_owned());
        fixture
            .project()
            .submit(&id, &person(), &GoalCommand::Cancel { reason })
            .unwrap();
        drop(until_cancelled(watch));
        GoalOutcome::Cancelled {
            usage: usage(7),
            session: Some("s".to_owned()),
        }
    };
    let goal = crate::support::drive_in(&fixture.project(), &id, &act, &mut |observed| {
        if let DriveObservation::Recorded(logged) = observed {
            seen.push(kind(&logged.event));
        }
    })
    .unwrap();
    assert_eq!(goal.status, GoalStatus::Cancelled);
    assert_eq!(
        goal.stop,
        Some(Stop::Cancelled {
            reason: Some("changed my mind".to_owned())
        })
    );
    assert_eq!(goal.spent.total().tokens(), 7, "what it had used counts");
    assert_eq!(goal.in_flight, None);
    assert_eq!(seen[seen.len() - 2..], ["goal_stopped", "effect_cancelled"]);
}

#[test]
fn an_interrupt_saves_the_state_and_a_resume_goes_on() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let wants_stop = AtomicBool::new(false);
    let act = |effect: &kapi_goal::rules::effect::GoalEffect,
               watch: &kapi_machine::watch::EffectWatch<'_>| {
        if matches!(effect.action, GoalAction::RunAgent(_)) {
            wants_stop.store(true, Ordering::SeqCst);
            return until_cancelled(watch);
        }
        well(effect)
    };
    let control = DriveControl {
        person: person(),
        interrupted: &|| wants_stop.load(Ordering::SeqCst),
        monotonic_ms: &|| 0,
        pace: Pace {
            look_ms: 1,
            ..Pace::STANDARD
        },
    };
    let goal = drive(
        &fixture.project(),
        &id,
        &Script(&act),
        &control,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(
        (goal.status, &goal.stop),
        (GoalStatus::Paused, &Some(Stop::Interrupted))
    );

    // Still interrupted: nothing is begun.
    let again = drive(
        &fixture.project(),
        &id,
        &Script(&act),
        &control,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(again, goal);

    fixture
        .project()
        .submit(&id, &person(), &GoalCommand::Resume)
        .unwrap();
    let goal = fixture.drive(&id, &|effect, _| {
        assert_ne!(
            effect.id.as_str(),
            "t001-agent-a1",
            "a new attempt has an id of its own"
        );
        well(effect)
    });
    assert_eq!(goal.status, GoalStatus::Done);
}

#[test]
fn an_effect_whose_goal_was_cancelled_while_nobody_drove_is_ended() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let died = crate::support::drive_in(
        &fixture.project(),
        &id,
        &|effect, _| {
            if matches!(effect.action, GoalAction::RunAgent(_)) {
                fixture
                    .disk
                    .crash_now(kapi_sys::sim_disk::Survival::Everything);
            }
            well(effect)
        },
        &mut |_| {},
    );
    assert!(died.is_err());
    fixture.disk.reboot();
    fixture
        .project()
        .submit(&id, &person(), &GoalCommand::Cancel { reason: None })
        .unwrap();
    let goal = fixture.drive(&id, &|effect, _| panic!("{} was performed", effect.id));
    assert_eq!((goal.status, goal.in_flight), (GoalStatus::Cancelled, None));
}
