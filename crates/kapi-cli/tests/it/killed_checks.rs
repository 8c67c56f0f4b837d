//! Verify commands that are killed from outside: they are run once more, and then nobody's work has failed.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::environment::{Environment, await_some, processes_with};
use crate::kernel_task;

/// Fails on the base, and dies with `deadly.txt`.
const DIES: &str = "if [ -e deadly.txt ]; then kill -KILL $$; fi; sh test.sh";
/// Makes what the command dies of.
const DEADLY: &str = "command:echo 42 > answer.txt; touch deadly.txt";
/// How it is told.
const KILLED: &str = "it was killed by SIGKILL twice, and not by Kapi";

/// Waits for a process whose command line begins so and holds `unlike_others`, other than `before`.
fn await_process(begin: &str, unlike_others: &str, before: Option<Pid>) -> Pid {
    await_some(begin, || {
        let all = processes_with(unlike_others);
        let mut found = all.iter().filter_map(|process| {
            let (pid, words) = process.split_once(' ')?;
            let pid = Pid::from_raw(pid.parse().ok()?)?;
            (words.starts_with(begin) && Some(pid) != before).then_some(pid)
        });
        found.next()
    })
}

fn commit_with(env: &Environment, names: &[&str]) {
    for name in names {
        env.write(name, "42\n");
    }
    env.commit_all("change");
}

#[test]
fn a_command_that_somebody_kills_is_run_once_more() {
    let env = Environment::new();
    commit_with(&env, &["answer.txt"]);
    let seconds = format!("7654.{}", std::process::id());
    let line = format!("sh test.sh && sleep {seconds}; sh test.sh");
    let running = env.start(&["prove", "HEAD", "--base", "HEAD~1", "--verify", &line]);
    let first = await_process("sleep", &seconds, None);
    let shell = await_process("/bin/sh -c", &seconds, None);
    kill_process(shell, Signal::KILL).unwrap();
    let second = await_process("sleep", &seconds, Some(first));
    kill_process(second, Signal::TERM).unwrap();
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let note = format!("`{line}` was killed by SIGKILL; it is run once more");
    assert!(output.stderr.contains(&note), "{output:?}");
}

#[test]
fn a_command_that_is_killed_again_cannot_run_and_refuses_nothing() {
    let env = Environment::new();
    commit_with(&env, &["answer.txt", "deadly.txt"]);
    for line in [DIES, &format!("true && sh -c '{DIES}' && true")] {
        let args = [
            "prove", "HEAD", "--base", "HEAD~1", "--verify", line, "--json",
        ];
        let output = env.kapi(&args);
        assert_eq!(output.code, 4, "{output:?}");
        let proof = output.document();
        assert_eq!(proof["verdict"], "cannot_run", "{proof}");
        assert_eq!(proof["verify"][0]["exit_code"], Value::Null, "{proof}");
        assert!(
            proof["reason"].as_str().unwrap().ends_with(KILLED),
            "{proof}"
        );
        assert!(
            proof["hint"].as_str().unwrap().contains("memory"),
            "{proof}"
        );
    }
}

#[test]
fn a_goal_whose_command_is_killed_spends_no_turn_on_it_and_is_never_done() {
    let env = Environment::new();
    let run = env.run(DEADLY, &["--verify", DIES]);
    run.assert_status("blocked", 4);
    run.assert_nothing_published(&env);
    assert!(run.reason().ends_with(KILLED), "{}", run.reason());
    assert!(run.verdicts().is_empty(), "{:?}", run.verdicts());
    // The same work is looked at again, without another turn of the agent.
    let run = env.resume("1");
    run.assert_status("blocked", 4);
    run.assert_nothing_published(&env);
    assert_eq!(run.events("agent_ended").len(), 0, "{}", run.result);
}

#[test]
fn a_goal_whose_command_is_killed_on_the_base_begins_no_turn() {
    let env = Environment::new();
    let run = env.run(DEADLY, &["--verify", "kill -KILL $$"]);
    run.assert_status("blocked", 5);
    assert!(run.reason().ends_with(KILLED), "{}", run.reason());
    assert_eq!(run.result["turns"], 0, "{}", run.result);
}

#[test]
fn a_task_whose_command_is_killed_did_not_fail_its_check() {
    let env = Environment::new();
    let result = kernel_task::result(&env, DEADLY, &["--verify", DIES], 5);
    assert_eq!(result["error_kind"], "not_launched", "{result}");
    assert!(
        result["error"].as_str().unwrap().ends_with(KILLED),
        "{result}"
    );
}
