//! Repositories and tasks of every kind a person may have, and those Kapi cannot work in.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::environment::{BRANCH, Environment, FIRST, usual};
use crate::program::{Run, finish};

const HONEST: &str = "command:echo 42 > answer.txt";

#[test]
fn any_words_make_a_task() {
    let env = Environment::new();
    for (task, slug) in [
        ("Grüße an alle 🎉", "001-gruesse-alle"),
        ("!!!", "002-goal"),
        ("line one\nline two", "003-line-one-line-two"),
    ] {
        let args = ["run", task, "--yes", "--json", "--agent", HONEST];
        let verify = ["--verify", "sh test.sh"];
        let run = Run::from(env.kapi(&[&args[..], &verify].concat()));
        run.assert_status("done", 0);
        assert_eq!(run.id(), slug);
        let message = env.git(&["log", "-1", "--format=%B", run.commit()]);
        assert!(message.contains(task), "{message}");
    }
    let long = "a".repeat(70_000);
    for (task, word) in [("", "no task"), (" ", "no task"), (&long, "intent")] {
        let args = ["run", task, "--yes", "--agent", HONEST, "--verify", "true"];
        env.kapi(&args).assert_error(2, &[word]);
    }
}

#[test]
fn a_linked_worktree_is_a_project_of_its_own() {
    let env = Environment::new();
    let linked = env.root().join("linked worktree ü");
    env.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "other",
        &linked.display().to_string(),
    ]);
    let here = env.run(HONEST, &[]);
    here.assert_status("done", 0);
    let there = Run::from(env.kapi_in(&linked, &usual(HONEST, &["--json"])));
    there.assert_status("done", 0);
    // One repository has one set of branches.
    assert_ne!(here.result["branch"], there.result["branch"]);
    for run in [&here, &there] {
        let branch = run.result["branch"].as_str().unwrap();
        assert_eq!(env.commit_of(branch), run.commit());
    }
    let shown = env.kapi_in(&linked, &["show", "1", "--json"]).document();
    assert_eq!(shown["id"], there.result["id"]);
}

#[test]
fn a_run_from_below_the_top_of_a_detached_checkout_works_too() {
    let env = Environment::new();
    env.write("deep/er/test.sh", "cd ../.. && sh test.sh\n");
    env.commit_all("a directory with a check");
    env.git(&["checkout", "--quiet", "--detach"]);
    let deep = env.repository().join("deep/er");
    let run = Run::from(env.kapi_in(&deep, &usual(HONEST, &["--json"])));
    run.assert_status("done", 0);
    assert!(env.log(FIRST).is_file(), "the state is at the top");
    assert_eq!(fs::read_dir(&deep).unwrap().count(), 1);
    assert_eq!(env.commit_of("HEAD"), env.commit_of("main"));
}

#[test]
fn another_base_is_a_base() {
    let env = Environment::new();
    env.write("later.txt", "later\n");
    env.commit_all("later");
    let run = env.run(HONEST, &["--base", "main~1"]);
    run.assert_status("done", 0);
    assert_eq!(
        env.commit_of(&format!("{BRANCH}^")),
        env.commit_of("main~1")
    );
    assert_eq!(
        env.git(&["ls-tree", "--name-only", BRANCH]),
        "answer.txt\ntest.sh"
    );
}

#[test]
fn long_object_ids_work() {
    let env = Environment::bare();
    fs::remove_dir_all(env.repository().join(".git")).unwrap();
    env.git(&["init", "--quiet", "-b", "main", "--object-format=sha256"]);
    env.write("answer.txt", "wrong\n");
    env.write("test.sh", crate::environment::TEST_SH);
    env.commit_all("base");
    let run = env.run(HONEST, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.commit().len(), 64);
    assert_eq!(env.commit_of(BRANCH), run.commit());
}

#[test]
fn a_project_s_own_tracked_configuration_is_left_alone() {
    let env = Environment::new();
    env.write(".ilchul/config.toml", "[goal]\nturns = 2\n");
    env.git(&["add", "--force", ".ilchul/config.toml"]);
    env.commit_all("configuration");
    let run = env.run("command:true", &[]);
    run.assert_status("paused", 5);
    assert_eq!(run.result["turns"], 2);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn where_there_is_nothing_to_start_from_it_says_so() {
    let env = Environment::bare();
    env.kapi(&usual(HONEST, &[]))
        .assert_error(4, &["no commit yet", "hint: create a first commit"]);
    assert!(!env.repository().join(".ilchul").exists());
    let bare = env.root().join("bare.git");
    let mut git = env.command("git", env.root());
    git.args(["init", "--quiet", "--bare"]).arg(&bare);
    assert_eq!(finish(git).code, 0);
    env.kapi_in(&bare, &usual(HONEST, &[]))
        .assert_error(4, &["no working tree", "hint: "]);
}

#[test]
fn a_repository_made_again_at_the_same_path_is_not_blocked_by_the_old_one() {
    let env = Environment::new();
    env.run(HONEST, &[]).assert_status("done", 0);
    for directory in [".git", ".ilchul"] {
        fs::remove_dir_all(env.repository().join(directory)).unwrap();
    }
    env.git(&["init", "--quiet", "--initial-branch", "main"]);
    env.commit_all("again");
    env.run(HONEST, &[]).assert_status("done", 0);
    // What the old one left is beside it, and nothing of it is lost.
    let worktrees = env.home().join(".ilchul/worktrees");
    let project = fs::read_dir(worktrees).unwrap().next().unwrap().unwrap();
    let aside = project.path().join(format!("{FIRST}.gone-1"));
    assert_eq!(
        fs::read_to_string(aside.join("answer.txt")).unwrap(),
        "42\n"
    );
}

#[test]
fn a_diff_calls_files_by_their_names() {
    let env = Environment::new();
    let agent = "command:echo 42 > answer.txt; : > \"$(printf 'a\\tb.txt')\"; : > 'say \"hi\"'";
    env.run(agent, &[]).assert_status("done", 0);
    let diff = env.json(&["diff", "1"]);
    let paths = ["a\tb.txt", "answer.txt", "say \"hi\""];
    assert_eq!(diff["paths"], serde_json::json!(paths), "{diff}");
}

#[test]
fn a_launch_refuses_the_inside_of_a_repository_and_a_path_that_is_no_text() {
    let env = Environment::new();
    let bare = env.root().join("bare.git");
    let path = bare.display().to_string();
    env.git(&["clone", "--quiet", "--bare", ".", &path]);
    let launch = ["launch", "1", ".", "--task", "x", "--agent", HONEST];
    env.kapi_in(&bare, &launch)
        .assert_error(2, &["no working tree", "hint: name a checkout"]);
    let odd = env.root().join(OsStr::from_bytes(b"odd\xe9"));
    fs::create_dir(&odd).unwrap();
    env.kapi_in(&odd, &launch)
        .assert_error(2, &["is not UTF-8", "hint: rename"]);
    let listed = env.json(&["sandbox", "list"]);
    assert_eq!(listed, serde_json::json!([]), "nothing is left half done");
}
