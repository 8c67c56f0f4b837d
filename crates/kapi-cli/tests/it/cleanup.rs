//! `kapi cleanup`: what goes, what stays and why, and that nothing is lost by it.

use serde_json::Value;

use crate::environment::Environment;
use crate::launch::{launch, launch_on, plain_project};

fn names(document: &Value, list: &str) -> Vec<String> {
    let things = document[list].as_array().unwrap().iter();
    things
        .map(|thing| {
            format!(
                "{} {}",
                thing["what"].as_str().unwrap(),
                thing["name"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn only_what_is_elsewhere_goes_and_the_rest_says_why_it_stays() {
    let env = Environment::new();
    launch(&env, "merged", "echo 42 > answer.txt", &["--branch", "m"]);
    env.git(&["merge", "--quiet", "m"]);
    launch(&env, "unmerged", "echo 43 > answer.txt", &["--branch", "u"]);
    launch(&env, "pending", "echo 44 > answer.txt", &[]);
    launch(&env, "empty", "true", &[]);
    launch_on(&env, "elsewhere", &plain_project(&env), "true", &[]);
    let told = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(
        names(&told, "removed"),
        ["sandbox empty", "sandbox merged"],
        "{told:#}"
    );
    let kept = told["kept"].as_array().unwrap();
    let why = |name: &str| {
        let thing = kept.iter().find(|thing| thing["name"] == name).unwrap();
        thing["why"].as_str().unwrap().to_owned()
    };
    assert!(
        why("unmerged").contains("neither pushed nor merged"),
        "{told:#}"
    );
    assert!(why("pending").contains("not taken over"), "{told:#}");
    assert_eq!(env.json(&["sandbox", "list"]).as_array().unwrap().len(), 5);
    let done = env.json(&["cleanup"]);
    assert_eq!(
        names(&done, "removed"),
        ["sandbox empty", "sandbox merged"],
        "{done:#}"
    );
    assert_eq!(names(&done, "failed"), Vec::<String>::new());
    let all = env.json(&["cleanup", "--all"]);
    assert_eq!(names(&all, "removed"), ["sandbox elsewhere"], "{all:#}");
    assert_eq!(env.json(&["sandbox", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_named_sandbox_goes_after_a_yes_and_its_commit_can_be_brought_back() {
    let env = Environment::new();
    launch(&env, "1", "echo 42 > answer.txt", &["--branch", "b"]);
    let commit = env.commit_of("b");
    let asked = env.kapi(&["cleanup", "1"]);
    assert_eq!(asked.code, 2, "{asked:?}");
    for word in ["neither pushed nor merged", "needs a yes", "--yes"] {
        assert!(asked.stderr.contains(word), "{word} in {asked:?}");
    }
    env.git(&["branch", "--quiet", "--delete", "--force", "b"]);
    let done = env.json(&["cleanup", "1", "--yes"]);
    assert_eq!(names(&done, "removed"), ["sandbox 1"], "{done:#}");
    let line = done["restore"][0].as_str().unwrap();
    env.git(&line.split(' ').skip(1).collect::<Vec<&str>>());
    assert_eq!(env.commit_of("b"), commit);
    env.kapi(&["cleanup", "nothing"])
        .assert_error(6, &["no sandbox nothing"]);
}

#[test]
fn what_was_used_lately_stays_and_logs_go_alone() {
    let env = Environment::new();
    launch(&env, "1", "true", &[]);
    let told = env.json(&["cleanup", "--older-than", "7d", "--dry-run"]);
    assert_eq!(names(&told, "removed"), Vec::<String>::new(), "{told:#}");
    assert!(
        told["kept"][0]["why"]
            .as_str()
            .unwrap()
            .contains("used since"),
        "{told:#}"
    );
    let done = env.json(&["cleanup", "--older-than", "7d", "--logs"]);
    assert_eq!(names(&done, "removed"), ["logs 1"], "{done:#}");
    let listed = env.json(&["sandbox", "list"]);
    let dir = std::path::PathBuf::from(listed[0]["sandbox"].as_str().unwrap());
    assert!(dir.is_dir() && !dir.join("runs").exists());
}

#[test]
fn the_worktree_of_an_ended_goal_goes_and_that_of_another_stays() {
    let env = Environment::new();
    env.run("command:echo 42 > answer.txt", &[])
        .assert_status("done", 0);
    let options = ["--turns", "1"];
    env.run("command:echo 41 > answer.txt", &options)
        .assert_status("paused", 5);
    let worktrees = || {
        let found = env.git(&["worktree", "list", "--porcelain"]);
        found.matches("worktree ").count()
    };
    assert_eq!(worktrees(), 3);
    let done = env.json(&["cleanup"]);
    assert_eq!(
        names(&done, "removed"),
        ["goal 001-make-answer-right"],
        "{done:#}"
    );
    let kept = done["kept"].as_array().unwrap();
    assert!(
        kept[0]["why"].as_str().unwrap().contains("has not ended"),
        "{done:#}"
    );
    assert_eq!(worktrees(), 2);
    assert_eq!(env.show("feat/goal-make-answer-right", "answer.txt"), "42");
}
