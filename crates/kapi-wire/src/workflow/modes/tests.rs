//! The modes as the Pi package knows them say what the modes say of themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kapi_workflow::rules::decision_spec::GrantedBy;
use kapi_workflow::rules::mode_spec::{ContextRule, ModeSpec};
use serde_json::{Value, json};

use super::ModeParts;

fn files() -> BTreeSet<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/pi-kapi/kapi/modes");
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn file(name: &str) -> Value {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/pi-kapi/kapi/modes");
    serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap()
}

#[test]
fn the_pi_package_knows_every_mode_as_it_is() {
    let parts = serde_json::to_value(ModeParts::default()).unwrap();
    let mut parts_left: BTreeSet<&str> = parts
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut files_left = files();
    for spec in ModeSpec::all() {
        let name = format!("{}.json", spec.mode);
        assert!(files_left.remove(&name), "there is no {name}");
        let said = file(&name);
        let does_work = spec
            .decisions
            .iter()
            .any(|decision| decision.gives == GrantedBy::Work);
        let context = match spec.context {
            ContextRule::Gives => "gives",
            ContextRule::Takes => "takes",
            ContextRule::None => "none",
        };
        let facts = ["name", "noun", "goesOn", "context"].map(|key| &said[key]);
        let expected = [
            json!(spec.mode.as_str()),
            json!(spec.noun),
            json!(does_work),
            json!(context),
        ];
        assert_eq!(facts, expected.each_ref(), "{name}");
        let roles: BTreeSet<&str> = spec.roles.iter().map(|role| role.name).collect();
        let work = said["work"].as_object().unwrap();
        let worded: BTreeSet<&str> = work.keys().map(String::as_str).collect();
        assert_eq!(worded, roles, "{name}");
        let part = said["part"].as_str().unwrap();
        assert!(parts_left.remove(part), "{name}: no view has {part}");
        for text in ["description", "asks"] {
            assert!(!said[text].as_str().unwrap().is_empty(), "{name}: {text}");
        }
        assert!(said["awaited"].is_boolean(), "{name}");
    }
    assert_eq!(files_left, BTreeSet::new());
    assert_eq!(parts_left, BTreeSet::new());
}
