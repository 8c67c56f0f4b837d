//! The kernel's tools with real CLIs: started by a person, and within a run of a goal.
//!
//! The task itself is done by a shell command, so that who asks and who works are told apart.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, ToolUse};
use serde_json::{Value, json};

use crate::environment::{FIRST, write};
use crate::machine::Machine;
use crate::person;
use crate::program::finish;

/// What the agent of the task says, and only it.
const SAID: &str = "the-worker-was-here";
const KAPI: &str = env!("CARGO_BIN_EXE_kapi");

fn tool(name: &str, arguments: Value) -> AssistantTurn {
    AssistantTurn::tools(vec![ToolUse::Mcp {
        name: name.to_owned(),
        arguments,
    }])
}

fn task() -> AssistantTurn {
    let arguments = json!({"description": "write it", "prompt": "write the answer"});
    tool("background_task", arguments)
}

fn status() -> AssistantTurn {
    tool("background_status", json!({"taskId": "task_1"}))
}

/// Makes a machine whose tasks are done by a shell command.
fn machine(steps: Vec<AssistantTurn>) -> Machine {
    let machine = Machine::new(ModelScenario::new(steps));
    let shell = format!("command:echo {SAID}; echo 42 > answer.txt");
    let profile =
        format!("---\nname: sisyphus\ndescription: a shell\nbackend: {shell:?}\n---\nWork.\n");
    let config = machine.env.home().join(".config/kapi/config.toml");
    write(&config.with_file_name("agents/sisyphus.md"), profile);
    machine
}

/// A person's own agent has something done, waits for it by the shell, and looks at what came of it.
fn check_from_outside(cli: Cli) {
    let wait = format!("{KAPI} wait task_1");
    let machine = machine(vec![
        task(),
        AssistantTurn::bash(&wait),
        status(),
        AssistantTurn::text("It is written."),
    ]);
    person::setup(&machine, cli);
    let output = finish(person::started(&machine, cli, "Have the answer written."));
    assert_eq!(output.code, 0, "{output:?}");
    let read = all_read(&machine);
    for words in ["this server while it runs", "completed", SAID] {
        assert!(
            read.contains(words),
            "the model never read {words:?}: {output:?}"
        );
    }
    let task = machine.env.json(&["show", "task_1"]);
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["request"]["origin"]["by"], "agent");
    let branch = task["work"]["branch"].as_str().unwrap();
    assert_eq!(machine.env.show(branch, "answer.txt"), "42");
    assert_eq!(machine.env.read("answer.txt"), "wrong\n");
    machine.env.await_no_process();
}

/// Returns everything that the model was sent.
fn all_read(machine: &Machine) -> String {
    let asked = machine.asked();
    let bodies = asked.iter().map(|request| request.body.to_string());
    bodies.collect::<Vec<String>>().join("\n")
}

#[test]
fn claude_from_outside() {
    check_from_outside(Cli::Claude);
}

#[test]
fn codex_from_outside() {
    check_from_outside(Cli::Codex);
}

/// An agent within a run has something done in the name of its goal.
fn check_within(cli: Cli) {
    let machine = machine(vec![
        task(),
        status(),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]);
    let config = machine.env.home().join(".config/kapi/config.toml");
    let said = std::fs::read_to_string(&config).unwrap();
    machine
        .env
        .configure(&format!("{said}\n[kernel]\nruns_submit_tasks = true\n"));
    let run = machine.run(cli, "none", &["--tokens", "1M"]);
    run.assert_status("done", 0);
    let read = all_read(&machine);
    for words in ["waiting for `kapi up`", "queued"] {
        assert!(read.contains(words), "the model never read {words:?}");
    }
    let task = machine.env.json(&["show", "task_1"]);
    assert_eq!(task["status"], "queued", "{task}");
    assert_eq!(task["request"]["origin"]["run"], FIRST);
    assert_eq!(task["request"]["depth"], 1);
    let tokens = task["request"]["budget"]["tokens"].as_u64().unwrap();
    assert!(tokens <= 1_000_000, "{task}");
}

#[test]
fn claude_within_a_run_submits_in_the_name_of_its_goal() {
    check_within(Cli::Claude);
}

#[test]
fn pi_within_a_run_has_the_tools_by_its_extension() {
    check_within(Cli::Pi);
}
