//! What is said where a goal is missing, empty or one of several, and what replacing waits for.

use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, TASK};
use crate::program::Run;

const HONEST: &str = "command:echo 42 > answer.txt";

fn new<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let usual = [
        "goal",
        "new",
        TASK,
        "--agent",
        HONEST,
        "--verify",
        "sh test.sh",
    ];
    [&usual[..], options].concat()
}

fn status(env: &Environment, reference: &str) -> Value {
    env.json(&["show", reference])["status"].clone()
}

#[test]
fn a_new_goal_without_a_text_says_how_to_give_one() {
    let env = Environment::new();
    for command in [
        &["goal", "new"][..],
        &["goal", "new", " "],
        &["goal", "new", "--draft"],
    ] {
        env.kapi(command).assert_error(
            2,
            &[
                "no goal was given",
                "kapi goal new \"<intent>\"",
                "--contract",
            ],
        );
    }
}

#[test]
fn saying_nothing_is_not_saying_something() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let before = env.events(FIRST);
    for text in ["", " \n"] {
        env.kapi(&["say", "1", text])
            .assert_error(2, &["the message is empty"]);
    }
    assert_eq!(env.events(FIRST), before);
}

#[test]
fn looking_where_everything_has_ended_shows_what_ended() {
    let env = Environment::new();
    for _ in 0..2 {
        env.run(HONEST, &[]).assert_status("done", 0);
    }
    let listed = env.json(&["goal", "slash", "status"]);
    assert_eq!(listed["goals"], json!([]));
    let ended = listed["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 2, "{listed}");
    assert!(ended.iter().all(|goal| goal["status"] == "done"));
    let human = env.kapi(&["goal", "slash", "status"]);
    assert_eq!(human.code, 0);
    assert!(human.stdout.starts_with("No active goal. "), "{human:?}");
    assert!(
        human.stdout.contains("002-make-answer-right-2 done"),
        "{human:?}"
    );
    // The latest is the one to look closer at.
    let detail = env.json(&["show", "--all"]);
    assert_eq!(detail["id"], "002-make-answer-right-2");
}

#[test]
fn looking_where_several_could_be_meant_lists_them() {
    let env = Environment::new();
    for _ in 0..2 {
        assert_eq!(env.kapi(&new(&["--keep"])).code, 5);
    }
    for verb in [
        "status",
        "detail",
        "tasks",
        "plan",
        "northstar",
        "replan-log",
    ] {
        let human = env.kapi(&["goal", "slash", verb]);
        assert_eq!(human.code, 0, "{verb}: {human:?}");
        assert_eq!(human.stdout.lines().count(), 2, "{verb}: {human:?}");
        for id in [FIRST, "002-make-answer-right"] {
            assert!(human.stdout.contains(id), "{verb}: {human:?}");
        }
        let listed = env.json(&["goal", "slash", verb]);
        assert_eq!(listed["goals"].as_array().unwrap().len(), 2, "{verb}");
    }
    // What changes something never guesses.
    let refused = env.kapi(&["goal", "approve", "--yes"]);
    refused.assert_error(2, &["2 goals match", FIRST]);
}

#[test]
fn a_goal_is_replaced_when_the_new_contract_is_approved_and_not_before() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let proposed = env.kapi(&new(&["--replace", "--json"]));
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let needed: Value = crate::program::parse(proposed.stdout.lines().next().unwrap());
    assert_eq!(status(&env, "1"), "paused");
    assert!(
        proposed.stderr.contains("stays unchanged until"),
        "{proposed:?}"
    );
    // Turned down, it has replaced nothing.
    env.kapi(&["goal", "reject", "2"]);
    assert_eq!(status(&env, "1"), "paused");
    assert_eq!(env.kapi(&new(&["--replace"])).code, 5);
    let line = needed["approve"].as_str().unwrap().replace("002", "003");
    assert!(line.ends_with(" --replace 001"), "{line}");
    let hash = env.json(&["show", "3", "--all"])["contract_hash"].clone();
    let hash = hash.as_str().unwrap();
    // What cannot be approved ends nothing either.
    let wrong = "0".repeat(64);
    let refused = env.kapi(&["goal", "approve", "3", "--hash", &wrong, "--replace", "1"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    env.kapi(&["goal", "approve", "3", "--yes", "--replace", "3"])
        .assert_error(2, &["replace itself"]);
    assert_eq!(status(&env, "1"), "paused");
    let approve = [
        "goal",
        "approve",
        "3",
        "--hash",
        hash,
        "--replace",
        "1",
        "--json",
    ];
    Run::from(env.kapi(&approve)).assert_status("done", 0);
    let old = env.json(&["show", "1"]);
    assert_eq!(old["status"], "cancelled");
    let reason = old["reason"].as_str().unwrap();
    assert!(reason.contains("replaced by goal 003-"), "{old}");
}
