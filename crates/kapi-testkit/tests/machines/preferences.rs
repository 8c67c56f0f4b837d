//! Preferences: a person's alone, kept in their home, the same after every restart.

use std::fs;
use std::path::Path;

use kapi_core::actor::Actor;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::preferences::{PreferenceChange, PreferenceValues, Preferences};
use kapi_goal::rules::denied::GoalDenial;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

use crate::support::person;

fn grants(home: &Path) -> Preferences<'static> {
    Preferences {
        disk: &RealDisk,
        clock: &SystemClock,
        home: home.to_path_buf(),
        project_key: "shop-0123456789ab".to_owned(),
        owner: "test".to_owned(),
    }
}

fn judge(name: Option<&str>) -> PreferenceChange {
    PreferenceChange::JudgeSet {
        judge: name.map(str::to_owned),
    }
}

#[test]
fn what_is_preferred_survives_and_is_cleared_again() {
    let home = tempfile::tempdir().unwrap();
    let grants = grants(home.path());
    assert_eq!(grants.load().unwrap(), PreferenceValues::default());
    assert!(!grants.dir().exists(), "looking makes nothing");
    let on = PreferenceChange::AutopilotSet { on: true };
    let preferred = grants.change(&person(), &on).unwrap();
    let Actor::Human { user } = person() else {
        panic!("a person");
    };
    assert_eq!(preferred.autopilot.as_deref(), Some(user.as_str()));
    grants
        .change(&person(), &judge(Some("anthropic/claude-opus-4-7")))
        .unwrap();
    let expected = PreferenceValues {
        autopilot: Some(user),
        judge: Some("anthropic/claude-opus-4-7".to_owned()),
    };
    assert_eq!(grants.load().unwrap(), expected);
    // The fold is only a copy of the log.
    fs::remove_file(grants.dir().join("state.json")).unwrap();
    assert_eq!(grants.load().unwrap(), expected);
    grants.change(&person(), &judge(None)).unwrap();
    grants
        .change(&person(), &PreferenceChange::AutopilotSet { on: false })
        .unwrap();
    assert_eq!(grants.load().unwrap(), PreferenceValues::default());
    let log = fs::read_to_string(grants.dir().join("events.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 4);
    // The same again is no change.
    grants.change(&person(), &judge(None)).unwrap();
    let again = fs::read_to_string(grants.dir().join("events.jsonl")).unwrap();
    assert_eq!(again, log);
}

#[test]
fn nobody_but_a_person_prefers_anything() {
    let home = tempfile::tempdir().unwrap();
    let grants = grants(home.path());
    let agent = Actor::Agent {
        run: "001-x-t001-agent-a1".to_owned(),
    };
    for actor in [agent, Actor::Engine] {
        for change in [
            PreferenceChange::AutopilotSet { on: true },
            judge(Some("same")),
        ] {
            let error = grants.change(&actor, &change).unwrap_err();
            let is_denied = matches!(error, EngineError::Denied(GoalDenial::OnlyHuman { .. }));
            assert!(is_denied, "{error}");
        }
    }
    assert!(!grants.dir().exists());
}

#[test]
fn a_judge_without_a_name_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let grants = grants(home.path());
    for name in ["", "  ", &"x".repeat(5000)] {
        let error = grants.change(&person(), &judge(Some(name))).unwrap_err();
        assert!(error.to_string().contains("bad_input"), "{error}");
    }
    assert!(!grants.dir().exists());
}
