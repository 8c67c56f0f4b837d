//! Preferences: a person's alone, kept in their home, the same after every restart.

use std::fs;
use std::path::Path;

use kapi_core::actor::Actor;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::preferences::{Change, Preferences, Preferred};
use kapi_goal::rules::denied::Denied;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

use crate::support::person;

fn book(home: &Path) -> Preferences<'static> {
    Preferences {
        disk: &RealDisk,
        clock: &SystemClock,
        home: home.to_path_buf(),
        project_key: "shop-0123456789ab".to_owned(),
        owner: "test".to_owned(),
    }
}

fn judge(name: Option<&str>) -> Change {
    Change::JudgeSet {
        judge: name.map(str::to_owned),
    }
}

#[test]
fn what_is_preferred_survives_and_is_cleared_again() {
    let home = tempfile::tempdir().unwrap();
    let book = book(home.path());
    assert_eq!(book.load().unwrap(), Preferred::default());
    assert!(!book.dir().exists(), "looking makes nothing");
    let on = Change::AutopilotSet { on: true };
    let preferred = book.change(&person(), &on).unwrap();
    let Actor::Human { user } = person() else {
        panic!("a person");
    };
    assert_eq!(preferred.autopilot.as_deref(), Some(user.as_str()));
    book.change(&person(), &judge(Some("anthropic/claude-opus-4-7")))
        .unwrap();
    let expected = Preferred {
        autopilot: Some(user),
        judge: Some("anthropic/claude-opus-4-7".to_owned()),
    };
    assert_eq!(book.load().unwrap(), expected);
    // The fold is only a copy of the log.
    fs::remove_file(book.dir().join("state.json")).unwrap();
    assert_eq!(book.load().unwrap(), expected);
    book.change(&person(), &judge(None)).unwrap();
    book.change(&person(), &Change::AutopilotSet { on: false })
        .unwrap();
    assert_eq!(book.load().unwrap(), Preferred::default());
    let log = fs::read_to_string(book.dir().join("events.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 4);
    // The same again is no change.
    book.change(&person(), &judge(None)).unwrap();
    let again = fs::read_to_string(book.dir().join("events.jsonl")).unwrap();
    assert_eq!(again, log);
}

#[test]
fn nobody_but_a_person_prefers_anything() {
    let home = tempfile::tempdir().unwrap();
    let book = book(home.path());
    let agent = Actor::Agent {
        run: "001-x-t001-agent-a1".to_owned(),
    };
    for actor in [agent, Actor::Engine] {
        for change in [Change::AutopilotSet { on: true }, judge(Some("same"))] {
            let error = book.change(&actor, &change).unwrap_err();
            let is_denied = matches!(error, EngineError::Denied(Denied::OnlyHuman { .. }));
            assert!(is_denied, "{error}");
        }
    }
    assert!(!book.dir().exists());
}

#[test]
fn a_judge_without_a_name_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let book = book(home.path());
    for name in ["", "  ", &"x".repeat(5000)] {
        let error = book.change(&person(), &judge(Some(name))).unwrap_err();
        assert!(error.to_string().contains("bad_input"), "{error}");
    }
    assert!(!book.dir().exists());
}
