//! A damaged log is told by file and line and never overwritten; everything else is made again.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::environment::{Environment, FIRST, write};

/// Every command that could be tempted to write, with the exit code it has on a damaged log.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["audit"], 4),
    (&["show", "1"], 4),
    (&["log", "1"], 4),
    (&["diff", "1"], 4),
    (&["resume", "1"], 4),
    (&["cancel", "1"], 4),
    (&["budget", "1", "--turns", "+5"], 4),
];

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    let env = paused_environment();
    let whole = fs::read(env.log(FIRST)).unwrap();
    let lines = whole.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 10, "a log worth damaging has {lines} lines");
    let last = whole.len() - 1;
    let ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').collect();
    // Around every line's end, and evenly through all the rest.
    let mut locations: Vec<usize> = ends.iter().flat_map(|&at| [at - 1, at, at + 1]).collect();
    locations.extend((0..whole.len()).step_by(whole.len() / 40));
    locations.retain(|&at| at <= last);
    for at in locations {
        for mask in [0x01, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= mask;
            write(&env.log(FIRST), &damaged);
            let output = env.kapi(&["audit", "--json"]);
            let report = output.document();
            let line = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let reported = format!("byte {at} (line {line} of {lines}) ^ {mask:#x}: {report:#}");
            assert_eq!(
                (output.code, &report["ok"]),
                (4, &Value::Bool(false)),
                "{reported}"
            );
            assert!(names_line(&report, line), "{reported}");
            assert!(fs::read(env.log(FIRST)).unwrap() == damaged, "{reported}");
        }
    }
}

#[test]
fn no_command_changes_a_damaged_log() {
    let env = paused_environment();
    let whole = fs::read(env.log(FIRST)).unwrap();
    for at in [
        0,
        40,
        whole.len() / 3,
        whole.len() / 2,
        whole.len() - 2,
        whole.len() - 1,
    ] {
        for keeps_state in [true, false] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x04;
            write(&env.log(FIRST), &damaged);
            let state = env.goal_dir(FIRST).join("state.json");
            let saved = fs::read(&state).unwrap();
            if !keeps_state {
                fs::remove_file(&state).unwrap();
            }
            for (args, code) in COMMANDS {
                let output = env.kapi(args);
                let now = fs::read(env.log(FIRST)).unwrap();
                let reported = format!("{args:?} at byte {at}: {output:?}");
                assert_eq!(now, damaged, "{reported}");
                // With a sound fold, what only shows reads no more than what comes after it.
                let writes = ["resume", "cancel", "budget", "audit"].contains(&args[0]);
                assert!(keeps_state && !writes || output.code == *code, "{reported}");
            }
            let status = env.kapi(&["status"]);
            assert_eq!(status.code, 0, "{status:?}");
            write(&state, saved);
        }
    }
}

