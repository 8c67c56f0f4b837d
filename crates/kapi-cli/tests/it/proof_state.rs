//! Kapi's own state is nobody's in a sandbox, and hidden checks are what was approved or nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::environment::{Environment, FIRST, write};
use crate::launch::launch;

/// What the hidden check prints.
const SECRET: &str = "the-hidden-check";

/// Makes an environment with a goal that has hidden checks, and returns where they are kept.
fn hidden(agent: &str, options: &[&str]) -> (Environment, PathBuf) {
    let env = Environment::new();
    write(
        &env.root().join("hidden/test.sh"),
        format!("#!/bin/sh\necho {SECRET}\ngrep -q because notes.txt\n"),
    );
    let script = env.root().join("hidden/test.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let dir = env.root().join("hidden").display().to_string();
    env.run(
        agent,
        &[&["--turns", "1", "--hidden", &dir], options].concat(),
    );
    let kept = kept(&env);
    (env, kept)
}

fn kept(env: &Environment) -> PathBuf {
    let projects = env.home().join(".ilchul/hidden");
    let project = fs::read_dir(projects).unwrap().next().unwrap().unwrap();
    project.path().join(FIRST)
}

#[test]
fn hidden_checks_lie_in_the_home_and_are_private() {
    let (env, kept) = hidden("command:echo 42 > answer.txt", &[]);
    assert!(!env.goal_dir(FIRST).join("hidden").exists());
    for (name, mode) in [("", 0o700), ("files", 0o700), ("files/test.sh", 0o600)] {
        let found = fs::metadata(kept.join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, mode, "{name}");
    }
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn hidden_checks_changed_after_the_approval_prove_nothing() {
    let (env, kept) = hidden("command:echo 42 > answer.txt", &[]);
    write(&kept.join("files/test.sh"), "exit 0\n");
    let audit = env.kapi(&["audit", "--json"]);
    assert_ne!(audit.code, 0, "{audit:?}");
    assert!(
        audit
            .stdout
            .contains("changed since the approval: file test.sh"),
        "{audit:?}"
    );
    env.kapi(&["budget", "1", "--turns", "+1"]);
    let run = env.resume("1");
    run.assert_status("blocked", 4);
    run.assert_nothing_published(&env);
    assert!(
        run.reason()
            .contains("changed since the approval: file test.sh"),
        "{}",
        run.reason()
    );
    let shown = env.kapi(&["show", "1"]);
    assert!(shown.stdout.contains("file test.sh"), "{shown:?}");
}

#[test]
fn hidden_checks_of_a_goal_from_before_move_out_of_the_project() {
    let (env, kept) = hidden(
        "command:[ $KAPI_TURN = 1 ] || echo because > notes.txt; echo 42 > answer.txt",
        &[],
    );
    let old = env.goal_dir(FIRST).join("hidden");
    fs::remove_dir_all(&kept).unwrap();
    write(
        &old.join("test.sh"),
        fs::read_to_string(env.root().join("hidden/test.sh")).unwrap(),
    );
    fs::set_permissions(old.join("test.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(env.kapi(&["audit"]).code, 0);
    env.kapi(&["budget", "1", "--turns", "+1"]);
    let run = env.resume("1");
    run.assert_status("done", 0);
    assert!(!old.exists() && kept.join("files/test.sh").exists());
}

#[test]
fn cleanup_removes_the_hidden_checks_of_goals_that_are_gone() {
    let (env, kept) = hidden("command:echo 42 > answer.txt", &[]);
    env.kapi(&["cleanup", "--yes"]);
    assert!(kept.exists(), "its goal is there");
    fs::remove_dir_all(env.goal_dir(FIRST)).unwrap();
    let output = env.kapi(&["cleanup", "--yes"]);
    assert!(output.stdout.contains("hidden checks"), "{output:?}");
    assert!(!kept.exists());
}

/// What a launched agent can find out of the project's goals.
const SPY: &str = "ls -A .ilchul > seen.txt 2>&1; grep -rs the-hidden-check . >> seen.txt; \
                   cat .ilchul/goals/*/hidden/* .ilchul/goals/*/events.jsonl >> seen.txt 2>/dev/null; \
                   touch .ilchul/x 2>/dev/null && echo WRITABLE >> seen.txt; true";

#[test]
fn a_launch_sees_nothing_of_kapis_state() {
    for (id, options) in [
        ("1", &[][..]),
        ("2", &["--branch", "b"]),
        ("3", &["--branch", "c", "--worktree-mode"]),
    ] {
        let env = Environment::new();
        env.write(".ilchul/.gitignore", "*\n");
        env.write(".ilchul/goals/001-x/hidden/t.sh", SECRET);
        env.write(".ilchul/goals/001-x/events.jsonl", SECRET);
        launch(&env, id, SPY, options);
        let seen = env.kapi(&["sandbox", "exec", id, "--", "cat", "seen.txt"]);
        assert!(!seen.stdout.contains(SECRET), "{id}: {seen:?}");
        assert!(!seen.stdout.contains("goals"), "{id}: {seen:?}");
        let entered = env.kapi(&["sandbox", "exec", id, "--", "ls", "-A", ".ilchul"]);
        assert!(!entered.stdout.contains("goals"), "{id}: {entered:?}");
    }
}

#[test]
fn tracked_loops_are_seen_and_stay_whatever_a_launch_does() {
    for (id, options) in [
        ("1", &["--branch", "b"][..]),
        ("2", &["--branch", "c", "--worktree-mode"]),
    ] {
        let env = Environment::new();
        env.write(".ilchul/loops/tidy.md", "a loop\n");
        env.write(".ilchul/policy.yaml", "rules: []\n");
        env.write(".pi/loops/old.md", "an old loop\n");
        env.git(&["add", "--force", ".ilchul", ".pi"]);
        env.commit_all("loops");
        env.write(".ilchul/.gitignore", "*\n");
        env.write(".ilchul/goals/001-x/events.jsonl", SECRET);
        let spy = format!(
            "{SPY}; cat .ilchul/loops/tidy.md .ilchul/policy.yaml .pi/loops/old.md >> seen.txt; \
             rm -rf .ilchul .pi/loops/old.md; echo x > .ilchul/loops/tidy.md; \
             echo x > .pi/loops/old.md; echo 42 > answer.txt; true"
        );
        let document = launch(&env, id, &spy, options).document();
        let branch = options[1];
        assert_eq!(env.show(branch, "answer.txt"), "42", "{document}");
        let seen = env.show(branch, "seen.txt");
        for word in ["a loop", "rules", "an old loop"] {
            assert!(seen.contains(word), "{id} {word}: {seen}");
        }
        assert!(
            !seen.contains(SECRET) && !seen.contains("WRITABLE"),
            "{seen}"
        );
        for (file, text) in [
            (".ilchul/loops/tidy.md", "a loop"),
            (".ilchul/policy.yaml", "rules: []"),
            (".pi/loops/old.md", "an old loop"),
        ] {
            assert_eq!(env.show(branch, file), text, "{id} {file}");
        }
    }
}

#[test]
fn a_goals_agent_sees_tracked_loops_and_changes_none() {
    let env = Environment::new();
    env.write(".ilchul/loops/tidy.md", "a loop\n");
    env.git(&["add", "--force", ".ilchul"]);
    env.commit_all("loops");
    let agent = "command:cat .ilchul/loops/tidy.md > seen.txt; rm -rf .ilchul/loops; \
                 echo x > .ilchul/loops/tidy.md; echo 42 > answer.txt";
    let run = env.run(agent, &[]);
    run.assert_status("done", 0);
    assert_eq!(env.show(run.commit(), "seen.txt"), "a loop");
    assert_eq!(env.show(run.commit(), ".ilchul/loops/tidy.md"), "a loop");
    // A repository that brings loops brings no goals.
    assert_eq!(env.kapi(&["show", "1"]).code, 0);
    let again = env.kapi(&["goal", "reopen", "1", "look again"]);
    assert!(!again.stderr.contains("contains goals"), "{again:?}");
}
