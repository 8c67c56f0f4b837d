//! Launches whose launcher was killed behind their agent: what it made is taken over, and it is not run,
//! and not paid for, again.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::environment::{Environment, for_each, write};
use crate::kernel_resume::git_call_does;
use crate::program::Output;

/// Uses 1,000 tokens, commits by itself, and leaves a change behind.
const STEPS: &str = "turns:\n  - steps:\n      - usage: {input_tokens: 900, output_tokens: 100}\n      \
     - bash: echo 42 >> answer.txt; git commit -qam own; echo later >> notes.txt\n      \
     - say: it ran\n";

/// Launches the agent by these options.
fn launch(env: &Environment, options: &[&str]) -> Output {
    let agent = env.script("works.yaml", STEPS);
    let fixed = [
        "launch", "1", ".", "--task", "t", "--agent", &agent, "--json",
    ];
    env.kapi(&[&fixed[..], options].concat())
}

/// Makes a machine whose repository has a remote and a branch of the person's.
fn machine() -> Environment {
    let env = Environment::new();
    let bare = env.root().join("remote.git").display().to_string();
    env.git(&["init", "--quiet", "--bare", &bare]);
    env.git(&["remote", "add", "origin", &bare]);
    env.git(&["push", "--quiet", "origin", "main"]);
    env.git(&["branch", "mine"]);
    env
}

/// Returns the directory of the launch's sandbox.
fn sandbox(env: &Environment) -> PathBuf {
    let projects = fs::read_dir(env.home().join(".ilchul/sandboxes")).unwrap();
    let mut dirs = projects.map(|project| project.unwrap().path().join("1"));
    dirs.find(|dir| dir.join("events.jsonl").is_file()).unwrap()
}

fn kinds(env: &Environment) -> Vec<String> {
    let log = fs::read_to_string(sandbox(env).join("events.jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str(line).unwrap());
    events
        .map(|event: Value| event["type"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks that the launch has ended well, by one run of its agent that was paid for once.
fn assert_done_once(env: &Environment, case: &str) {
    let kinds = kinds(env);
    let n_of = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    for kind in ["launched", "agent_ended", "ended"] {
        assert_eq!(n_of(kind), 1, "{case}: {kinds:?}");
    }
    let show = env.json(&["show", "launch/1"]);
    assert_eq!(show["state"], "finished", "{case}: {show:#}");
    assert_eq!(show["used"]["input_tokens"], 900, "{case}: {show:#}");
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{case}: {audit:?}");
}

#[test]
fn resume_takes_over_what_an_agent_had_finished_wherever_the_launcher_was_killed() {
    // Each, and how many git processes lie between one that is killed and the next.
    let all: [(&[&str], usize); 4] = [
        (&["--branch", "b"], 1),
        (&["--branch", "mine", "--push", "--keep-commits"], 2),
        (&["--branch", "b", "--keep-commits", "--worktree-mode"], 6),
        (&["--branch", "mine", "--sandbox", "none"], 4),
    ];
    for (options, step) in all {
        let branch = options[1];
        let mut env = machine();
        let git = git_call_does(&mut env, 0, "exit 1");
        let output = launch(&env, options);
        assert_eq!(output.code, 0, "{options:?}: {output:?}");
        let calls = git.said();
        assert!(calls.len() > 1, "{calls:?}");
        let subjects =
            |env: &Environment| env.git(&["log", "--format=%s", &format!("main..{branch}")]);
        let refs = |env: &Environment| {
            let listed = env.git(&["for-each-ref", "--format=%(refname)"]);
            // Without the project's key, which is another one on each machine.
            let names = listed.lines().map(|name| match name.split_once("launch-") {
                Some((before, key)) => format!("{before}{}", key.split_once('-').unwrap().1),
                None => name.to_owned(),
            });
            names.collect::<Vec<String>>()
        };
        let (whole, named) = (subjects(&env), refs(&env));
        assert_done_once(&env, "not killed");
        let cases: Vec<usize> = (1..=calls.len()).step_by(step).collect();
        for_each(&cases, |n| {
            let case = format!("{options:?} killed at {n}: {}", calls[n - 1]);
            let mut env = machine();
            git_call_does(&mut env, *n, "kill -KILL $PPID");
            launch(&env, options);
            env.await_no_process();
            let was_over = kinds(&env).last().unwrap() == "ended";
            let resumed = env.kapi(&["resume", "launch/1", "--json"]);
            if was_over {
                resumed.assert_error(3, &["has ended well"]);
            } else {
                assert_eq!(resumed.code, 0, "{case}: {resumed:?}");
                let document = resumed.document();
                assert_eq!(document["launches"], 1, "{case}: {document:#}");
                assert_eq!(document["message"], "it ran", "{case}: {document:#}");
                let commit = env.commit_of(branch);
                assert_eq!(document["branch"]["commit"], commit, "{case}: {document:#}");
                assert_eq!(document["branch"]["landed"], branch, "{case}: {document:#}");
            }
            assert_done_once(&env, &case);
            assert_eq!(subjects(&env), whole, "{case}");
            assert_eq!(refs(&env), named, "{case}");
            assert_eq!(env.show(branch, "notes.txt"), "later", "{case}");
            let spent = env.json(&["spend"]);
            let total = (&spent["total"]["turns"], &spent["total"]["input_tokens"]);
            assert_eq!(total, (&json!(1), &json!(900)), "{case}: {spent:#}");
        });
    }
}

/// Launches without a branch, and lets it seem that the launcher was killed before it noted the end.
fn cut_off(env: &Environment) {
    let output = launch(env, &[]);
    assert_eq!(output.code, 0, "{output:?}");
    let dir = sandbox(env);
    let log = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let (ended, before) = lines.split_last().unwrap();
    assert!(ended.contains("\"ended\""), "{ended}");
    write(&dir.join("events.jsonl"), before.join("\n") + "\n");
    let launched: Value = serde_json::from_str(before[0]).unwrap();
    let sandbox = launched["data"]["sandbox"].to_string();
    write(&dir.join("sandbox.json"), sandbox);
    drop(fs::remove_file(dir.join("state.json")));
}

#[test]
fn what_has_no_branch_waits_in_its_sandbox() {
    let env = Environment::new();
    cut_off(&env);
    let resumed = env.kapi(&["resume", "launch/1", "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(
        resumed.stderr.contains("its work is taken over"),
        "{resumed:?}"
    );
    assert_done_once(&env, "no branch");
    let document = resumed.document();
    assert_eq!(document["changed"][0]["path"], "answer.txt", "{document:#}");
    let merged = env.kapi(&["sandbox", "merge", "1", "--json"]);
    assert_eq!(merged.code, 0, "{merged:?}");
    assert_eq!(
        fs::read_to_string(env.repository().join("notes.txt")).unwrap(),
        "later\n"
    );
}

#[test]
fn another_task_is_new_work() {
    let env = Environment::new();
    cut_off(&env);
    let agent = env.script("works.yaml", STEPS);
    let fixed = [
        "launch", "1", ".", "--task", "more", "--agent", &agent, "--json",
    ];
    let output = env.kapi(&fixed);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.document()["launches"], 2, "{output:?}");
    let kinds = kinds(&env);
    let n_agents = kinds.iter().filter(|it| *it == "agent_ended").count();
    assert_eq!(n_agents, 2, "{kinds:?}");
}
