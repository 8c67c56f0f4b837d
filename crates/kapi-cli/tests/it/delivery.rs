//! A proved branch at a remote, and a pull request for it: done, or refused before anything starts.
//!
//! The remote is a bare repository; `gh` is a program that writes down how it is called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, write};
use crate::program::finish;

pub(crate) const HONEST: &str = "command:echo 42 > answer.txt";
pub(crate) const ADDRESS: &str = "https://forge.example/o/r/pull/7";

/// Opens one pull request and knows it afterwards.
const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
case "$1 $2" in
  'auth status') ;;
  'pr view') [ -f "$here/opened" ] && cat "$here/opened" ;;
  'pr create')
    [ -f "$here/broken" ] && { echo 'HTTP 502: the forge is down' >&2; exit 1; }
    cat > "$here/body"; echo ADDRESS | tee "$here/opened" ;;
  *) exit 9 ;;
esac
"#;

/// Makes a machine whose repository has a remote; `gh` stands on PATH.
fn machine() -> Environment {
    with_forge(Environment::new())
}

/// Gives a machine's repository a remote; `gh` stands on PATH.
pub(crate) fn with_forge(mut env: Environment) -> Environment {
    let remote = env.root().join("remote.git");
    env.git(&["init", "--quiet", "--bare", &remote.display().to_string()]);
    env.git(&["remote", "add", "origin", &remote.display().to_string()]);
    let gh = bin(&env).join("gh");
    write(&gh, GH.replace("ADDRESS", ADDRESS));
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin(&env).display());
    env.set("PATH", &path);
    env
}

fn bin(env: &Environment) -> PathBuf {
    env.root().join("bin")
}

pub(crate) fn said(env: &Environment, name: &str) -> String {
    fs::read_to_string(bin(env).join(name)).unwrap_or_default()
}

/// Returns what a branch is at over there; empty where it is not.
pub(crate) fn there(env: &Environment, branch: &str) -> String {
    let mut git = env.command("git", &env.root().join("remote.git"));
    git.args(["rev-parse", "--verify", "--quiet", branch]);
    finish(git).stdout.trim().to_owned()
}