#[test]
fn a_torn_tail_was_never_accepted_and_is_cut_by_the_next_event() {
    let env = paused_environment();
    let whole = fs::read(env.log(FIRST)).unwrap();
    let torn = [&whole[..], br#"{"v":1,"seq":99,"at":"20"#].concat();
    write(&env.log(FIRST), &torn);
    let report = env.json(&["audit"]);
    assert_eq!(report["ok"], true);
    assert_eq!(report["goals"][0]["torn_bytes"], 24);
    assert_eq!(env.json(&["status"])["goals"][0]["status"], "paused");
    assert!(
        fs::read(env.log(FIRST)).unwrap() == torn,
        "looking changes nothing"
    );
    assert_eq!(env.kapi(&["budget", "1", "--turns", "+1"]).code, 0);
    let healed = fs::read(env.log(FIRST)).unwrap();
    assert!(healed.starts_with(&whole) && healed.ends_with(b"}\n"));
    let report = env.json(&["audit"]);
    assert_eq!(
        (&report["ok"], &report["goals"][0]["torn_bytes"]),
        (&true.into(), &0.into())
    );
    env.resume("1").assert_status("done", 0);
}

#[test]
fn derived_files_are_made_again_from_the_log() {
    let env = paused_environment();
    let shown = || {
        let mut shown = env.json(&["show", "1"]);
        // It names the limits, which are raised below.
        shown.as_object_mut().unwrap().remove("standing");
        shown
    };
    let before = shown();
    for damage in [None, Some("{}"), Some("not json"), Some("")] {
        for path in derived(&env) {
            match damage {
                None => fs::remove_file(&path).unwrap(),
                Some(text) => write(&path, text),
            }
            assert_eq!(shown(), before, "{} {damage:?}", path.display());
            assert_eq!(env.json(&["status"])["goals"][0]["status"], "paused");
        }
        assert_eq!(env.kapi(&["budget", "1", "--turns", "+1"]).code, 0);
        let report = env.json(&["audit"]);
        assert_eq!(report["ok"], true, "{damage:?}: {report:#}");
    }
    env.resume("1").assert_status("done", 0);
    for path in derived(&env) {
        let text = fs::read_to_string(&path).unwrap();
        serde_json::from_str::<Value>(&text).unwrap();
    }
    assert_eq!(
        env.json(&["audit"])["goals"][0]["stale"],
        serde_json::json!([])
    );
}

#[test]
fn a_goal_cannot_be_rewritten_by_its_own_state_file() {
    let env = paused_environment();
    let state = env.goal_dir(FIRST).join("state.json");
    let text = fs::read_to_string(&state).unwrap();
    let forged = text.replacen("\"paused\"", "\"done\"", 1);
    assert_ne!(text, forged);
    write(&state, forged);
    assert_eq!(env.json(&["status"])["goals"][0]["status"], "paused");
    assert_eq!(env.json(&["show", "1"])["status"], "paused");
    let report = env.json(&["audit"]);
    assert!(report.to_string().contains("state.json"), "{report:#}");
}

#[test]
fn one_damaged_goal_does_not_hide_the_others() {
    let env = paused_environment();
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let mut damaged = fs::read(env.log(FIRST)).unwrap();
    damaged[10] ^= 1;
    write(&env.log(FIRST), &damaged);
    fs::remove_file(env.goal_dir(FIRST).join("state.json")).unwrap();
    let status = env.json(&["status"]);
    let statuses: Vec<&Value> = status["goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| &goal["status"])
        .collect();
    assert_eq!(statuses, ["damaged", "done"]);
    assert!(
        status["goals"][0]["fault"]
            .as_str()
            .unwrap()
            .contains("events.jsonl"),
        "{status}"
    );
    let report = env.kapi(&["audit", "--json"]).document();
    assert_eq!(report["goals"][1]["ok"], true);
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
}

/// Makes a machine with a goal that waits for a second turn.
fn paused_environment() -> Environment {
    let env = Environment::new();
    let agent = "command:[ $KAPI_TURN = 1 ] || echo 42 > answer.txt";
    env.run(agent, &["--turns", "1"]).assert_status("paused", 5);
    env
}

fn derived(env: &Environment) -> [PathBuf; 3] {
    let goal = env.goal_dir(FIRST);
    let inventory = env.repository().join(".ilchul/inventory.json");
    [
        goal.join("state.json"),
        goal.join("snapshot.json"),
        inventory,
    ]
}

/// Tells whether a fault names the log and the line, or the one after: that is where a broken
/// chain shows.
fn names_line(report: &Value, line: usize) -> bool {
    let faults = report["goals"][0]["faults"].as_array().unwrap();
    let mut texts = faults.iter().map(|fault| fault.as_str().unwrap());
    texts.any(|text| {
        let names = |number: usize| {
            let location = format!("line {number}");
            let rest = text.split_once(&location).map(|(_, rest)| rest);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        text.contains("events.jsonl") && (names(line) || names(line + 1))
    })
}
