//! Limits that end a real CLI in the middle of its work, and programs that are not there.
//!
//! Whatever a CLI had started is gone with it.

use std::time::{Duration, Instant};

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, ReplyUsage, Route};
use serde_json::Value;

use crate::environment::BRANCH;
use crate::machine::{Machine, USAGE};
use crate::program::Run;

/// What one answer costs in the tests of the token budget.
const DEAR: ReplyUsage = ReplyUsage {
    input: 10_000,
    ..USAGE
};

/// How long a turn may take, the next where the machine is so busy that nothing happens in the first.
const TURN_TIMEOUTS: [&str; 3] = ["15s", "1m", "5m"];

/// A model that falls silent in the middle of an answer: the turn's time limit ends it.
fn check_stall(cli: Cli) {
    let mut stalled = TURN_TIMEOUTS.into_iter().map(|limit| stall(cli, limit));
    let (machine, run) = stalled.find_map(|stalled| stalled).unwrap();
    run.assert_status("paused", 5);
    assert_eq!(run.reason(), "the turn budget is used up");
    let ended = run.events("agent_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(
        ended[0]["run"]["end"]["end"], "deadline_passed",
        "{ended:?}"
    );
    assert_eq!(run.verdicts(), ["verify_failed"]);
    assert_eq!(run.result["commit"], Value::Null);
    machine.env.await_no_process();
    machine.assert_key_is_in_no_file();
}

/// Runs a turn of one tool whose next answer never comes; nothing where the machine was so busy that
/// the limit ended the turn before that.
fn stall(cli: Cli, limit: &str) -> Option<(Machine, Run)> {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::bash("echo 41 > answer.txt")]);
    scenario.faults = vec![InjectedFault::new(
        FaultTarget::Step(1),
        Times::Always,
        FaultKind::Stall,
    )];
    let machine = Machine::new(scenario);
    let run = machine.run(cli, "none", &["--turn-timeout", limit, "--turns", "1"]);
    let mut asked = machine.asked().into_iter();
    let is_stalled = asked.any(|request| request.step == Some(1));
    is_stalled.then_some((machine, run))
}

/// A dear model: what was used ends the run while a tool of it still runs.
fn check_budget_mid_run(cli: Cli) {
    let dear = |command: &str| AssistantTurn {
        usage: Some(DEAR),
        ..AssistantTurn::bash(command)
    };
    let machine = Machine::new(ModelScenario::new(vec![
        dear("echo 40 > answer.txt"),
        // A CLI writes its session behind the conversation: it gets the time to have written it.
        dear("sleep 3; echo 41 > answer.txt"),
        dear("sleep 900"),
        AssistantTurn::text("It is done."),
    ]));
    let began = Instant::now();
    // Two answers fit and a third does not; Claude Code writes most into its requests.
    let limit = if cli == Cli::Claude { "34k" } else { "25k" };
    let run = machine.run(cli, "none", &["--tokens", limit]);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "the tool was waited for"
    );
    run.assert_status("paused", 5);
    let is_used_up = is_used_up(run.reason(), "token");
    assert_eq!(run.result["turns"], 0, "the turn came to no verdict");
    // Two answers, and at most the one that the limit is passed by.
    let used = run.result["usage"]["input_tokens"].as_u64().unwrap();
    assert!((20_000..40_000).contains(&used), "{used}");
    assert!(machine.commits_on(BRANCH).is_empty());
    machine.env.await_no_process();

    // It goes on only when the person raises the limit.
    if is_used_up {
        assert_eq!(machine.env.kapi(&["resume", "1"]).code, 3);
    }
    let raised = machine.env.kapi(&["budget", "1", "--tokens", "+1M"]);
    assert_eq!(raised.code, 0, "{raised:?}");
    // The session goes on, so the steps are counted from the prompt and not from its beginning.
    let mut scenario = ModelScenario::new(Vec::new());
    let steps = vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ];
    scenario.routes = vec![Route::new("# Goal", steps)];
    machine.server.set_scenario(scenario);
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
    let asked = machine.asked();
    let history = asked.last().unwrap().body.to_string();
    assert!(history.contains("echo 40"), "the session was not resumed");
}

