//! `kapi demo`, from nothing to a proved commit.

use std::fs;

use crate::environment::Environment;
use crate::program::{Run, parse};

/// Makes a machine without a repository of its own, and returns the directory to type in.
fn empty() -> (Environment, std::path::PathBuf) {
    let mut env = Environment::bare();
    let (dir, temp) = (env.root().join("empty"), env.root().join("temp"));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&temp).unwrap();
    env.set("TMPDIR", &temp.display().to_string());
    (env, dir)
}

#[test]
fn the_demo_refuses_twice_and_proves_once() {
    let (env, dir) = empty();
    let output = env.kapi_in(&dir, &["demo"]);
    assert_eq!(output.code, 0, "{output:?}");
    let said = [
        "scripted",
        "Everything else is real",
        "verify failed: `sh test.sh` exited with 1",
        "verify failed: protected file test.sh was changed",
    ];
    for words in said {
        assert!(
            output.stderr.contains(words),
            "{words:?} in {}",
            output.stderr
        );
    }
    assert!(
        output.stdout.contains("Goal 001-make-tests-pass: done\n"),
        "{output:?}"
    );
    assert_eq!(
        fs::read_dir(&dir).unwrap().count(),
        0,
        "nothing is left where it was typed"
    );
    assert!(!env.home().join(".ilchul").exists(), "nor in the home");
    env.await_no_process();
}

#[test]
fn the_demo_speaks_json_and_leaves_a_repository_to_look_at() {
    let (env, dir) = empty();
    let output = env.kapi_in(&dir, &["demo", "--dir", "here", "--json"]);
    let run = Run::from(output);
    run.assert_status("done", 0);
    assert_eq!(run.verdicts(), ["verify_failed", "tampered"]);
    assert_eq!(run.result["judge"]["verdict"], "done");
    let repository = dir.join("here/sums");
    let mut git = env.command("git", &repository);
    git.args(["show", "fix/goal-make-tests-pass:add.sh"]);
    let shown = crate::program::finish(git).stdout;
    assert_eq!(
        shown,
        "# Prints the sum of two numbers.\necho $(($1 + $2))\n"
    );
    let again = env.kapi_in(&dir, &["demo", "--dir", "here"]);
    again.assert_error(2, &["exists already", "--dir"]);
    let shown = env.kapi_in(&repository, &["show", "1", "--json"]);
    assert_eq!(parse(shown.stdout.trim_end())["status"], "done");
}

#[test]
fn the_lines_that_the_demo_ends_with_can_be_typed() {
    let (mut env, dir) = empty();
    let output = env.kapi_in(&dir, &["demo", "--dir", "at my desk"]);
    assert_eq!(output.code, 0, "{output:?}");
    let (_, lines) = output.stderr.split_once("Look around:\n").unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 3, "{output:?}");
    for line in &lines {
        let mut shell = env.command("sh", &dir);
        shell.args(["-c", line]);
        let typed = crate::program::finish(shell);
        assert_eq!(typed.code, 0, "{line}: {typed:?}");
    }
    assert!(!dir.join("at my desk").exists());
    env.set("PATH", "/nonexistent");
    env.kapi_in(&dir, &["demo", "--dir", "here"])
        .assert_error(4, &["find git on PATH"]);
    assert!(!dir.join("here").exists(), "nothing is left half done");
}
