//! Several processes at once: nobody's event is lost, and no index is given twice.

use std::collections::BTreeSet;
use std::thread;

use kapi_core::id::Slug;
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::GoalCommand;
use kapi_sys::clock::StepClock;
use kapi_sys::lock::Lock;
use kapi_sys::real_disk::RealDisk;

use crate::support::{approved, contract, drive_in, person, project_on, well};

#[test]
fn concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let id = approved(
        &project_on(&RealDisk, &clock, dir.path().into()),
        &contract(),
    );
    let write = || {
        let project = project_on(&RealDisk, &clock, dir.path().into());
        let raise = GoalCommand::RaiseBudget(Raise {
            turns: 1,
            ..Raise::default()
        });
        for _ in 0..25 {
            project.submit(&id, &person(), &raise).unwrap();
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(write);
        }
    });
    let project = project_on(&RealDisk, &clock, dir.path().into());
    assert_eq!(project.load(&id).unwrap().budget.turns, 5 + 100);
    let audit = audit_goal(&project, &id).unwrap();
    assert_eq!(
        (audit.records, audit.faults.len(), audit.torn_bytes),
        (102, 0, 0)
    );
    assert_eq!(audit.stale, Vec::<std::path::PathBuf>::new());
}

#[test]
fn concurrent_proposals_get_different_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let create = || {
        let project = project_on(&RealDisk, &clock, dir.path().into());
        let slug = Slug::parse("try").unwrap();
        let create = |_| {
            project
                .create_goal(&person(), &slug, &contract())
                .unwrap()
                .index()
        };
        (0..8).map(create).collect::<Vec<u32>>()
    };
    let indexes: Vec<u32> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(create)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(
        indexes.iter().collect::<BTreeSet<_>>().len(),
        24,
        "{indexes:?}"
    );
    let project = project_on(&RealDisk, &clock, dir.path().into());
    let listed = project.goals().unwrap();
    assert!(
        listed
            .iter()
            .all(|goal| matches!(goal.state, ListingStatus::Known(_)))
    );
    assert_eq!(listed.len(), 24);
    assert_eq!(project.inventory().unwrap().goals().len(), 24);
    assert_eq!(project.inventory().unwrap().next_index(), 25);
}

#[test]
fn a_driven_goal_says_by_whom() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let project = project_on(&RealDisk, &clock, dir.path().into());
    let id = approved(&project, &contract());
    assert_eq!(project.driver(&id).unwrap(), None);
    drive_in(
        &project,
        &id,
        &|effect, _| {
            let driver = project.driver(&id).unwrap().unwrap();
            assert!(driver.contains("test"), "{driver}");
            well(effect)
        },
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(project.driver(&id).unwrap(), None);
}

#[test]
fn a_busy_stream_names_its_holder() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let project = project_on(&RealDisk, &clock, dir.path().into());
    let id = approved(&project, &contract());
    let _held = Lock::acquire(&project.layout.goal(&id).lock(), "somebody", 0).unwrap();
    let stream = project.stream(&id);
    let error = kapi_goal::record::error::EngineError::from(stream.lock("test", 0).unwrap_err());
    assert!(error.to_string().contains("somebody"), "{error}");
    assert!(error.hint("1").unwrap().contains("somebody"));
}
