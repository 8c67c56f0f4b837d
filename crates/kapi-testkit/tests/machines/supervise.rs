//! What a supervisor reads and does: the roster, what goals need, one wake, letting go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_goal::record::drive::{DriveControl, drive};
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::wait::{FileState, WaitFor};
use kapi_machine::pace::Pace;
use kapi_machine::watch::EffectWatch;
use kapi_sys::clock::StepClock;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_workflow::record::supervise::{Need, Roster, WakeOutcome, need, wake};

use crate::support::{
    Fixture, Script, approved, contract, failing, person, project_on, until_cancelled, well,
};

fn park(project: &Project<'_>, id: &GoalId) -> Goal {
    let park = PersonCommand::Park {
        until: WaitFor::File {
            path: "/ready".to_owned(),
            until: FileState::Exists,
        },
        reason: None,
        timeout_ms: None,
    };
    let submitted = project.submit(id, &person(), &GoalCommand::Person(park));
    submitted.unwrap().goal
}

/// Returns what every goal of a roster needs, by index.
fn needs(roster: &Roster) -> Vec<(u32, String)> {
    let word = |goal: &Goal| match need(goal) {
        Need::Driver => "driver".to_owned(),
        Need::Watcher(wait) => format!("watcher {}", wait.number),
        Need::Person => "person".to_owned(),
        Need::Nothing => "nothing".to_owned(),
    };
    let entries = roster.entries();
    let rows = entries.map(|(id, entry)| {
        let need = entry.goal.as_ref().map_or("damaged".to_owned(), word);
        (id.index(), need)
    });
    rows.collect()
}

fn refreshed(roster: &mut Roster, project: &Project<'_>) -> Vec<u32> {
    let changed = roster.refresh(project).unwrap();
    changed.iter().map(GoalId::index).collect()
}

#[test]
fn the_roster_notices_what_is_new_and_what_changed_and_nothing_else() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let mut roster = Roster::default();
    assert!(refreshed(&mut roster, &project).is_empty());

    let first = fixture.approved(&contract());
    let slug = Slug::parse("later").unwrap();
    let second = project.create_goal(&person(), &slug, &contract()).unwrap();
    assert_eq!(refreshed(&mut roster, &project), [1, 2]);
    assert_eq!(
        needs(&roster),
        [(1, "driver".to_owned()), (2, "person".to_owned())]
    );
    assert!(refreshed(&mut roster, &project).is_empty());

    park(&project, &first);
    assert_eq!(refreshed(&mut roster, &project), [1]);
    assert_eq!(needs(&roster)[0].1, "watcher 1");
    // Parked on something else: the status is the same, the wait is another.
    park(&project, &first);
    assert_eq!(refreshed(&mut roster, &project), [1]);
    assert_eq!(needs(&roster)[0].1, "watcher 2");

    let cancel = GoalCommand::Cancel { reason: None };
    project.submit(&second, &person(), &cancel).unwrap();
    wake(&project, &first, 2, "now").unwrap();
    fixture.drive(&first, &|effect, _| well(effect));
    assert_eq!(refreshed(&mut roster, &project), [1, 2]);
    assert_eq!(
        needs(&roster),
        [(1, "nothing".to_owned()), (2, "nothing".to_owned())]
    );
    assert!(refreshed(&mut roster, &project).is_empty());

    // What has ended is not looked at again, unless the inventory says that something is new.
    let reopen = PersonCommand::Reopen {
        reason: "one case is missing".to_owned(),
    };
    let reopen = GoalCommand::Person(reopen);
    project.submit(&first, &person(), &reopen).unwrap();
    assert_eq!(refreshed(&mut roster, &project), [1]);
    assert_eq!(needs(&roster)[0].1, "driver");
    assert_eq!(roster.goal(&first).unwrap().status, GoalStatus::Active);
}

