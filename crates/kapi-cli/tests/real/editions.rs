//! One proved goal with the other pinned version of each real CLI: what all tests drive is the oldest
//! that Kapi supports or a recent one, and the other must work, too.
//!
//! The goal names its model, which is all that the CLI may ask.

use kapi_testkit::agent_tools::{Cli, Edition};
use kapi_testkit::model_server::record::ServedAnswer;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario};

use crate::environment::{BRANCH, FIRST};
use crate::machine::Machine;

/// Returns a model of each vendor that the configuration does not name.
const fn other_model(cli: Cli) -> &'static str {
    match cli {
        Cli::Claude => "claude-opus-4-5",
        Cli::Codex => "gpt-5.4",
        Cli::Gemini => "gemini-2.5-pro",
        Cli::Pi => "another-model",
    }
}

fn scenario() -> ModelScenario {
    ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("The answer is right."),
    ])
}

fn check_other_edition(cli: Cli) {
    let edition = match cli.usual() {
        Edition::Oldest => Edition::Recent,
        Edition::Recent => Edition::Oldest,
    };
    let machine = Machine::of_edition(scenario(), cli, edition);
    let model = other_model(cli);
    let run = machine.run(cli, "none", &["--model", model]);
    run.assert_status("done", 0);
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    let asked = machine.asked();
    let steps = asked
        .iter()
        .filter(|request| request.answer == ServedAnswer::Step);
    let models: Vec<&str> = steps.map(|request| request.model.as_str()).collect();
    assert!(
        !models.is_empty() && models.iter().all(|asked| *asked == model),
        "{models:?}"
    );
    let contract = &machine.env.json(&["show", "1", "--all"])["contract"];
    assert_eq!(contract["models"][0]["agent"], cli.name());
    assert_eq!(contract["models"][0]["model"], model);
    assert_eq!(machine.env.kapi(&["audit", FIRST]).code, 0);
    machine.assert_key_is_in_no_file();
}

#[test]
fn claude() {
    check_other_edition(Cli::Claude);
}

#[test]
fn codex() {
    check_other_edition(Cli::Codex);
}

#[test]
fn gemini() {
    check_other_edition(Cli::Gemini);
}

#[test]
fn pi() {
    check_other_edition(Cli::Pi);
}

/// A CLI that asks another model than its goal's is refused, and the goal says which.
fn check_refused(cli: Cli) {
    let machine = Machine::new(scenario());
    let word = if cli == Cli::Claude { "--model" } else { "-m" };
    let config = machine.env.home().join(".config/kapi/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let table = format!("[agents.{}]\n", cli.name());
    let args = format!("{table}args = [{word:?}, {:?}]\n", other_model(cli));
    machine.env.configure(&text.replace(&table, &args));
    let run = machine.run(cli, "none", &["--model", crate::machine::model(cli)]);
    run.assert_status("blocked", 5);
    let other = other_model(cli);
    let expected = format!("may not ask the model {other}");
    assert!(run.reason().contains(&expected), "{}", run.reason());
    assert_eq!(machine.asked(), [], "the provider hears nothing of it");
    let log = machine.env.root();
    let logs = crate::machine::files_under(log);
    let model = format!("\"model\":\"{other}\"");
    let is_recorded = |(path, content): (&std::path::PathBuf, &Vec<u8>)| {
        path.ends_with("network.jsonl")
            && crate::machine::holds(content, "\"event\":\"model_refused\"")
            && crate::machine::holds(content, &model)
    };
    assert!(logs.iter().any(is_recorded), "it is recorded");
}

#[test]
fn claude_asks_no_other_model() {
    check_refused(Cli::Claude);
}

#[test]
fn codex_asks_no_other_model() {
    check_refused(Cli::Codex);
}
