//! `kapi events`: one stream over everything of a project, in order, from where one left off.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use kapi_sys::clock::SystemClock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, write};
use crate::program::{Output, parse};
use crate::spend::{EXECUTOR, project, spend};

const HONEST: &str = "command:echo 42 > answer.txt";

fn lines(output: &Output) -> Vec<Value> {
    assert_eq!(output.code, 0, "{output:?}");
    output.stdout.lines().map(parse).collect()
}

fn events(env: &Environment, options: &[&str]) -> Vec<Value> {
    lines(&env.kapi(&[&["events", "--json"], options].concat()))
}

fn of<'a>(events: &'a [Value], stream: &str) -> Vec<&'a Value> {
    let of_it = events.iter().filter(|event| event["stream"] == stream);
    of_it.collect()
}

#[test]
fn goals_workflows_tasks_and_launches_are_one_stream_in_order() {
    let env = Environment::new();
    env.run(HONEST, &[]).assert_status("done", 0);
    let task = ["task", "run", "look", "--agent", "command:true", "--json"];
    let ran = env.kapi(&task);
    assert_eq!(ran.code, 0, "{ran:?}");
    let launched = env.kapi(&[
        "launch",
        "7",
        ".",
        "--task",
        "look",
        "--agent",
        "command:true",
    ]);
    assert_eq!(launched.code, 0, "{launched:?}");
    let interview = env.kapi(&["deep-interview", "say hello", "--agent", "command:true"]);
    assert_ne!(interview.code, 2, "{interview:?}");
    let all = events(&env, &[]);
    let goal = of(&all, &format!("goal/{FIRST}"));
    let logged = env.kapi(&["log", "1", "--json"]);
    for (event, line) in goal.iter().zip(logged.stdout.lines().map(parse)) {
        let mut without_stream = (*event).clone();
        without_stream.as_object_mut().unwrap().remove("stream");
        assert_eq!(without_stream, line);
    }
    assert_eq!(goal.len(), logged.stdout.lines().count());
    let kinds = |stream: &str| -> Vec<String> {
        let found = of(&all, stream);
        let kinds = found.iter().map(|event| event["type"].as_str().unwrap());
        kinds.map(str::to_owned).collect()
    };
    assert!(
        kinds("kernel").contains(&"submitted".to_owned()),
        "{all:#?}"
    );
    assert_eq!(
        kinds("launch/7"),
        ["launched", "run_recorded", "agent_ended", "ended"]
    );
    let ended = &of(&all, "launch/7")[3]["data"]["sandbox"];
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&"finished".into(), &0.into())
    );
    assert!(
        all.iter()
            .any(|event| event["workflow"].is_string() && event["type"] == "started"),
        "{all:#?}"
    );
    let times: Vec<i64> = all
        .iter()
        .map(|event| event["at_ms"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    // For people, the same events with words.
    let human = env.kapi(&["events"]);
    assert_eq!(human.stdout.lines().count(), all.len(), "{}", human.stdout);
    assert!(human.stdout.contains("contract hash"), "{}", human.stdout);
}

#[test]
fn a_cursor_continues_after_the_last_event() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let file = env.root().join("cursor.json");
    let cursor = ["--cursor", file.to_str().unwrap()];
    let first = events(&env, &cursor);
    assert!(!first.is_empty());
    assert!(events(&env, &cursor).is_empty());
    env.json(&["budget", "1", "--turns", "+1"]);
    let more = events(&env, &cursor);
    let kinds: Vec<&Value> = more.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["budget_raised"]);
    assert_eq!([first, more].concat(), events(&env, &[]));
    write(&file, "{}");
    let output = env.kapi(&["events", "--json", "--cursor", cursor[1]]);
    output.assert_error(2, &["cursor.json", "is not a cursor"]);
}

