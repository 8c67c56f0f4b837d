//! Injected failures: where they hit, how often, and how they look on the wire.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::record::ServedAnswer;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use serde_json::{Value, json};

use crate::client::{Reply, Speech, Turn, connect, events, head, post};
use crate::wire::tools;

const DEADLINE: Duration = Duration::from_secs(30);

/// Starts a server whose step 0 speaks and has this fault once.
fn faulty(kind: FaultKind) -> ModelServer {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("All is well.")]);
    scenario.faults = vec![InjectedFault::new(
        FaultTarget::Step(0),
        Times::First(1),
        kind,
    )];
    ModelServer::start(scenario).expect("a server")
}

fn ask(server: &ModelServer, speech: Speech, stream: bool) -> Reply {
    let (path, body) = speech.request(stream, &[Turn::User("Do it.")], &tools(speech));
    post(server, &path, &body)
}

#[test]
fn each_failure_in_each_api_happens_once() {
    let check = |kind: FaultKind, looks_right: &dyn Fn(Speech, bool, &Reply) -> bool| {
        for (speech, stream) in Speech::ALL.iter().flat_map(|s| [(*s, false), (*s, true)]) {
            let server = faulty(kind.clone());
            let reply = ask(&server, speech, stream);
            assert!(
                looks_right(speech, stream, &reply),
                "{kind:?} {speech:?} {reply:?}"
            );
            let retried = ask(&server, speech, stream);
            let text = speech.said(stream, &retried).text;
            assert_eq!(text, "All is well.", "{kind:?} {speech:?}");
            let answers: Vec<ServedAnswer> =
                server.requests().into_iter().map(|r| r.answer).collect();
            assert_eq!(
                answers,
                [ServedAnswer::Fault(kind.clone()), ServedAnswer::Step]
            );
        }
    };
    let status = FaultKind::Status {
        code: 429,
        retry_after_s: Some(7),
    };
    check(status, &|speech, _, reply| {
        let error: Value = serde_json::from_str(&reply.body).expect("an error is JSON");
        let kind = match speech {
            Speech::Gemini => &error["error"]["status"],
            _ => &error["error"]["type"],
        };
        let expected = match speech {
            Speech::Gemini => "RESOURCE_EXHAUSTED",
            _ => "rate_limit_error",
        };
        reply.status == 429 && reply.head.contains("retry-after: 7") && kind == expected
    });
    check(FaultKind::Disconnect, &|_, _, reply| reply.status == 0);
    check(FaultKind::Truncate, &|_, _, reply| {
        reply.status == 200 && !reply.body.is_empty() && !reply.complete
    });
    check(FaultKind::Malformed, &|_, stream, reply| {
        let unreadable = |text: &str| serde_json::from_str::<Value>(text).is_err();
        let all_unreadable = if stream {
            events(&reply.body).iter().all(Value::is_null)
        } else {
            unreadable(&reply.body)
        };
        reply.status == 200 && reply.complete && all_unreadable
    });
    check(FaultKind::Empty, &|speech, stream, reply| {
        let said = speech.said(stream, reply);
        reply.complete && said.text.is_empty() && said.calls.is_empty()
    });
    check(
        FaultKind::Huge { bytes: 300_000 },
        &|speech, stream, reply| {
            let said = speech.said(stream, reply);
            reply.complete && said.text.len() == 300_000
        },
    );
}

#[test]
fn a_late_answer_is_whole() {
    let server = faulty(FaultKind::Delay { ms: 200 });
    let began = Instant::now();
    let reply = ask(&server, Speech::Chat, true);
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(Speech::Chat.streamed(&reply).text, "All is well.");
}

#[test]
fn hanging_and_stalling_end_with_the_server() {
    for (kind, n_bytes_min) in [(FaultKind::Hang, 0), (FaultKind::Stall, 100)] {
        let server = faulty(kind.clone());
        let (path, body) =
            Speech::Anthropic.request(true, &[Turn::User("u")], &tools(Speech::Anthropic));
        let body = body.to_string();
        let mut stream = connect(&server);
        stream
            .write_all(head("POST", &path, &body, "").as_bytes())
            .expect("the server reads");
        stream.write_all(body.as_bytes()).expect("the server reads");
        let mut first = vec![0; n_bytes_min];
        stream.read_exact(&mut first).expect("half of an answer");
        assert!(server.wait_until(DEADLINE, &|requests| requests.len() == 1));
        assert_eq!(server.requests()[0].answer, ServedAnswer::Fault(kind));
        let client = thread::spawn(move || {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).map(|_| rest)
        });
        drop(server);
        let rest = client.join().expect("no panic").expect("a clean end");
        assert!(!String::from_utf8_lossy(&rest).contains("message_stop"));
    }
}

#[test]
fn a_hanging_request_ends_with_its_client() {
    let server = faulty(FaultKind::Hang);
    let (path, body) = Speech::Chat.request(true, &[Turn::User("u")], &tools(Speech::Chat));
    let body = body.to_string();
    let mut stream = connect(&server);
    stream
        .write_all(head("POST", &path, &body, "").as_bytes())
        .expect("the server reads");
    stream.write_all(body.as_bytes()).expect("the server reads");
    assert!(server.wait_until(DEADLINE, &|requests| requests.len() == 1));
    drop(stream);
    assert_eq!(ask(&server, Speech::Chat, false).status, 200);
}

#[test]
fn faults_hit_what_they_aim_at() {
    let fault = |at, matching: Option<&str>, code| InjectedFault {
        at,
        times: Times::Always,
        matching: matching.map(str::to_owned),
        kind: FaultKind::Status {
            code,
            retry_after_s: None,
        },
    };
    let mut scenario =
        ModelScenario::new(vec![AssistantTurn::bash("ls"), AssistantTurn::text("end")]);
    scenario.judges = vec![JudgeRule::new("JUDGE", vec![json!({ "verdict": "done" })])];
    scenario.faults = vec![
        fault(FaultTarget::Judge, None, 503),
        fault(FaultTarget::Step(1), None, 500),
        fault(FaultTarget::Any, Some("poison"), 400),
    ];
    let server = ModelServer::start(scenario).expect("a server");
    let check = |turns: &[Turn<'_>], tools: &Value, status: u16| {
        let (path, body) = Speech::Chat.request(false, turns, tools);
        assert_eq!(post(&server, &path, &body).status, status, "{turns:?}");
    };
    let offered = tools(Speech::Chat);
    check(&[Turn::User("u")], &offered, 200);
    check(&[Turn::User("u"), Turn::Tool("r")], &offered, 500);
    check(&[Turn::User("u"), Turn::Tool("r")], &offered, 500);
    check(&[Turn::User("u"), Turn::Tool("r")], &json!([]), 200);
    check(&[Turn::User("poison")], &offered, 400);
    check(&[Turn::User("poison")], &json!([]), 400);
    check(&[Turn::User("JUDGE")], &json!([]), 503);
}

#[test]
fn a_new_scenario_starts_anew() {
    let server = faulty(FaultKind::Disconnect);
    assert_eq!(ask(&server, Speech::Chat, false).status, 0);
    assert_eq!(ask(&server, Speech::Chat, false).status, 200);
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("other")]);
    scenario.faults = vec![InjectedFault::status(500, 0, 1)];
    server.set_scenario(scenario);
    assert_eq!(ask(&server, Speech::Chat, false).status, 500);
    let reply = ask(&server, Speech::Chat, false);
    assert_eq!(Speech::Chat.whole(&reply).text, "other");
    assert_eq!(server.requests().len(), 4);
}
