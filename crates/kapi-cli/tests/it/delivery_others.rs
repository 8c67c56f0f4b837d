//! What is no goal at a remote, and a pull request for it: workflows, tasks, loops and launches.

use serde_json::json;

use crate::delivery::{ADDRESS, HONEST, said, there, with_forge};
use crate::environment::{Environment, TASK};
use crate::workflow_support::{Machine, last};

#[test]
fn a_workflow_that_is_complete_is_pushed_with_its_report() {
    let mut machine = Machine::new();
    machine.env = with_forge(machine.env);
    let words = ["greet", "people", "by", "name"];
    let options = ["--unlinked", "--approve-plan", "auto", "--json", "--pr"];
    let output = machine.ralph(&words, &options);
    assert_eq!(output.code, 0, "{output:?}");
    let told = last(&output);
    assert_eq!(
        (&told["type"], &told["pull_request"]),
        (&json!("delivery"), &json!(ADDRESS))
    );
    assert!(
        told["workflow"].as_str().unwrap().starts_with("001-"),
        "{told}"
    );
    let branch = told["branch"].as_str().unwrap();
    assert_eq!(there(&machine.env, branch), machine.env.commit_of(branch));
    let body = said(&machine.env, "body");
    for words in ["greet people by name", "**Conditions checked**"] {
        assert!(body.contains(words), "{words:?} in {body}");
    }
    // It may be repeated, and finds what is there.
    let again = machine.env.kapi(&["deliver", "1", "--pr"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains(ADDRESS), "{again:?}");
    assert_eq!(said(&machine.env, "calls").matches("pr create").count(), 1);
}

#[test]
fn a_task_is_delivered_where_it_was_proved_or_asked_for() {
    let env = with_forge(Environment::new());
    let task = |options: &[&str]| {
        let words = ["task", "run", TASK, "--again", "--agent", HONEST];
        env.kapi(&[&words[..], options].concat())
    };
    let proved = task(&["--verify", "sh test.sh", "--pr"]);
    assert_eq!(proved.code, 0, "{proved:?}");
    assert!(proved.stdout.contains(ADDRESS), "{proved:?}");
    assert_eq!(there(&env, "kapi/task_1"), env.commit_of("kapi/task_1"));
    let body = said(&env, "body");
    for words in [TASK, "red on the base, green now", "`sh test.sh`", "task_1"] {
        assert!(body.contains(words), "{words:?} in {body}");
    }
    // By itself only what was proved leaves the machine.
    env.configure("[deliver]\npush = true\n");
    let unproved = task(&[]);
    assert!(
        unproved
            .stderr
            .contains("`kapi deliver task_2` does it anyway"),
        "{unproved:?}"
    );
    assert_eq!(there(&env, "kapi/task_2"), "");
    let verified = task(&["--verify", "sh test.sh"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert_eq!(there(&env, "kapi/task_3"), env.commit_of("kapi/task_3"));
    let told = env.json(&["deliver", "task_2"]);
    assert_eq!(
        (&told["task"], &told["error"]),
        (&json!("task_2"), &json!(null))
    );
    assert_eq!(there(&env, "kapi/task_2"), env.commit_of("kapi/task_2"));
    // What could not be done is refused before anything starts.
    env.git(&["config", "remote.gone.url", "/nonexistent/r.git"]);
    task(&["--push", "--remote", "gone"]).assert_error_among_talk(4, &["push to remote gone"]);
    env.kapi(&["show", "task_4"])
        .assert_error_among_talk(6, &["task_4"]);
}

#[test]
fn a_run_of_a_loop_is_delivered_too() {
    let env = with_forge(Environment::new());
    env.write(
        ".ilchul/loops/answer.md",
        &format!(
            "---\nname: answer\nagent: sisyphus\nworkspace: branch\nbackend: {HONEST:?}\n---\n{TASK}\n"
        ),
    );
    let run = env.kapi(&["loop", "run", "answer", "--push"]);
    assert_eq!(run.code, 0, "{run:?}");
    let branch = "kapi/answer-task_1";
    assert_eq!(there(&env, branch), env.commit_of(branch), "{run:?}");
}

#[test]
fn a_launch_opens_a_pull_request_for_what_it_pushed() {
    let env = with_forge(Environment::new());
    let project = env.repository().display().to_string();
    let words = ["launch", "1", &project, "--task", TASK, "--agent", HONEST];
    let launched = env.kapi(&[&words[..], &["--branch", "feat/answer", "--pr"]].concat());
    assert_eq!(launched.code, 0, "{launched:?}");
    assert!(launched.stdout.contains(ADDRESS), "{launched:?}");
    let commit = there(&env, "feat/answer");
    assert_eq!(commit, env.commit_of("feat/answer"));
    let calls = said(&env, "calls");
    assert!(
        calls.contains(&format!("pr create --head feat/answer --title {TASK}")),
        "{calls}"
    );
    assert!(said(&env, "body").contains("Nothing was verified"));
    let again = env.kapi(&["deliver", "launch/1", "--pr"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stdout.contains(ADDRESS), "{again:?}");
    assert_eq!(said(&env, "calls").matches("pr create").count(), 1);
}
