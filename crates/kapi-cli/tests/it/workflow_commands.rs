//! The commands of workflows: forgiving input, exact verbs, approvals, status, clear, readiness.
//!
//! The agents are scripts; the whole way of a workflow stands in a module of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::write;
use crate::workflow_support::{Machine, last};

pub(crate) const FIRST: &str = "001-greet-people-name";

/// Every file below a directory with its bytes.
pub(crate) fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn a_purpose_is_taken_however_it_is_given() {
    let machine = Machine::new();
    let env = &machine.env;
    let agent = ["--agent", machine.agent.as_str(), "--no-drive", "--json"];
    for (words, purpose) in [
        (&["greet people by name"][..], "greet people by name"),
        (&["count", "all", "the", "words"], "count all the words"),
        (&["status page of\nthe shop"], "status page of\nthe shop"),
    ] {
        let output = env.kapi(&[&["deep-interview"], words, &agent[..]].concat());
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(last(&output)["purpose"], purpose);
    }
    let rows = env.json(&["deep-interview", "status"]);
    let ids: Vec<&str> = rows["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(
        ids[0].starts_with("001-") && ids[2].starts_with("003-"),
        "{ids:?}"
    );
}

#[test]
fn a_purpose_that_begins_with_a_word_of_the_mode_has_to_be_quoted() {
    let machine = Machine::new();
    for (args, verb) in [
        (
            &["ralph", "status", "page", "of", "the", "shop"][..],
            "status",
        ),
        (&["ralph", "resume", "the", "old", "import"], "resume"),
        (
            &["deep-interview", "approve", "button", "colour"],
            "approve",
        ),
        (&["ralph", "--turns", "3", "status"], "status"),
    ] {
        let output = machine.env.kapi(args);
        let quoted = format!("kapi {} \"{verb} …\"", args[0]);
        output.assert_error(2, &[verb, "quote the whole purpose", &quoted]);
    }
    let nothing = machine.env.kapi(&["ralph"]);
    nothing.assert_error(2, &["no purpose", "kapi ralph"]);
}

#[test]
fn what_is_not_there_or_not_approved_yet_leads_to_what_can_be_typed() {
    let machine = Machine::new();
    let env = &machine.env;
    for mode in ["ralph", "deep-interview"] {
        let hint = format!("`kapi {mode} \"<purpose>\"`");
        env.kapi(&[mode, "resume", "7"]).assert_error(6, &[&hint]);
    }
    machine.drafted();
    let next = ["not_approved", "`kapi deep-interview approve 001`"];
    machine.ralph(&[], &["--from", "1"]).assert_error(3, &next);
    let built = env.json(&["ralph", "status"]);
    assert!(built["workflows"].as_array().unwrap().is_empty());
    let hash = env.json(&["status", "1"])["pending"]["sha256"].clone();
    let args = ["deep-interview", "approve", "1", "--accept-risks", "--hash"];
    let approved = env.kapi(&[&args[..], &[hash.as_str().unwrap()]].concat());
    assert_eq!(approved.code, 0, "{approved:?}");
    let next = "kapi ralph --from 001\n";
    assert!(approved.stdout.contains(next), "{approved:?}");
    // As printed, with no agent named: it is the interview's.
    let judge = ["--judge", "none", "--no-drive"];
    let begun = env.kapi(&[&["ralph", "--from", "001"], &judge[..]].concat());
    assert_eq!(begun.code, 0, "{begun:?}");
    let agent = env.json(&["status", "2"])["terms"]["agent"].clone();
    assert_eq!(agent, machine.agent.as_str());
}

#[test]
fn an_option_that_a_mode_has_no_use_for_is_refused() {
    let machine = Machine::new();
    let env = &machine.env;
    for (mode, options) in [
        ("deep-interview", &["--verify", "sh test.sh"][..]),
        ("deep-interview", &["--protect", "tests/**"]),
        ("deep-interview", &["--push"]),
        ("deep-interview", &["--pr"]),
        ("deep-interview", &["--judge", "same"]),
        ("autoresearch", &["--judge", "same"]),
        ("autoresearch", &["--reviewer", machine.agent.as_str()]),
    ] {
        let start = [mode, "greet people by name", "--agent", &machine.agent];
        let output = env.kapi(&[&start[..], options].concat());
        output.assert_error(2, &[options[0], "has no effect", "hint: "]);
    }
    assert!(!env.repository().join(".ilchul/workflows").exists());
}

#[test]
fn clear_detaches_this_session_and_changes_no_byte_of_the_workflow() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let before = bytes(&machine.dir("deep-interview", FIRST));
    let cleared = env.json(&["clear"]);
    assert_eq!(cleared["detached"]["workflow"], FIRST);
    assert_eq!(bytes(&machine.dir("deep-interview", FIRST)), before);
    assert_eq!(env.json(&["status"])["attached"], serde_json::Value::Null);
    assert_eq!(env.json(&["clear"])["detached"], serde_json::Value::Null);
    assert_eq!(env.json(&["status"])["workflows"][0]["status"], "active");
}

