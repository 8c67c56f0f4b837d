//! The stop gate in real sessions: a model that says that it is done is held until the checks pass, and
//! what the person orders with a command reaches no model.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};
use serde_json::Value;

use crate::machine::Machine;
use crate::person;
use crate::program::{Output, finish};

/// What is typed in each client; not every one takes a slash.
fn typed(cli: Cli, order: &str) -> String {
    let slash = if cli == Cli::Codex { "" } else { "/" };
    format!("{slash}kapi:{order}")
}

fn session(machine: &Machine, cli: Cli, prompt: &str) -> Output {
    let mut command = person::started(machine, cli, prompt);
    if cli == Cli::Codex {
        // The person has trusted the hooks.
        command.arg("--dangerously-bypass-hook-trust");
    }
    finish(command)
}

fn all_read(machine: &Machine) -> String {
    let asked = machine.asked();
    let bodies = asked.iter().map(|request| request.body.to_string());
    bodies.collect::<Vec<String>>().join("\n")
}

fn gate(machine: &Machine) -> Value {
    machine.env.json(&["gate"])["gate"].clone()
}

/// A model that claims too early.
fn claims_too_early() -> ModelScenario {
    ModelScenario::new(vec![
        AssistantTurn::text("It is done."),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("Now it is done."),
    ])
}

fn check_held(cli: Cli) {
    let machine = Machine::new(claims_too_early());
    person::setup(&machine, cli);
    let head = machine.env.commit_of("HEAD");
    let prompt = typed(cli, "goal make the answer right\nverify: sh test.sh");
    let output = session(&machine, cli, &prompt);
    assert_eq!(output.code, 0, "{output:?}");
    let read = all_read(&machine);
    for words in ["The user set a contract", "Not done: Kapi ran the checks"] {
        assert!(
            read.contains(words),
            "the model never read {words:?}: {output:?}\n{read}"
        );
    }
    assert_eq!(machine.env.read("answer.txt"), "42\n", "{output:?}");
    let gate = gate(&machine);
    assert_eq!(gate["status"], "done", "{gate:#}");
    assert_eq!(gate["turns"]["used"], 2, "held once: {gate:#}");
    assert_eq!(machine.env.commit_of("HEAD"), head);
}

#[test]
fn claude_is_held_until_the_check_passes() {
    check_held(Cli::Claude);
}

#[test]
fn codex_is_held_until_the_check_passes() {
    check_held(Cli::Codex);
}

#[test]
fn gemini_is_held_until_the_check_passes() {
    check_held(Cli::Gemini);
}

#[test]
fn claude_lets_go_on_the_persons_word_and_no_model_is_asked() {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::text("I stop here."),
        AssistantTurn::text("A goal, then."),
    ]));
    person::setup(&machine, Cli::Claude);
    let set = machine
        .env
        .kapi(&["gate", "set", "make it right", "--verify", "sh test.sh"]);
    assert_eq!(set.code, 0, "{set:?}");
    for order in ["/kapi:pause", "/kapi:status"] {
        let output = session(&machine, Cli::Claude, order);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(machine.asked().is_empty(), "{order} went to the model");
    }
    assert_eq!(gate(&machine)["status"], "paused");
    let output = session(&machine, Cli::Claude, "go on");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("I stop here."), "{output:?}");
    assert_eq!(gate(&machine)["turns"]["used"], 0, "it let go");
    // The other commands are prompts of the plugin.
    let output = session(&machine, Cli::Claude, "/kapi:run write the answer");
    assert_eq!(output.code, 0, "{output:?}");
    let read = all_read(&machine);
    assert!(read.contains("Propose a goal to Kapi"), "{read}");
}

#[test]
fn claude_does_not_run_what_is_asked_about_first_nor_open_the_gate() {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("git tag released"),
        AssistantTurn::bash("kapi gate off"),
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("That is all."),
    ]));
    person::setup(&machine, Cli::Claude);
    let prompt = "/kapi:goal make it right\nverify: sh test.sh\nask-before: git tag";
    let output = session(&machine, Cli::Claude, prompt);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(machine.env.git(&["tag"]), "", "{output:?}");
    let read = all_read(&machine);
    for words in ["ask-before list", "only the user changes the stop gate"] {
        assert!(
            read.contains(words),
            "the model never read {words:?}: {read}"
        );
    }
    assert_eq!(gate(&machine)["status"], "done");
}

/// Types every order in sessions of a client; each is carried out, and no model is asked.
fn check_orders(cli: Cli) {
    let machine = Machine::new(ModelScenario::new(vec![AssistantTurn::text(
        "I was asked.",
    )]));
    person::setup(&machine, cli);
    let set = ["gate", "set", "make it right", "--verify", "sh test.sh"];
    assert_eq!(machine.env.kapi(&set).code, 0);
    for (order, status) in [
        ("status", "active"),
        ("check", "active"),
        ("pause", "paused"),
        ("resume", "active"),
    ] {
        let output = session(&machine, cli, &typed(cli, order));
        assert!(machine.asked().is_empty(), "{order}: {output:?}");
        assert_eq!(gate(&machine)["status"], status, "{order}: {output:?}");
    }
    let output = session(&machine, cli, &typed(cli, "off"));
    assert!(machine.asked().is_empty(), "{output:?}");
    assert!(gate(&machine).is_null(), "{output:?}");
}

#[test]
fn claude_carries_out_every_order() {
    check_orders(Cli::Claude);
}

#[test]
fn codex_carries_out_every_order() {
    check_orders(Cli::Codex);
}

#[test]
fn gemini_carries_out_every_order() {
    check_orders(Cli::Gemini);
}

#[test]
fn claude_has_the_commands_that_start_kapi_s_own_work() {
    let machine = Machine::new(ModelScenario::new(vec![AssistantTurn::text("I begin.")]));
    person::setup(&machine, Cli::Claude);
    for (name, words) in [
        ("run", "Propose a goal to Kapi"),
        ("ralph", "`kapi ralph --json`"),
        ("deep-interview", "`kapi deep-interview --json`"),
        ("autoresearch", "`kapi autoresearch --json`"),
        ("integrate", "start `kapi integrate`"),
    ] {
        let line = format!("/kapi:{name} the-words-of-{name}");
        let output = session(&machine, Cli::Claude, &line);
        assert_eq!(output.code, 0, "{output:?}");
        let read = all_read(&machine);
        let asked = format!("the-words-of-{name}");
        assert!(
            read.contains(words) && read.contains(&asked),
            "{name}: {read}"
        );
    }
}