#[test]
fn what_happens_is_followed_and_a_log_that_begins_anew_is_read_anew() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let file = env.root().join("cursor.json");
    let follow = ["events", "-f", "--json", "--cursor", file.to_str().unwrap()];
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    let mut following = command.args(follow).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut await_kind = |kind: &str| {
        let mut events = lines.by_ref().map(|line| parse(&line.unwrap()));
        events.find(|event| event["type"] == kind).unwrap()
    };
    await_kind("goal_stopped");
    env.json(&["budget", "1", "--turns", "+1"]);
    let raised = await_kind("budget_raised");
    assert_eq!(raised["goal"], FIRST);
    // The log of another goal is followed from its first event on.
    env.kapi(&[
        "run",
        "write it",
        "--agent",
        "command:true",
        "--yes",
        "--turns",
        "1",
    ]);
    let created = await_kind("goal_created");
    assert_eq!(
        (&created["seq"], &created["stream"]),
        (&json!(1), &json!("goal/002-write"))
    );
    await_kind("goal_stopped");
    // Somebody damages one log: that is told once, and the others go on.
    let log = env.log(FIRST);
    let whole = fs::read(&log).unwrap();
    env.place(&log, &whole[..whole.len() / 2]);
    let damaged = await_kind("stream_unreadable");
    assert_eq!(damaged["stream"], format!("goal/{FIRST}"));
    env.json(&["cancel", "2"]);
    let cancelled = await_kind("goal_stopped");
    assert_eq!(cancelled["goal"], "002-write");
    let pid = Pid::from_child(&following);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(following.wait().unwrap().code(), Some(130));
    // Another log under the same name is told from its beginning.
    write(&log, &whole);
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    fs::remove_file(env.goal_dir(FIRST).join("state.json")).unwrap();
    write(&log, &whole[..=first]);
    let again = events(&env, &["--cursor", file.to_str().unwrap()]);
    let again = of(&again, &format!("goal/{FIRST}"));
    let kinds: Vec<&Value> = again.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["stream_restarted", "goal_created"]);
}

#[test]
fn what_is_spent_is_among_the_events_of_its_project_alone() {
    let (env, key) = project();
    spend(&env.home(), &SystemClock, "elsewhere", &[EXECUTOR]);
    assert!(events(&env, &[]).is_empty());
    spend(&env.home(), &SystemClock, &key, &[EXECUTOR]);
    let ours = events(&env, &[]);
    let kinds: Vec<&Value> = ours.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["reserved", "settled"]);
    assert_eq!(ours[0]["data"]["account"]["project"], json!(key));
    assert_eq!(ours[1]["data"]["used"]["usd_micros"], 1_250_000);
}

#[test]
fn an_error_has_a_form_for_programs_with_its_place() {
    let env = Environment::new();
    env.write(".ilchul/config.toml", "[goal]\nturnz = 1\nwal = \"soon\"\n");
    let output = env.kapi(&["run", "try it", "--yes", "--json"]);
    output.assert_error(2, &["config.toml", "turnz"]);
    let error = output.document();
    assert_eq!(error["code"], "usage");
    let file = error["place"]["file"].as_str().unwrap();
    assert!(file.ends_with(".ilchul/config.toml"), "{error}");
    assert_eq!(error["place"]["line"], 2);
    let faults = error["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2, "{error:#}");
    assert_eq!(faults[1]["place"]["line"], 3);
    let unknown = Environment::new().kapi(&["show", "9", "--json"]);
    unknown.assert_error(6, &[]);
    assert_eq!(unknown.document()["code"], "not_found");
    let typo = env.kapi(&["shwo", "--json"]);
    assert_eq!(typo.code, 2);
    let typo = typo.document();
    assert_eq!(
        (&typo["type"], &typo["code"]),
        (&json!("error"), &json!("usage"))
    );
    assert!(typo["message"].as_str().unwrap().contains("shwo"), "{typo}");
    let output = env.kapi(&["shwo"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
}

#[test]
fn every_command_is_there_over_one_process_too() {
    let env = Environment::new();
    env.run("command:true", &["--turns", "1"])
        .assert_status("paused", 5);
    let before = env.json(&["status"]);
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    command.arg("rpc").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let calls = [
        json!(["status"]),
        json!(["budget", "1", "--turns", "+1"]),
        json!(["show", "99"]),
        json!(["shwo"]),
        json!(["mcp"]),
    ];
    for (id, args) in calls.iter().enumerate() {
        let params = json!({"args": args});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "command", "params": params});
        writeln!(input, "{call}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(parse).collect();
    assert_eq!(answers.len(), calls.len(), "{text}");
    let result = |id: usize| &answers[id]["result"];
    assert_eq!(result(0)["documents"], json!([before]));
    assert_eq!(result(1)["exit_code"], 0);
    assert_eq!(result(1)["documents"][0]["budget"]["turns"], 2);
    assert_eq!(result(2)["exit_code"], 6);
    assert_eq!(result(2)["documents"][0]["code"], "not_found");
    assert_eq!(result(3)["exit_code"], 2);
    assert_eq!(result(3)["documents"][0]["code"], "usage");
    assert_eq!(answers[4]["error"]["code"], 2, "{text}");
}
