//! A damaged log is reported with file and line, and nothing overwrites it.

use std::path::Path;

use kapi_core::id::GoalId;
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::drive::GoalDriveError;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::preferences::{PreferenceChange, Preferences};
use kapi_goal::rules::command::GoalCommand;
use kapi_machine::audit::{StreamAudit, StreamFault};
use kapi_machine::evidence::pruned::{PruneLog, PrunedRuns};
use kapi_store::stream::LogStream;
use kapi_sys::disk::Disk as _;
use kapi_task::record::audit::audit_kernel;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::KernelStore;
use serde_json::value::RawValue;

use crate::kernel_worker::submit;
use crate::support::{Fixture, ROOT, contract, drive_in, failing, person, well};

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
                .submit(&id, &person(), &GoalCommand::Cancel { reason: None }),
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
    let submitted = project.submit(&id, &person(), &GoalCommand::Resume);
    assert!(
        matches!(submitted, Err(EngineError::Corrupt(_))),
        "{submitted:?}"
    );
    let driven = drive_in(&project, &id, &|effect, _| well(effect), &mut |_| {});
    assert!(
        matches!(driven, Err(GoalDriveError::Engine(EngineError::Corrupt(_)))),
        "{driven:?}"
    );
    assert!(matches!(project.log(&id), Err(EngineError::Corrupt(_))));
    assert_eq!(fixture.disk.snapshot(), before);
    let listed = project.goals().unwrap();
    assert!(
        matches!(listed[0].state, ListingStatus::Damaged(_)),
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
    assert!(matches!(listed[0].state, ListingStatus::Damaged(_)));
    assert!(matches!(listed[1].state, ListingStatus::Known(_)));
}

/// Saves a fold in which something else stands.
fn forge(stream: &LogStream<'_>, text: &str, forged: &str) {
    let held = stream.lock("test", 0).unwrap();
    let loaded = stream.load().unwrap();
    let state = loaded.state.unwrap();
    assert!(state.get().contains(text), "{state}");
    let forged = state.get().replace(text, forged);
    let forged = RawValue::from_string(forged).unwrap();
    stream.save(&held, &loaded.cursor, forged).unwrap();
}

/// Checks that a fold is said not to follow from its log, and nothing else.
fn assert_forged(stream: &LogStream<'_>, audit: &StreamAudit) {
    let file = stream.state();
    let expected = format!("trust {}: it does not match the log", file.display());
    let faults: Vec<String> = audit.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, [expected]);
}

#[test]
fn a_state_that_does_not_follow_is_reported() {
    let (fixture, id) = paused();
    let project = fixture.project();
    let stream = project.stream(&id);
    forge(&stream, "\"turns\":1,", "\"turns\":9,");
    assert_forged(&stream, &audit_goal(&project, &id).unwrap());
}

#[test]
fn a_state_of_tasks_that_does_not_follow_is_reported() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let audited = || audit_kernel(&project, &KernelStore::Files, &|_| None).unwrap();
    assert!(audited().is_none());
    submit(&mut Queue::open(&project).unwrap(), 7);
    assert!(audited().unwrap().is_whole());
    let stream = LogStream {
        disk: &fixture.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: project.layout.root().to_path_buf(),
    };
    forge(&stream, "Number 7", "Number 8");
    assert_forged(&stream, &audited().unwrap());
}

#[test]
fn preferences_and_the_record_of_what_was_pruned_are_audited() {
    let fixture = Fixture::new();
    let preferences = Preferences {
        disk: &fixture.disk,
        clock: &fixture.clock,
        home: ROOT.into(),
        project_key: "shop-0123456789ab".to_owned(),
        owner: "test".to_owned(),
    };
    let pruned = PruneLog {
        disk: &fixture.disk,
        state_dir: ROOT.into(),
    };
    assert!(preferences.audit().unwrap().is_none());
    assert!(pruned.audit().unwrap().is_none());
    let judge = Some("judge-a".to_owned());
    preferences
        .change(&person(), &PreferenceChange::JudgeSet { judge })
        .unwrap();
    for sandbox in ["task_1-1", "task_2-1"] {
        let runs = PrunedRuns {
            project: "shop-1".to_owned(),
            sandbox: sandbox.to_owned(),
        };
        pruned.record(&[runs], 0).unwrap();
    }
    assert!(preferences.audit().unwrap().unwrap().is_whole());
    assert!(pruned.audit().unwrap().unwrap().is_whole());
    let stream = LogStream {
        disk: &fixture.disk,
        name: "preferences".to_owned(),
        dir: preferences.dir(),
        anchor: ROOT.into(),
    };
    forge(&stream, "judge-a", "judge-b");
    assert_forged(&stream, &preferences.audit().unwrap().unwrap());
    let log = Path::new(ROOT).join("pruned/events.jsonl");
    let bytes = fixture.disk.snapshot().remove(&log).unwrap();
    let altered = String::from_utf8(bytes)
        .unwrap()
        .replace("task_1", "task_3");
    fixture.disk.write(&log, altered.as_bytes()).unwrap();
    assert!(!pruned.audit().unwrap().unwrap().is_whole());
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