#[test]
fn a_damaged_goal_is_an_entry_and_hides_no_other() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let first = fixture.approved(&contract());
    fixture.approved(&contract());
    let log = project.layout.goal(&first).events();
    fixture.disk.append(&log, b"not a line\n").unwrap();
    let mut roster = Roster::default();
    assert_eq!(refreshed(&mut roster, &project), [1, 2]);
    assert_eq!(
        needs(&roster),
        [(1, "damaged".to_owned()), (2, "driver".to_owned())]
    );
    assert!(roster.goal(&first).is_none());
}

#[test]
fn many_who_see_a_wait_end_end_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let open = || project_on(&RealDisk, &clock, dir.path().into());
    let id = approved(&open(), &contract());
    park(&open(), &id);
    let wakers: Vec<WakeOutcome> = thread::scope(|scope| {
        let wakers: Vec<_> = (0..8)
            .map(|n| {
                let id = &id;
                scope.spawn(move || wake(&open(), id, 1, &format!("seen by {n}")).unwrap())
            })
            .collect();
        wakers
            .into_iter()
            .map(|waker| waker.join().unwrap())
            .collect()
    });
    let now = wakers
        .iter()
        .filter(|woken| **woken == WakeOutcome::Now)
        .count();
    assert_eq!(now, 1, "{wakers:?}");
    let log = open().log(&id).unwrap();
    let woken = log
        .iter()
        .filter(|it| crate::support::kind(&it.event) == "goal_woken");
    assert_eq!(woken.count(), 1);
    assert_eq!(open().load(&id).unwrap().status, GoalStatus::Active);
    // One who is late by a whole wait ends no other.
    park(&open(), &id);
    assert_eq!(wake(&open(), &id, 1, "late").unwrap(), WakeOutcome::Before);
    assert_eq!(open().load(&id).unwrap().status, GoalStatus::Waiting);
}

#[test]
fn only_the_engine_wakes() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    park(&fixture.project(), &id);
    let why = "because I say so".to_owned();
    let command = GoalCommand::Wake { number: 1, why };
    for actor in [
        person(),
        Actor::Agent {
            run: "r".to_owned(),
        },
    ] {
        let denied = fixture.project().submit(&id, &actor, &command);
        assert!(matches!(denied, Err(EngineError::Denied(_))), "{actor}");
    }
    assert_eq!(
        fixture.project().load(&id).unwrap().status,
        GoalStatus::Waiting
    );
}

#[test]
fn a_supervisor_lets_go_and_the_next_one_goes_on() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let wants_stop = AtomicBool::new(false);
    let act = |effect: &GoalEffect, watch: &EffectWatch<'_>| {
        if matches!(effect.action, GoalAction::RunAgent(_)) {
            wants_stop.store(true, Ordering::SeqCst);
            return until_cancelled(watch);
        }
        well(effect)
    };
    let control = DriveControl {
        person: Actor::Engine,
        interrupted: &|| wants_stop.load(Ordering::SeqCst),
        monotonic_ms: &|| 0,
        pace: Pace {
            look_ms: 1,
            ..Pace::STANDARD
        },
    };
    let project = fixture.project();
    let goal = drive(&project, &id, &Script(&act), &control, &mut |_| {}).unwrap();
    assert_eq!((goal.status, goal.stop.clone()), (GoalStatus::Active, None));
    assert_eq!(need(&goal), Need::Driver);
    assert_eq!(goal.in_flight, None, "what was under way has landed");
    assert_eq!(fixture.kinds(&id).last().unwrap(), "effect_cancelled");

    // Still wanted to stop: nothing is begun.
    let again = drive(&project, &id, &Script(&act), &control, &mut |_| {}).unwrap();
    assert_eq!(again, goal);
    assert_eq!(
        fixture.drive(&id, &|effect, _| well(effect)).status,
        GoalStatus::Done
    );
}

#[test]
fn a_goal_that_rests_needs_a_person() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|effect, _| failing(effect));
    assert_eq!(goal.status, GoalStatus::Paused);
    assert_eq!(need(&goal), Need::Person);
}
