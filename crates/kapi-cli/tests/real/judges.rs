//! Verdicts of real CLIs: refused and then accepted, not a verdict at all, and nobody there.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::record::ServedAnswer;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario, Route};
use serde_json::{Value, json};

use crate::environment::BRANCH;
use crate::machine::{JUDGE_MARK, JUDGE_REFUSED, Machine};

/// A model that does it at once, mends what a judge wants, and judges as it is told.
fn judging(verdicts: Vec<Value>) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]);
    scenario.routes = vec![Route::new(
        JUDGE_REFUSED,
        vec![
            AssistantTurn::bash("echo why > reason.txt"),
            AssistantTurn::text("Now it is explained too."),
        ],
    )];
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, verdicts)];
    scenario
}

fn verdict(verdict: &str, reason: &str) -> Value {
    json!({ "verdict": verdict, "reason": reason, "token": "{{token}}" })
}

/// A judge wants more, gets it, and accepts; its reason is what the next turn begins with.
fn check_continue_then_done(cli: Cli, judge: &str) {
    let machine = Machine::new(judging(vec![
        verdict("continue", "the reason is not written down"),
        verdict("done", "now it is"),
    ]));
    let run = machine.run(cli, judge, &[]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 2);
    assert_eq!(run.verdicts(), ["judge_continue"]);
    assert_eq!(run.result["judge"]["reason"], "now it is");
    assert_eq!(machine.env.show(BRANCH, "reason.txt"), "why");
    assert_eq!(machine.commits_on(BRANCH).len(), 1);
    let asked = machine.asked();
    let second_turn = asked
        .iter()
        .find(|request| request.last_user.contains(JUDGE_REFUSED))
        .expect("a second turn");
    let prompt = &second_turn.last_user;
    let opening = prompt.find("the reason is not written down");
    assert!(opening < prompt.find("# Goal"), "{prompt}");
    // The judge begins anew each time: its own first question and answer are not shown to it.
    let questions: Vec<_> = asked
        .iter()
        .filter(|request| request.answer == ServedAnswer::Judge)
        .collect();
    assert_eq!(questions.len(), 2);
    let last = questions[1].body.to_string();
    assert_eq!(last.matches(JUDGE_MARK).count(), 1, "{last}");
    // Two turns of two answers, two verdicts.
    machine.assert_usage(&run, 6);
}

/// Puts the placeholder back for the token of the question.
fn without_token(said: &str) -> String {
    const OPENING: &str = "\"token\":\"";
    let mut parts = said.split(OPENING);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        text.push_str(OPENING);
        text.push_str("{{token}}");
        text.push_str(rest);
    }
    text
}

/// A judge that never gives a verdict in the asked form completes nothing.
fn check_malformed(judge: Cli, answer: &str) {
    let machine = Machine::new(judging(vec![json!(answer)]));
    let run = machine.run(Cli::Codex, judge.name(), &[]);
    run.assert_status("blocked", 5);
    assert!(
        run.reason().starts_with("no verdict from the judge"),
        "{}",
        run.reason()
    );
    assert_eq!(run.result["judge"]["by"], judge.name());
    assert_eq!(run.result["judge"]["verdict"], "malformed");
    let said = run.result["judge"]["reason"].as_str().unwrap();
    assert_eq!(without_token(said), answer);
    assert_eq!(run.events("judge_failed").len(), 3);
    assert_eq!(run.result["turns"], 0, "a judge's failure is no turn");
    assert_eq!(run.result["commit"], Value::Null);
    assert!(machine.commits_on(BRANCH).is_empty());
}

#[test]
fn claude_judges_itself() {
    check_continue_then_done(Cli::Claude, "same");
}

#[test]
fn codex_is_judged_by_claude() {
    check_continue_then_done(Cli::Codex, "claude");
}

#[test]
fn gemini_is_judged_by_codex() {
    check_continue_then_done(Cli::Gemini, "codex");
}

#[test]
fn pi_is_judged_by_gemini() {
    check_continue_then_done(Cli::Pi, "gemini");
}

#[test]
fn gemini_gives_no_verdict() {
    let twice = r#"{"verdict":"done","reason":"a","token":"{{token}}"} {"verdict":"done","reason":"b","token":"{{token}}"}"#;
    check_malformed(Cli::Gemini, twice);
}

#[test]
fn pi_gives_no_verdict() {
    check_malformed(
        Cli::Pi,
        r#"Surely {"verdict":"done","reason":"it said so"}"#,
    );
}

#[test]
fn a_judge_may_come_to_its_senses() {
    let machine = Machine::new(judging(vec![
        json!("It looks fine to me."),
        verdict("done", "it says 42"),
    ]));
    let run = machine.run(Cli::Codex, "claude", &[]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
    assert_eq!(run.events("judge_failed").len(), 1);
    assert_eq!(run.result["judge"]["verdict"], "done");
    machine.assert_usage(&run, 4);
}

#[test]
fn an_open_contract_lets_no_verdict_pass_and_says_so() {
    let machine = Machine::new(judging(vec![json!("It looks fine to me.")]));
    let run = machine.run(Cli::Codex, "same", &["--judge-unavailable", "open"]);
    run.assert_status("done", 0);
    assert_eq!(run.result["judge"]["verdict"], "malformed");
    assert!(
        run.reason().contains("the contract allows"),
        "{}",
        run.reason()
    );
}

#[test]
fn a_judge_that_finds_it_impossible_ends_it() {
    let machine = Machine::new(judging(vec![verdict("impossible", "there is no answer")]));
    let run = machine.run(Cli::Pi, "codex", &[]);
    run.assert_status("impossible", 5);
    assert!(
        run.reason().contains("there is no answer"),
        "{}",
        run.reason()
    );
    assert!(machine.commits_on(BRANCH).is_empty());
}
