//! The six tools of the kernel within a run of a goal: not there, unless the person lets runs submit
//! tasks, and then in the name of the goal and within its budget.

use serde_json::Value;

use crate::environment::{BRANCH, Environment, FIRST, write};

const ALLOWED: &str = "[kernel]\nruns_submit_tasks = true\n";

/// Makes a machine where a person has submitted a task, with this configuration.
fn machine(configuration: &str) -> Environment {
    let env = Environment::new();
    let config = env.configure(configuration);
    let profile =
        "---\nname: sisyphus\ndescription: a shell\nbackend: \"command:true\"\n---\nWork.\n";
    write(
        &config.with_file_name("agents").join("sisyphus.md"),
        profile,
    );
    let output = env.kapi(&["task", "run", "the person's secret", "--detach"]);
    assert_eq!(output.code, 0, "{output:?}");
    env
}

/// Runs a goal whose agent makes these calls, and returns their answers.
fn answers(env: &Environment, calls: &[&str], options: &[&str]) -> Vec<Value> {
    let calls: Vec<String> = calls
        .iter()
        .map(|call| format!("kapi agent {call} < /dev/null >> answers"))
        .collect();
    let agent = format!("command:{}; echo 42 > answer.txt", calls.join("; "));
    let run = env.run(&agent, options);
    run.assert_status("done", 0);
    let answers = env.show(BRANCH, "answers");
    let lines = answers.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn listed(schema: &Value) -> Vec<&str> {
    let tools = schema["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_run_submits_nothing_unless_its_person_lets_it() {
    let env = machine("");
    let calls = [
        "schema",
        "task run 'more work' --description more",
        "task status task_1",
        "task cancel task_1",
        "loop trigger x",
        "guardrail add d l",
    ];
    let answers = answers(&env, &calls, &[]);
    assert!(
        !listed(&answers[0]).contains(&"background_task"),
        "{answers:?}"
    );
    for answer in &answers[1..] {
        assert_eq!(answer["ok"], false, "{answer}");
        let text = answer["text"].as_str().unwrap();
        assert!(text.contains("runs_submit_tasks"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    let tasks = env.json(&["task", "list", "--all"]);
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");
}

#[test]
fn a_projects_file_cannot_let_runs_submit() {
    let env = Environment::new();
    env.write(".ilchul/config.toml", ALLOWED);
    let output = env.kapi(&["task", "list"]);
    output.assert_error(2, &["runs_submit_tasks"]);
}

#[test]
fn a_run_that_may_submits_for_its_goal_and_sees_only_its_own() {
    let env = machine(ALLOWED);
    let calls = [
        "schema",
        "task run 'more work' --description more",
        "task status task_2",
        "task status task_1",
        "task cancel task_1",
        "task run 'other work' --description other",
        "task cancel task_2",
        "task run 'other work' --description other",
        "guardrail add d 'look twice'",
    ];
    let answers = answers(&env, &calls, &["--wall", "1h"]);
    assert!(
        listed(&answers[0]).contains(&"background_task"),
        "{answers:?}"
    );
    assert_eq!(answers[1]["details"]["taskId"], "task_2", "{answers:?}");
    assert_eq!(answers[2]["details"]["status"], "queued");
    assert_eq!(answers[3]["text"], "task not found: task_1");
    assert_eq!(answers[4]["text"], "unable to cancel: task_1");
    let used_up = "[ERROR] the goal's budget is used up";
    assert_eq!(answers[5]["text"], used_up, "the first has all of it");
    assert_eq!(answers[6]["text"], "cancelled: task_2");
    assert_eq!(answers[7]["details"]["taskId"], "task_3", "{answers:?}");
    assert_eq!(answers[8]["details"]["state"], "proposed");
    let task = env.json(&["show", "task_3"]);
    let request = &task["request"];
    assert_eq!(request["origin"]["by"], "agent");
    assert_eq!(request["origin"]["run"], FIRST);
    assert_eq!(request["depth"], 1);
    let time_ms = request["budget"]["time_ms"].as_u64().unwrap();
    assert!(time_ms <= 3_600_000 && time_ms > 3_000_000, "{request}");
}
