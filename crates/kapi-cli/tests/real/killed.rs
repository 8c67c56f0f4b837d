//! `kill -9` of Kapi while a real CLI runs a long command: nothing is left running, and resuming
//! finishes the goal. What a killed CLI left of its own session stops nobody.

use std::path::PathBuf;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, Route};
use rustix::process::Signal;

use crate::environment::{BRANCH, FIRST, await_some, processes_with, write};
use crate::machine::{Machine, VERIFY_FAILED, activities, files_under};

/// Processes of every kind: behind the shell, in a session of its own, in front.
const LONG: &str = "echo half > answer.txt; echo new > extra.txt; sleep 900 & \
     setsid sleep 901 </dev/null >/dev/null 2>&1 & touch started; sleep 902";

fn check_kill(cli: Cli) {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash(LONG),
        AssistantTurn::text("It is done."),
    ]));
    let running = machine.env.start_run(cli.name(), &["--judge", "none"]);
    let created = machine
        .env
        .await_event(FIRST, &|event| event["type"] == "workspace_created");
    let worktree = PathBuf::from(created["data"]["path"].as_str().unwrap());
    await_some("the long command", || {
        worktree.join("started").exists().then_some(())
    });
    await_some("all of its processes", || {
        let processes = processes_with(&machine.env.marker());
        let is_there = |sleep| {
            processes
                .iter()
                .any(|line| line.trim_end().ends_with(sleep))
        };
        [" sleep 900", " sleep 901", " sleep 902"]
            .into_iter()
            .all(is_there)
            .then_some(())
    });

    running.signal(Signal::KILL);
    drop(running);
    machine.env.await_no_process();
    machine.assert_key_is_in_no_file();

    machine.server.set_scenario(ModelScenario::new(vec![
        AssistantTurn::bash("test ! -e extra.txt && echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]));
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
    assert_eq!(machine.commits_on(BRANCH).len(), 1);
    // What the attempt that was cut off had left is gone.
    let changed = machine.env.git(&["diff", "--name-only", "main", BRANCH]);
    assert_eq!(changed, "answer.txt");
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    let worktrees = machine.env.git(&["worktree", "list", "--porcelain"]);
    let count = worktrees
        .lines()
        .filter(|line| line.starts_with("worktree "))
        .count();
    assert_eq!(count, 2, "{worktrees}");
    assert_eq!(machine.env.kapi(&["audit"]).code, 0);
    machine.env.await_no_process();
}

/// Goes on with a CLI whose session was cut off before its first line was whole.
fn check_torn_session(cli: Cli) {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 41 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]);
    let second = AssistantTurn::bash("sleep 900");
    scenario.routes = vec![Route::new(VERIFY_FAILED, vec![second])];
    let machine = Machine::new(scenario);
    let running = machine.env.start_run(cli.name(), &["--judge", "none"]);
    machine.env.await_event(FIRST, &|event| {
        event["type"] == "effect_intended" && event["data"]["effect"] == "t002-agent-a1"
    });
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    machine.env.await_no_process();
    let mut sessions = files_under(&machine.private_home(cli));
    sessions.retain(|path, _| path.extension().is_some_and(|it| it == "jsonl"));
    assert!(!sessions.is_empty());
    for path in sessions.keys() {
        write(path, "");
    }

    machine.server.set_scenario(ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("Now it is right."),
    ]));
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 2);
    let notes = activities(&run, "note");
    let is_told = notes.iter().any(|note| note.contains("session is gone"));
    assert!(is_told, "{notes:?}");
}

#[test]
fn a_torn_session_of_claude_begins_anew() {
    check_torn_session(Cli::Claude);
}

#[test]
fn a_torn_session_of_codex_begins_anew() {
    check_torn_session(Cli::Codex);
}

#[test]
fn a_torn_session_of_gemini_begins_anew() {
    check_torn_session(Cli::Gemini);
}

#[test]
fn a_torn_session_of_pi_begins_anew() {
    check_torn_session(Cli::Pi);
}

#[test]
fn claude() {
    check_kill(Cli::Claude);
}

#[test]
fn codex() {
    check_kill(Cli::Codex);
}

#[test]
fn gemini() {
    check_kill(Cli::Gemini);
}

#[test]
fn pi() {
    check_kill(Cli::Pi);
}
