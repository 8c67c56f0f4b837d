//! A damaged log is reported with file and line, and nothing overwrites it.

use kapi_core::goal::command::Command;
use kapi_core::id::GoalId;
use kapi_engine::audit::audit_goal;
use kapi_engine::drive::DriveError;
use kapi_engine::error::EngineError;
use kapi_engine::machine::audit::StreamFault;
use kapi_engine::project::Standing;
use kapi_sys::disk::Disk as _;

use crate::support::{Fixture, contract, drive_in, failing, person, well};

fn paused() -> (Fixture, GoalId) {
    let fixture = Fixture::new();
    let mut contract = contract();
    contract.budget.turns = 1;
    let id = fixture.approved(&contract);
    fixture.drive(&id, &|effect, _| failing(effect));
    (fixture, id)
}

fn flip(fixture: &Fixture, id: &GoalId, offset: usize) {
    let log = fixture.project().layout.goal(id).events();
    let mut bytes = fixture.disk.snapshot()[&log].clone();
    bytes[offset] ^= 1;
    fixture.disk.write(&log, &bytes).unwrap();
}

#[test]
fn a_flipped_byte_anywhere_is_reported_and_no_command_overwrites_it() {
    let (whole, id) = paused();
    let log = whole.project().layout.goal(&id).events();
    let bytes = whole.disk.snapshot()[&log].clone();
    let line_of = |offset: usize| {
        1 + bytes[..offset]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
    };
    for offset in (0..bytes.len()).step_by(97) {
        let (fixture, id) = paused();
        flip(&fixture, &id, offset);
        let audit = audit_goal(&fixture.project(), &id).unwrap();
        let lines: Vec<u64> = audit
            .faults
            .iter()
            .map(|fault| match fault {
                StreamFault::Log(fault) => fault.line,
                other => panic!("{other}"),
            })
            .collect();
        assert!(
            lines.contains(&(line_of(offset) as u64)),
            "byte {offset}: {lines:?}"
        );

        let damaged = fixture.disk.snapshot()[&log].clone();
        // Whether it is refused or, far behind the fold, not noticed: the bytes stay.
        drop(
            fixture
                .project()
                .submit(&id, &person(), &Command::Cancel { reason: None }),
        );
        drop(drive_in(
            &fixture.project(),
            &id,
            &|effect, _| well(effect),
            &mut |_| {},
        ));
        assert!(
            fixture.disk.snapshot()[&log].starts_with(&damaged),
            "byte {offset}"
        );
    }
}

#[test]
fn a_damaged_end_is_refused_by_every_command() {
    let (fixture, id) = paused();
    let log = fixture.project().layout.goal(&id).events();
    let last = fixture.disk.snapshot()[&log].len() - 20;
    flip(&fixture, &id, last);
    let before = fixture.disk.snapshot();
    let project = fixture.project();
    let error = project.load(&id).unwrap_err();
    assert!(matches!(error, EngineError::Corrupt(_)), "{error}");
    assert_eq!(
        error.to_string(),
        format!("trust {} at line 14", log.display())
    );
    assert!(error.hint("1").unwrap().contains("nothing was changed"));
    let submitted = project.submit(&id, &person(), &Command::Resume);
    assert!(
        matches!(submitted, Err(EngineError::Corrupt(_))),
        "{submitted:?}"
    );
    let driven = drive_in(&project, &id, &|effect, _| well(effect), &mut |_| {});
    assert!(
        matches!(driven, Err(DriveError::Engine(EngineError::Corrupt(_)))),
        "{driven:?}"
    );
    assert!(matches!(project.log(&id), Err(EngineError::Corrupt(_))));
    assert_eq!(fixture.disk.snapshot(), before);
    let listed = project.goals().unwrap();
    assert!(
        matches!(listed[0].standing, Standing::Damaged(_)),
        "{listed:?}"
    );
}

#[test]
fn one_damaged_goal_does_not_hide_the_others() {
    let (fixture, first) = paused();
    let second = fixture.approved(&contract());
    fixture
        .disk
        .truncate(&fixture.project().layout.goal(&first).events(), 100)
        .unwrap();
    let listed = fixture.project().goals().unwrap();
    let names: Vec<String> = listed.iter().map(|goal| goal.id.to_string()).collect();
    assert_eq!(names, [first.to_string(), second.to_string()]);
    assert!(matches!(listed[0].standing, Standing::Damaged(_)));
    assert!(matches!(listed[1].standing, Standing::Known(_)));
}

#[test]
fn a_state_that_does_not_follow_is_reported() {
    let (fixture, id) = paused();
    let project = fixture.project();
    let stream = project.stream(&id);
    let held = stream.lock("test", 0).unwrap();
    let loaded = stream.load().unwrap();
    let forged = loaded
        .state
        .unwrap()
        .get()
        .replace("\"turns\":1,", "\"turns\":9,");
    let forged = serde_json::value::RawValue::from_string(forged).unwrap();
    stream.save(&held, &loaded.cursor, forged).unwrap();
    drop(held);
    let faults = audit_goal(&project, &id).unwrap().faults;
    let file = project.layout.goal(&id).state();
    let expected = format!("trust {}: it does not follow from the log", file.display());
    assert_eq!(
        faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [expected]
    );
}

#[test]
fn a_log_moved_to_another_goal_is_reported() {
    let (fixture, first) = paused();
    let second = fixture.approved(&contract());
    let project = fixture.project();
    let bytes = fixture.disk.snapshot()[&project.layout.goal(&first).events()].clone();
    fixture
        .disk
        .write(&project.layout.goal(&second).events(), &bytes)
        .unwrap();
    let faults = audit_goal(&project, &second).unwrap().faults;
    assert!(!faults.is_empty());
    assert!(project.load(&second).is_err());
}