#[test]
fn what_was_given_up_stays_so() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let gone = env.kapi(&["deep-interview", "resume", "1", "--abandon", "not wanted"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    let resumed = env.kapi(&["deep-interview", "resume", "1"]);
    resumed.assert_error(3, &["already_terminal", "kapi status 001"]);
    let unknown = env.kapi(&["ralph", "resume", "greet"]);
    unknown.assert_error(6, &["unknown_workflow"]);
    assert!(env.kapi(&["status"]).stderr.contains("1 ended workflow"));
}

#[test]
fn an_agent_starts_and_approves_nothing() {
    let mut machine = Machine::new();
    machine.drafted();
    machine.env.set("KAPI_RUN_ID", "some-run");
    for args in [
        &["deep-interview", "approve", "1", "--yes"][..],
        &["deep-interview", "resume", "1", "--abandon", "x"],
        &["ralph", "something else"],
        &["clear"],
    ] {
        let output = machine.env.kapi(args);
        output.assert_error(3, &["only the user may"]);
    }
}

#[test]
fn the_modes_are_probed_by_parsing_and_each_class_of_hindrance_shows() {
    let machine = Machine::new();
    let env = &machine.env;
    let good = env.json(&["doctor", "--modes"]);
    assert_eq!(good["ok"], true, "{good:#}");
    machine.drafted();
    let good = env.json(&["doctor", "--modes"]);
    assert_eq!(good["ok"], true, "{good:#}");
    let dir = machine.dir("deep-interview", FIRST);
    let count = |class: &str| {
        let output = env.kapi(&["doctor", "--modes", "--json"]);
        let view = crate::program::parse(output.stdout.trim_end());
        assert_eq!(output.code, 4, "{view:#}");
        let blockers = view["blockers"].as_array().unwrap();
        let found = blockers.iter().find(|blockers| blockers["class"] == class);
        found.unwrap()["count"].as_u64().unwrap()
    };
    for (file, text, class) in [
        ("snapshot.json", "{}", "event_snapshot"),
        ("state.json", "{}", "event_snapshot"),
        ("spec.md", "# something else\n", "artifact"),
        ("snapshot.json", "{}", "source_of_truth"),
    ] {
        let path = dir.join(file);
        let right = fs::read(&path).unwrap();
        write(&path, text);
        assert!(count(class) > 0, "{file} {class}");
        write(&path, right);
    }
    let homes = env.home().join(".ilchul/approvals");
    fs::remove_dir_all(&homes).unwrap();
    assert!(count("ownership") > 0);
}

#[test]
fn an_old_directory_is_told_and_not_touched() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let old = env.repository().join(".kapi/state.json");
    write(&old, "old");
    let status = env.json(&["status"]);
    assert_eq!(status["health"][0]["what"], "old state", "{status}");
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn without_a_mode_there_is_nothing_of_a_workflow() {
    // A session alone attaches nothing.
    let machine = Machine::new();
    let env = &machine.env;
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    for args in [
        &["status"][..],
        &["inbox"],
        &["clear"],
        &["ralph", "status"],
        &["doctor", "--modes"],
    ] {
        let output = env.kapi(args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
    assert!(!env.repository().join(".ilchul/workflows").exists());
    assert_eq!(env.json(&["status"])["attached"], serde_json::Value::Null);
}

#[test]
fn a_damaged_workflow_is_told_and_hides_no_other() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let second = [
        "deep-interview",
        "count all the words",
        "--no-drive",
        "--agent",
    ];
    assert_eq!(
        env.kapi(&[&second[..], &[machine.agent.as_str()]].concat())
            .code,
        0
    );
    let log = machine.dir("deep-interview", FIRST).join("events.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes.insert(20, b'x');
    write(&log, &bytes);
    let output = env.kapi(&["status", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let status = output.document();
    let reported = status["health"][0].to_string();
    assert!(reported.contains("001"), "{status:#}");
    assert_eq!(
        status["workflows"].as_array().unwrap().len(),
        2,
        "{status:#}"
    );
}

#[test]
fn nothing_is_approved_on_a_log_that_was_altered_below_its_fold() {
    let machine = Machine::new();
    let env = &machine.env;
    machine.drafted();
    let log = machine.dir("deep-interview", FIRST).join("events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    write(&log, text.replacen("greet people", "greet nobody", 1));
    let before = fs::read(&log).unwrap();
    for verb in ["approve", "resume"] {
        let given: &[&str] = match verb {
            "approve" => &["--yes", "--accept-risks"],
            _ => &["--revise", "shorter"],
        };
        let output = env.kapi(&[&["deep-interview", verb, "1"], given].concat());
        assert_ne!(output.code, 0, "{verb}: {output:?}");
        assert!(output.stderr.contains("events.jsonl"), "{verb}: {output:?}");
    }
    assert_eq!(fs::read(&log).unwrap(), before);
}

#[test]
fn a_worktree_belongs_to_the_project_of_its_repository() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.interview(&["--no-drive"]).code, 0);
    let linked = env.root().join("linked");
    env.git(&["worktree", "add", "--quiet", &linked.display().to_string()]);
    let output = env.kapi_in(&linked, &["status", "--json"]);
    assert_eq!(output.document()["workflows"][0]["id"], FIRST, "{output:?}");
    let shown = env.kapi_in(&linked, &["show", "1"]);
    assert!(shown.stdout.contains(FIRST), "{shown:?}");
    // A file that names a repository which does not name it back leads nowhere.
    let stranger = env.root().join("stranger");
    fs::create_dir(&stranger).unwrap();
    fs::copy(linked.join(".git"), stranger.join(".git")).unwrap();
    let output = env.kapi_in(&stranger, &["status", "--json"]);
    assert_eq!(
        output.document()["workflows"],
        serde_json::json!([]),
        "{output:?}"
    );
}