/// Tells whether a limit is used up; otherwise too little of it is left for another call. Which of
/// the two depends on how much an agent writes into its requests.
fn is_used_up(reason: &str, limit: &str) -> bool {
    let is_used_up = reason == format!("the {limit} budget is used up");
    let is_too_little = reason.contains("too little for another call");
    assert!(is_used_up || is_too_little, "{reason}");
    is_used_up
}

/// An agent that never says what it costs: the gateway does, by the price of its model, and the money
/// ends the run in the middle.
fn check_money_mid_run(cli: Cli) {
    let dear = |command: &str| AssistantTurn {
        usage: Some(DEAR),
        ..AssistantTurn::bash(command)
    };
    let machine = Machine::new(ModelScenario::new(vec![
        dear("echo 40 > answer.txt"),
        dear("sleep 900"),
        AssistantTurn::text("It is done."),
    ]));
    // Without a price nobody could keep to it, and that is said.
    let options = ["--judge", "none", "--usd", "1.50"];
    let refused = machine
        .env
        .kapi(&crate::environment::usual(cli.name(), &options));
    refused.assert_error_among_talk(2, &["does not report its cost", "[prices]"]);
    let config = machine.env.home().join(".config/kapi/config.toml");
    let written = std::fs::read_to_string(&config).unwrap();
    // A hundred dollars for a million tokens: the second answer is the one too many.
    machine.env.configure(&format!(
        "{written}[prices.\"local/{}\"]\ninput = 100.0\noutput = 100.0\n",
        crate::machine::model(cli)
    ));
    let began = Instant::now();
    let run = machine.run(cli, "none", &["--usd", "1.50"]);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "the tool was waited for"
    );
    run.assert_status("paused", 5);
    let is_used_up = is_used_up(run.reason(), "money");
    let used = run.result["usage"]["usd"].as_f64().unwrap();
    assert!((1.0..3.0).contains(&used), "{used}");
    assert!(machine.commits_on(BRANCH).is_empty());
    machine.env.await_no_process();
    if is_used_up {
        let refused = machine.env.kapi(&["resume", "1"]);
        refused.assert_error_among_talk(3, &["money budget", "--usd"]);
    }
}

#[test]
fn the_money_budget_ends_codex_in_the_middle() {
    check_money_mid_run(Cli::Codex);
}

#[test]
fn the_money_budget_ends_gemini_in_the_middle() {
    check_money_mid_run(Cli::Gemini);
}

#[test]
fn a_stalled_answer_ends_claude_at_the_time_limit() {
    check_stall(Cli::Claude);
}

#[test]
fn a_stalled_answer_ends_codex_at_the_time_limit() {
    check_stall(Cli::Codex);
}

#[test]
fn a_stalled_answer_ends_gemini_at_the_time_limit() {
    check_stall(Cli::Gemini);
}

#[test]
fn a_stalled_answer_ends_pi_at_the_time_limit() {
    check_stall(Cli::Pi);
}

#[test]
fn the_token_budget_ends_claude_in_the_middle() {
    check_budget_mid_run(Cli::Claude);
}

#[test]
fn the_token_budget_ends_pi_in_the_middle() {
    check_budget_mid_run(Cli::Pi);
}

#[test]
fn the_token_budget_ends_codex_in_the_middle() {
    check_budget_mid_run(Cli::Codex);
}

#[test]
fn the_token_budget_ends_gemini_in_the_middle() {
    check_budget_mid_run(Cli::Gemini);
}

#[test]
fn a_program_that_is_not_there_is_named_before_anything_begins() {
    let machine = Machine::new(ModelScenario::new(Vec::new()));
    for cli in Cli::ALL {
        let name = cli.name();
        let missing = machine.env.root().join("nowhere").join(name);
        let missing = missing.display().to_string();
        machine.env.configure(&format!(
            "[agents.{name}]\ncommand = {missing:?}\nbase_url = \"http://127.0.0.1:9\"\n"
        ));
        let output = machine
            .env
            .kapi(&crate::environment::usual(name, &["--json"]));
        output.assert_error(4, &[&missing, "hint: ", &format!("[agents.{name}]")]);
    }
    assert!(!machine.env.repository().join(".ilchul").exists());
}
