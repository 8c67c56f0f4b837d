//! The real agent CLIs against the scripted model: no Kapi, no sandbox.
//! The checks are the same for all; a launch says how one CLI wants to be started.

mod claude;
mod codex;
mod gemini;
mod pi;
mod session;

use kapi_testkit::agent_tools::Cli;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::record::{RecordedRequest, ServedAnswer};
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, Route, ToolUse,
};
use serde_json::{Value, json};

use crate::real::session::{Ended, KEY, Session};

/// The schema of a verdict, for the CLIs that can demand one.
const VERDICT_SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"required":["verdict","reason"],
    "properties":{"verdict":{"type":"string"},"reason":{"type":"string"}}}"#;

/// How one CLI is started for each purpose.
pub(crate) struct Launches {
    cli: Cli,
    first: fn(&Session, prompt: &str) -> Ended,
    resume: fn(&Session, first: &Ended, prompt: &str) -> Ended,
    judge: fn(&Session, prompt: &str) -> Ended,
    /// Returns the text that a judge's run ends with.
    last_text: fn(&Ended) -> String,
}

fn bash(command: &str) -> ToolUse {
    ToolUse::Bash {
        command: command.to_owned(),
    }
}

/// Every tool in one session, and a second session that goes on in a new process.
fn check_tools_and_resume(launches: &Launches) {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::bash("echo from-bash > bash.txt").saying("Starting."),
        AssistantTurn::write("notes/a.txt", "one\ntwo\n"),
        AssistantTurn::edit("notes/a.txt", "two", "three"),
        AssistantTurn::read("notes/a.txt"),
        AssistantTurn::tools(vec![bash("echo a > a.txt"), bash("echo b > b.txt")]),
        AssistantTurn::text("First part done."),
    ]);
    scenario.routes = vec![Route::new(
        "SECOND-PROMPT",
        vec![
            AssistantTurn::write("second.txt", "it's 100% \"exact\", no newline"),
            AssistantTurn::text("Second part done."),
        ],
    )];
    let session = Session::start(launches.cli, scenario);

    let first = (launches.first)(&session, "FIRST-PROMPT: do it");
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(
        (launches.last_text)(&first),
        "First part done.",
        "{first:?}"
    );
    assert_eq!(session.file("bash.txt"), "from-bash\n");
    assert_eq!(session.file("notes/a.txt"), "one\nthree\n");
    assert_eq!(session.file("a.txt"), "a\n");
    assert_eq!(session.file("b.txt"), "b\n");
    assert_eq!(steps(&session), [0, 1, 2, 3, 4, 5]);
    let read = session
        .requests()
        .iter()
        .find(|r| r.step == Some(4))
        .cloned();
    let read = read.expect("the read was answered").last_tool_result;
    assert!(read.contains("three"), "{read}");

    let second = (launches.resume)(&session, &first, "SECOND-PROMPT: go on");
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(
        (launches.last_text)(&second),
        "Second part done.",
        "{second:?}"
    );
    assert_eq!(
        session.file("second.txt"),
        "it's 100% \"exact\", no newline"
    );
    assert_eq!(steps(&session), [0, 1, 2, 3, 4, 5, 0, 1]);
    let requests = session.requests();
    let last = requests.last().expect("requests were made");
    assert!(
        last.body.to_string().contains("FIRST-PROMPT"),
        "the history is gone"
    );
    for request in requests.iter().filter(|request| request.api.is_some()) {
        let key = request.key_fingerprint.as_ref().expect("a key was sent");
        assert_eq!(key.len, KEY.len());
    }
}

/// Two verdicts in two processes.
fn check_judge(launches: &Launches) {
    let refused = json!({ "verdict": "continue", "reason": "the test fails" });
    let accepted = json!({ "verdict": "done", "reason": "all is well" });
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("This is no verdict.")]);
    scenario.judges = vec![JudgeRule::new(
        "JUDGE-THIS",
        vec![refused.clone(), accepted.clone()],
    )];
    let session = Session::start(launches.cli, scenario);
    for expected in [refused, accepted] {
        let ended = (launches.judge)(&session, "JUDGE-THIS: is it done?");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let text = (launches.last_text)(&ended);
        let verdict: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {ended:?}"));
        assert_eq!(verdict, expected);
    }
}

/// A rate limit that passes.
fn check_rate_limit(launches: &Launches) {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::write("a.txt", "a\n"),
        AssistantTurn::text("Done after all."),
    ]);
    let kind = FaultKind::Status {
        code: 429,
        retry_after_s: Some(1),
    };
    scenario.faults = vec![InjectedFault::new(
        FaultTarget::Step(1),
        Times::First(1),
        kind.clone(),
    )];
    let session = Session::start(launches.cli, scenario);
    let ended = (launches.first)(&session, "do it");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!((launches.last_text)(&ended), "Done after all.");
    assert_eq!(session.file("a.txt"), "a\n");
    let answers: Vec<ServedAnswer> = answered(&session).into_iter().map(|r| r.answer).collect();
    assert_eq!(
        answers,
        [
            ServedAnswer::Step,
            ServedAnswer::Fault(kind),
            ServedAnswer::Step
        ]
    );
}

/// A key that is refused. Returns how the CLI ended, for its own words about it.
fn check_refused_key(launches: &Launches) -> Ended {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::write("a.txt", "a\n")]);
    scenario.require_key = Some("another key".to_owned());
    let session = Session::start(launches.cli, scenario);
    let ended = (launches.first)(&session, "do it");
    assert!(!session.has_file("a.txt"));
    let answers: Vec<ServedAnswer> = answered(&session).into_iter().map(|r| r.answer).collect();
    assert!(!answers.is_empty(), "{ended:?}");
    assert!(
        answers.iter().all(|answer| *answer == ServedAnswer::Denied),
        "{answers:?}"
    );
    ended
}

/// Returns the steps that were asked for, in order.
fn steps(session: &Session) -> Vec<usize> {
    session
        .requests()
        .iter()
        .filter_map(|request| request.step)
        .collect()
}

fn answered(session: &Session) -> Vec<RecordedRequest> {
    session
        .requests()
        .into_iter()
        .filter(|request| request.api.is_some())
        .collect()
}
