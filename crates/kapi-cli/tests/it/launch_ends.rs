//! How a launch ends: by its agent, by a limit, or by a kill.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::environment::{Environment, await_some};
use crate::launch::{TASK, launch, paths, status};

#[test]
fn the_exit_code_of_the_agent_is_passed_on_and_its_work_is_kept() {
    let env = Environment::new();
    let output = launch(
        &env,
        "1",
        "echo half > half.txt; exit 42",
        &["--branch", "half"],
    );
    let document = output.document();
    assert_eq!(
        (output.code, &document["agent_exit_code"]),
        (42, &42.into()),
        "{output:?}"
    );
    assert!(
        document["error"].as_str().unwrap().contains("42"),
        "{document}"
    );
    assert_eq!(env.show("half", "half.txt"), "half");
    let status = status(&env, &document);
    assert_eq!(
        (&status["exit_code"], &status["phase"]),
        (&42.into(), &"complete".into())
    );
    assert!(status["error"].as_str().unwrap().contains("42"), "{status}");
}

#[test]
fn two_launches_of_one_id_do_not_meet() {
    let env = Environment::new();
    let agent = "command:touch began; while :; do sleep 0.05; done";
    let project = env.repository().display().to_string();
    let running = env.start(&[
        "launch", "1", &project, "--task", TASK, "--agent", agent, "--json",
    ]);
    await_state(&env, "running");
    launch(&env, "1", "true", &[]).assert_error(7, &["in use", "pid"]);
    running.signal(Signal::INT);
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    assert_eq!(paths(&output.document()), ["added began"]);
    await_state(&env, "failed");
}

fn await_state(env: &Environment, state: &str) {
    await_some(state, || {
        let listed = env.json(&["sandbox", "list"]);
        let has_begun = |one: &Value| {
            let upper = Path::new(one["sandbox"].as_str().unwrap()).join("layer/upper/began");
            upper.exists() || fs::read_dir(env.home().join(".ilchul/worktrees")).is_ok()
        };
        let one = listed.as_array()?.first()?;
        (one["state"] == state && has_begun(one)).then_some(())
    });
}

#[test]
fn a_killed_launcher_leaves_nothing_alive_and_the_next_launch_goes_on() {
    for options in [
        &["--branch", "b"][..],
        &[],
        &["--branch", "c", "--worktree-mode"],
    ] {
        let env = Environment::new();
        let agent = "command:touch began; setsid sleep 3000 & while :; do sleep 0.05; done";
        let project = env.repository().display().to_string();
        let fixed = [
            "launch", "1", &project, "--task", TASK, "--agent", agent, "--json",
        ];
        let running = env.start(&[&fixed, options].concat());
        await_some("the agent's file", || {
            let status = env.home().join(".ilchul");
            let found = env
                .kapi_in(env.root(), &["sandbox", "list", "--json"])
                .document();
            let dir = PathBuf::from(found.get(0)?["sandbox"].as_str()?);
            let key = dir.parent()?.file_name()?.to_owned();
            let worktree = status.join("worktrees").join(key).join("launch-1/began");
            (dir.join("layer/upper/began").exists() || worktree.exists()).then_some(())
        });
        running.kill();
        env.await_no_process();
        let listed = env.json(&["sandbox", "list"]);
        assert_eq!(listed[0]["state"], "stopped", "{listed:#}");
        // Something else is not put on top of it.
        let other = launch(&env, "1", "true", &["--branch", "other"]);
        other.assert_error(3, &["contains work of another launch", "discard"]);
        let output = launch(&env, "1", "ls began; echo 42 > answer.txt", options);
        let document = output.document();
        assert_eq!(output.code, 0, "{options:?} {output:?}");
        assert_eq!(
            paths(&document),
            ["modified answer.txt", "added began"],
            "{options:?}"
        );
        assert!(
            document["notes"][0]
                .as_str()
                .unwrap()
                .contains("interrupted"),
            "{document:#}"
        );
    }
}

#[test]
fn a_limit_that_was_met_on_the_way_is_told() {
    let env = Environment::new();
    env.configure("[sandbox]\nprocesses = 30\n");
    let agent = "(for n in $(seq 60); do sleep 2 & done; wait) 2>/dev/null; echo 42 > answer.txt";
    let document = launch(&env, "1", agent, &["--branch", "b"]).document();
    let notes = document["notes"].to_string();
    assert!(
        notes.contains("reached the limit of 30 processes"),
        "{document:#}"
    );
}
