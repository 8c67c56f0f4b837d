//! Several processes in one project: two runs, a cancel from outside, a follower of the log.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::environment::{Environment, FIRST, processes_with};
use crate::program::Run;

#[test]
fn runs_of_the_same_task_at_once_all_finish() {
    let env = Environment::new();
    let agent = "command:sleep 0.3; echo 42 > answer.txt";
    // Two are the promise; more of them meet more often at the same step.
    let started = [0; 4].map(|_| env.start_run(agent, &[]));
    let runs = started.map(|running| Run::from(running.finish()));
    for run in &runs {
        run.assert_status("done", 0);
        let branch = run.result["branch"].as_str().unwrap();
        assert_eq!(env.commit_of(branch), run.commit());
        assert_eq!(env.show(branch, "answer.txt"), "42");
    }
    let branches: BTreeSet<&str> = runs
        .iter()
        .map(|run| run.result["branch"].as_str().unwrap())
        .collect();
    assert_eq!(branches.len(), runs.len());
    let mut ids: Vec<&str> = runs.iter().map(Run::id).collect();
    ids.sort_unstable();
    let indexes: Vec<&str> = ids.iter().map(|id| &id[..4]).collect();
    assert_eq!(indexes, ["001-", "002-", "003-", "004-"]);
    let status = env.json(&["status"]);
    let goals = status["goals"].as_array().unwrap();
    let listed: Vec<&Value> = goals.iter().map(|goal| &goal["id"]).collect();
    assert_eq!(listed, ids);
    assert_eq!(env.json(&["audit"])["ok"], true);
}

#[test]
fn status_shows_who_drives_what() {
    let env = Environment::new();
    let running = [0, 1].map(|_| env.start_run("command:sleep 3000", &[]));
    for n in 1..=2 {
        crate::environment::await_some("two goals at work", || {
            let status = env.json(&["status"]);
            let goal = &status["goals"][n - 1];
            let is_driven = goal["status"] == "active" && !goal["driver"].is_null();
            (is_driven && !goal["worktree"].is_null()).then_some(())
        });
    }
    let human = env.kapi(&["status"]).stdout;
    assert_eq!(
        human.matches("active, driven by pid ").count(),
        2,
        "{human}"
    );
    for n in ["1", "2"] {
        assert_eq!(env.kapi(&["cancel", n]).code, 0);
    }
    for running in running {
        Run::from(running.finish()).assert_status("cancelled", 5);
    }
    env.await_no_process();
}

#[test]
fn a_cancel_from_another_process_ends_a_working_agent() {
    for sandbox in ["native", "none"] {
        let env = Environment::new();
        let agent = "command:setsid sleep 3000 >/dev/null 2>&1 & trap '' TERM INT HUP; sleep 3000; sleep 3000";
        let is_sleep = |line: &&String| {
            let words = line.split_once(' ').map(|(_, words)| words);
            words == Some("sleep 3000 ")
        };
        let running = env.start_run(agent, &["--sandbox", sandbox]);
        crate::environment::await_some("the agent's sleeps", || {
            // Of this machine: other tests have agents that sleep as long.
            let own = processes_with(&env.marker());
            (own.iter().filter(is_sleep).count() >= 2).then_some(())
        });
        let cancelled = env.json(&["cancel", "1", "--reason", "enough"]);
        assert_eq!(cancelled["status"], "cancelled");
        let run = Run::from(running.finish());
        run.assert_status("cancelled", 5);
        assert_eq!(run.reason(), "cancelled by the user: enough");
        env.await_no_process();
        env.kapi(&["cancel", "1"])
            .assert_error(3, &["is cancelled"]);
        env.kapi(&["resume", "1"])
            .assert_error(3, &["is cancelled"]);
        assert_eq!(env.json(&["audit"])["ok"], true);
        assert!(
            env.home().join(".ilchul/worktrees").is_dir(),
            "its work stays"
        );
    }
}

#[test]
fn a_followed_log_prints_every_event_once_and_ends_with_the_goal() {
    let env = Environment::new();
    let agent = "command:sleep 0.3; [ $KAPI_TURN = 1 ] || echo 42 > answer.txt";
    let running = env.start_run(agent, &[]);
    env.await_event(FIRST, &|event| event["type"] == "effect_intended");
    let follower = env.start(&["log", "1", "-f", "--json"]);
    Run::from(running.finish()).assert_status("done", 0);
    let followed = follower.finish();
    assert_eq!(followed.code, 0, "{followed:?}");
    let lines: Vec<Value> = followed.stdout.lines().map(crate::program::parse).collect();
    let seen: Vec<(&Value, &Value)> = lines
        .iter()
        .map(|line| (&line["seq"], &line["type"]))
        .collect();
    let log = env.events(FIRST);
    let recorded: Vec<(&Value, &Value)> = log
        .iter()
        .map(|line| (&line["seq"], &line["type"]))
        .collect();
    assert_eq!(seen, recorded);
    assert_eq!(seen.last().unwrap().1, &json!("goal_done"));
}
