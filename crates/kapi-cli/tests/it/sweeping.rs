//! What takes much of a project away is asked about or named before it is taken over, and what cannot
//! be kept is refused before it begins.

use std::fs;
use std::os::unix::fs::chown;

use crate::environment::{Environment, write};
use crate::launch::{launch_on, plain_project};

/// A group that is nobody's.
const OTHER_GROUP: u32 = 54_321;

#[test]
fn a_merge_that_deletes_most_of_a_project_needs_a_yes() {
    let env = Environment::new();
    let plain = plain_project(&env);
    for n in 0..4 {
        write(&plain.join(format!("sub/{n}.txt")), "text");
    }
    let launched = launch_on(&env, "1", &plain, "rm -r sub", &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    let reported = env.json(&["sandbox", "merge", "1", "--dry-run"]);
    assert_eq!(reported["mass_deletion"]["deleted"], 5, "{reported:#}");
    let refused = env.kapi(&["sandbox", "merge", "1"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.stderr.contains("deletes 5 of 6 files"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--take-deletions"), "{refused:?}");
    assert!(plain.join("sub/0.txt").exists());
    let merged = env.kapi(&["sandbox", "merge", "1", "--take-deletions"]);
    assert_eq!(merged.code, 0, "{merged:?}");
    assert!(!plain.join("sub").exists());
}

#[test]
fn a_proved_goal_that_deletes_most_of_a_project_says_so() {
    let env = Environment::new();
    for n in 0..5 {
        env.write(&format!("src/{n}.txt"), "text");
    }
    env.commit_all("more");
    let run = env.run("command:rm -r src; echo 42 > answer.txt", &[]);
    run.assert_status("done", 0);
    let shown = env.kapi(&["show", "1"]);
    assert!(shown.stdout.contains("deletes 5 of 7 files"), "{shown:?}");
    assert_eq!(env.json(&["show", "1"])["deletes"]["deleted"], 5);
}

#[test]
fn a_layer_over_files_of_another_group_is_refused_before_anything_runs() {
    let env = Environment::new();
    let plain = plain_project(&env);
    // Only root can make such a file here; everybody else can in a group of theirs.
    if chown(plain.join("a.txt"), None, Some(OTHER_GROUP)).is_err() {
        return;
    }
    let launched = launch_on(&env, "1", &plain, "echo new > a.txt", &[]);
    assert_ne!(launched.code, 0, "{launched:?}");
    let reported = format!("{}{}", launched.stdout, launched.stderr);
    assert!(
        reported.contains("a.txt") && reported.contains("group"),
        "{reported}"
    );
    assert_eq!(fs::read_to_string(plain.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn a_branch_over_files_of_another_group_can_be_edited() {
    let env = Environment::new();
    if chown(env.repository().join("answer.txt"), None, Some(OTHER_GROUP)).is_err() {
        return;
    }
    let project = env.repository();
    let launched = launch_on(
        &env,
        "1",
        &project,
        "echo 42 > answer.txt",
        &["--branch", "b"],
    );
    assert_eq!(launched.code, 0, "{launched:?}");
    assert_eq!(env.show("b", "answer.txt"), "42");
}