fn delivery(env: &Environment) -> Value {
    let text = fs::read_to_string(env.goal_dir(FIRST).join("delivery.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_proved_branch_is_pushed_and_a_pull_request_opened_with_the_evidence() {
    let env = machine();
    let run = env.run(HONEST, &["--pr", "--pr-base", "main"]);
    run.assert_status("done", 0);
    let commit = env.commit_of(BRANCH);
    assert_eq!(there(&env, BRANCH), commit);
    let told = run.lines.iter().find(|line| line["type"] == "delivery");
    let told = told.unwrap();
    assert_eq!(
        (&told["pull_request"], &told["opened"], &told["commit"]),
        (&json!(ADDRESS), &json!(true), &json!(commit))
    );
    let calls = said(&env, "calls");
    let created = format!(
        "pr create --head {BRANCH} --title feat: make the answer right --body-file - --base main"
    );
    assert!(calls.lines().any(|line| line == created), "{calls}");
    let body = said(&env, "body");
    for words in [
        "make the answer right",
        "| `sh test.sh` | exited with 1 | exited with 0 |",
        FIRST,
    ] {
        assert!(body.contains(words), "{words:?} in {body}");
    }
    assert_eq!(delivery(&env)["error"], Value::Null);
    // Whatever is there already is found, not made again.
    let again = env.kapi(&["deliver", "1", "--pr"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains(ADDRESS), "{again:?}");
    assert_eq!(said(&env, "calls").matches("pr create").count(), 1);
}

#[test]
fn what_could_not_be_delivered_is_refused_before_anything_starts() {
    let env = machine();
    for (options, words) in [
        (
            &["--push", "--remote", "nowhere"][..],
            &["nowhere", "git remote -v"][..],
        ),
        (&["--push", "--remote", "gone"], &["push to remote gone"]),
    ] {
        env.git(&["config", "remote.gone.url", "/nonexistent/r.git"]);
        let usual = [
            "run",
            "make the answer right",
            "--verify",
            "sh test.sh",
            "--agent",
            HONEST,
            "--yes",
        ];
        env.kapi(&[&usual[..], options].concat())
            .assert_error_among_talk(4, words);
    }
    fs::remove_file(bin(&env).join("gh")).unwrap();
    let usual = [
        "run",
        "make the answer right",
        "--verify",
        "sh test.sh",
        "--agent",
        HONEST,
        "--yes",
        "--pr",
    ];
    env.kapi(&usual).assert_error_among_talk(
        4,
        &[
            "no pull request could be opened",
            "neither gh nor glab is installed",
            "--push",
        ],
    );
    assert!(
        !env.repository().join(".ilchul/goals").exists(),
        "no goal was made"
    );
    // A known forge needs no program: its page is told, and the branch is pushed.
    let remote = env.root().join("remote.git").display().to_string();
    env.git(&["config", "remote.origin.url", "https://github.com/o/r.git"]);
    env.git(&[
        "config",
        &format!("url.{remote}.insteadOf"),
        "https://github.com/o/r.git",
    ]);
    let done = env.kapi(&usual);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains("Neither gh nor glab is ready"),
        "{done:?}"
    );
    let page = format!("open it at https://github.com/o/r/compare/{BRANCH}?expand=1");
    assert!(done.stdout.contains(&page), "{done:?}");
    assert_eq!(there(&env, BRANCH), env.commit_of(BRANCH));
}

#[test]
fn a_delivery_that_fails_at_the_end_is_told_and_can_be_repeated() {
    let env = machine();
    write(&bin(&env).join("broken"), "");
    let run = env.run(HONEST, &["--pr"]);
    assert_eq!(
        (run.code, &run.result["status"]),
        (4, &json!("done")),
        "{}",
        run.stderr
    );
    for words in ["the forge is down", "kapi deliver 001"] {
        assert!(run.stderr.contains(words), "{words:?} in {}", run.stderr);
    }
    assert!(delivery(&env)["error"].as_str().unwrap().contains("502"));
    let shown = env.kapi(&["show", "1"]).stdout;
    assert!(
        shown.contains("not delivered") && shown.contains("kapi deliver"),
        "{shown}"
    );
    fs::remove_file(bin(&env).join("broken")).unwrap();
    let repeated = env.kapi(&["deliver", "1"]);
    assert_eq!(repeated.code, 0, "{repeated:?}");
    let shown = env.kapi(&["show", "1"]).stdout;
    assert!(
        shown.contains(ADDRESS) && !shown.contains("not delivered"),
        "{shown}"
    );
}

#[test]
fn a_person_s_file_may_ask_for_it_and_a_project_s_may_not() {
    let env = machine();
    env.configure("[deliver]\npush = true\n");
    env.run(HONEST, &["--no-push"]).assert_status("done", 0);
    assert_eq!(there(&env, BRANCH), "");
    let run = env.run(HONEST, &[]);
    run.assert_status("done", 0);
    let branch = run.result["branch"].as_str().unwrap();
    assert_eq!(there(&env, branch), env.commit_of(branch));
    assert_eq!(said(&env, "calls"), "", "no pull request was asked for");
    env.configure("");
    env.write(".ilchul/config.toml", "[deliver]\npush = true\n");
    env.kapi(&["run", "x", "--verify", "true", "--agent", HONEST, "--yes"])
        .assert_error_among_talk(2, &["deliver"]);
}

#[test]
fn what_is_not_proved_is_not_delivered() {
    let env = machine();
    let run = env.run(HONEST, &["--unverified", "--push"]);
    run.assert_status("unverified", 0);
    assert!(run.stderr.contains("not delivered"), "{}", run.stderr);
    assert_eq!(there(&env, BRANCH), "");
}

#[test]
fn the_person_is_the_author_and_kapi_a_trailer_and_any_script_names_the_branch() {
    let env = machine();
    env.git(&["config", "user.name", "Ada Lovelace"]);
    env.git(&["config", "user.email", "ada@example.invalid"]);
    let run = env.kapi(&[
        "run",
        "修复登录",
        "--verify",
        "sh test.sh",
        "--agent",
        HONEST,
        "--push",
        "--yes",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let branch = "feat/goal-xiufudenglu";
    assert_eq!(there(&env, branch), env.commit_of(branch));
    let log = env.git(&[
        "log",
        "-1",
        "--format=%an <%ae>%n%(trailers:key=Kapi-Goal,valueonly)",
        branch,
    ]);
    assert_eq!(log, "Ada Lovelace <ada@example.invalid>\n001-xiufudenglu");
}
