//! What goes wrong between a real CLI and its provider, each as a named outcome.
//!
//! A failure that may pass is tried again, by the CLI itself or by Kapi, and is never a turn.

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::record::{RecordedRequest, ServedAnswer};
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::environment::{BRANCH, FIRST, usual};
use crate::machine::{ClosedPort, JUDGE_MARK, Machine, activities, answers_of};
use crate::program::Run;

/// Who tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retries {
    /// The CLI: Kapi sees no failure.
    Inside,
    /// Kapi, after a wait: failures of this kind are recorded, as many as the tries of the CLI leave;
    /// these differ from one of its versions to the next.
    ByKapi(&'static str),
}

/// One turn that does it, where the model fails in a way at a step.
fn failing(step: usize, times: Times, kind: FaultKind) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]);
    scenario.faults = vec![InjectedFault::new(FaultTarget::Step(step), times, kind)];
    scenario
}

/// Runs into a failure that passes, and checks who tried again and that it was no turn.
fn check_passing(cli: Cli, scenario: ModelScenario, retries: Retries) {
    let machine = Machine::new(scenario);
    let run = machine.run(cli, "none", &["--turns", "1"]);
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1, "{:#?}", run.lines);
    assert_eq!(machine.env.show(BRANCH, "answer.txt"), "42");
    assert_eq!(machine.commits_on(BRANCH).len(), 1);
    let failures = run.events("provider_failed");
    let kinds: Vec<&Value> = failures
        .iter()
        .map(|data| &data["failure"]["kind"])
        .collect();
    let is_expected = match retries {
        Retries::Inside => kinds.is_empty(),
        Retries::ByKapi(kind) => !kinds.is_empty() && kinds.iter().all(|found| *found == kind),
    };
    let asked = machine.asked();
    assert!(is_expected, "{kinds:?} {:#?}", answers_of(&asked));
    for failure in failures {
        assert!(failure["retry_at_ms"].is_number(), "{failure}");
    }
    machine.env.await_no_process();
}

fn status(code: u16, retry_after_s: Option<u64>) -> FaultKind {
    FaultKind::Status {
        code,
        retry_after_s,
    }
}

/// A rate limit that outlasts the CLI's own tries, where it has any that are quick.
fn check_rate_limit(cli: Cli) {
    let (times, wait, retries) = match cli {
        Cli::Claude | Cli::Pi => (3, None, Retries::ByKapi("rate_limited")),
        Cli::Codex => (1, None, Retries::ByKapi("rate_limited")),
        // Its own waits are so long that the second failure would take half a minute.
        Cli::Gemini => (1, Some(1), Retries::Inside),
    };
    let scenario = failing(1, Times::First(times), status(429, wait));
    check_passing(cli, scenario, retries);
}

fn check_truncated(cli: Cli) {
    let retries = match cli {
        Cli::Claude | Cli::Codex => Retries::Inside,
        Cli::Gemini | Cli::Pi => Retries::ByKapi("truncated_stream"),
    };
    let scenario = failing(0, Times::First(1), FaultKind::Truncate);
    check_passing(cli, scenario, retries);
}

fn check_empty(cli: Cli) {
    let retries = match cli {
        Cli::Claude | Cli::Gemini => Retries::Inside,
        Cli::Codex | Cli::Pi => Retries::ByKapi("empty_answer"),
    };
    let scenario = failing(0, Times::First(1), FaultKind::Empty);
    check_passing(cli, scenario, retries);
}

/// A key that the provider does not take is told before anybody approves; where it takes it no more
/// later, waiting does not help, so nobody waits.
fn check_refused_key(cli: Cli) {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::bash("echo 42 > answer.txt")]);
    scenario.require_key = Some("another key".to_owned());
    let machine = Machine::new(scenario);
    let refused = machine.env.kapi(&usual(cli.name(), &["--judge", "none"]));
    refused.assert_error_among_talk(4, &["cannot work", "401"]);
    assert!(!machine.env.goal_dir(FIRST).exists(), "no goal was made");
    let scenario = failing(0, Times::Always, status(401, None));
    machine.server.set_scenario(scenario);
    let run = machine.run(cli, "none", &[]);
    run.assert_status("blocked", 5);
    assert_eq!(run.result["turns"], 0);
    assert_eq!(run.result["commit"], Value::Null);
    assert!(
        run.reason().contains("(not authorized)"),
        "{}",
        run.reason()
    );
    assert!(run.reason().contains("401"), "{}", run.reason());
    let failures = run.events("provider_failed");
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["retry_at_ms"], Value::Null);
    let next = run.result["next"].to_string();
    assert!(next.contains("kapi resume 001"), "{next}");
    let asked = machine.asked();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(is_unserved), "{:#?}", answers_of(&asked));

    // The person puts the key right and lets it go on.
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]);
    scenario.require_key = Some(machine.key().to_owned());
    machine.server.set_scenario(scenario);
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
}

/// Tells whether a request got no work out of the model.
fn is_unserved(request: &RecordedRequest) -> bool {
    matches!(request.answer, ServedAnswer::Fault(_) | ServedAnswer::Side)
}

/// A server that is not there: tried again after a wait, until the person mends the address.
fn check_unreachable(cli: Cli) {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]));
    let closed = ClosedPort::new();
    machine.configure(&|_| closed.base_url());
    let running = machine.env.start_run(cli.name(), &["--judge", "none"]);
    machine.env.await_event(FIRST, &|event| {
        event["type"] == "effect_intended" && event["data"]["effect"] == "t001-agent-a2"
    });
    running.signal(Signal::INT);
    let run = Run::from(running.finish());
    run.assert_status("paused", 130);
    assert_eq!(run.result["turns"], 0);
    let failures = run.events("provider_failed");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["failure"]["kind"], "unreachable");
    assert!(failures[0]["retry_at_ms"].is_number());
    assert!(machine.asked().is_empty());
    machine.env.await_no_process();

    machine.configure(&|_| machine.server.base_url());
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
}

#[test]
fn a_rate_limit_passes_with_claude() {
    check_rate_limit(Cli::Claude);
}

#[test]
fn a_rate_limit_passes_with_codex() {
    check_rate_limit(Cli::Codex);
}

#[test]
fn a_rate_limit_passes_with_gemini() {
    check_rate_limit(Cli::Gemini);
}

#[test]
fn a_rate_limit_passes_with_pi() {
    check_rate_limit(Cli::Pi);
}

#[test]
fn a_truncated_answer_passes_with_claude() {
    check_truncated(Cli::Claude);
}

#[test]
fn a_truncated_answer_passes_with_codex() {
    check_truncated(Cli::Codex);
}

#[test]
fn a_truncated_answer_passes_with_gemini() {
    check_truncated(Cli::Gemini);
}

#[test]
fn a_truncated_answer_passes_with_pi() {
    check_truncated(Cli::Pi);
}

#[test]
fn an_empty_answer_passes_with_claude() {
    check_empty(Cli::Claude);
}

#[test]
fn an_empty_answer_passes_with_codex() {
    check_empty(Cli::Codex);
}

#[test]
fn an_empty_answer_passes_with_gemini() {
    check_empty(Cli::Gemini);
}

#[test]
fn an_empty_answer_passes_with_pi() {
    check_empty(Cli::Pi);
}

#[test]
fn a_refused_key_blocks_claude() {
    check_refused_key(Cli::Claude);
}

#[test]
fn a_refused_key_blocks_codex() {
    check_refused_key(Cli::Codex);
}

#[test]
fn a_refused_key_blocks_gemini() {
    check_refused_key(Cli::Gemini);
}

#[test]
fn a_refused_key_blocks_pi() {
    check_refused_key(Cli::Pi);
}

#[test]
fn an_unreachable_server_pauses_claude() {
    check_unreachable(Cli::Claude);
}

#[test]
fn an_unreachable_server_pauses_codex() {
    check_unreachable(Cli::Codex);
}

#[test]
fn an_unreachable_server_pauses_gemini() {
    check_unreachable(Cli::Gemini);
}

#[test]
fn an_unreachable_server_pauses_pi() {
    check_unreachable(Cli::Pi);
}

/// A judge has fewer tries at once than an executor, so here the end of the tries can be waited for.
#[test]
fn a_judge_whose_server_stays_unreachable_parks_the_goal() {
    let machine = Machine::new(ModelScenario::new(vec![
        AssistantTurn::bash("echo 42 > answer.txt"),
        AssistantTurn::text("It is done."),
    ]));
    let closed = ClosedPort::new();
    machine.configure(&|cli| match cli {
        Cli::Pi => closed.base_url(),
        Cli::Claude | Cli::Codex | Cli::Gemini => machine.server.base_url(),
    });
    let run = machine.run(Cli::Codex, "pi", &["--turns", "1", "--park"]);
    run.assert_status("waiting", 5);
    assert!(
        run.reason()
            .starts_with("parked until Kapi asks the judge pi again"),
        "{}",
        run.reason()
    );
    let failures = run.events("judge_failed");
    let kinds: Vec<&Value> = failures
        .iter()
        .map(|data| &data["run"]["answer"]["kind"])
        .collect();
    assert_eq!(kinds, ["unreachable"; 5], "{failures:#?}");
    assert_eq!(run.result["judge"]["verdict"], "unavailable");
    assert_eq!(run.result["commit"], Value::Null);
    assert!(machine.commits_on(BRANCH).is_empty());

    // With the judge back, the same work is judged; nobody works again.
    let mut scenario = ModelScenario::new(Vec::new());
    let verdict = json!({ "verdict": "done", "reason": "it is right", "token": "{{token}}" });
    scenario.judges = vec![JudgeRule::new(JUDGE_MARK, vec![verdict])];
    machine.server.set_scenario(scenario);
    machine.configure(&|_| machine.server.base_url());
    let run = machine.env.resume("1");
    run.assert_status("done", 0);
    assert_eq!(run.result["turns"], 1);
    assert!(run.events("agent_ended").is_empty());
}

/// Retries inside the CLI are shown, where it tells of them.
#[test]
fn retries_inside_claude_are_shown() {
    let machine = Machine::new(failing(0, Times::First(1), status(529, None)));
    let run = machine.run(Cli::Claude, "none", &[]);
    run.assert_status("done", 0);
    let notes = activities(&run, "note");
    assert!(notes.iter().any(|note| note.contains("529")), "{notes:?}");
}
