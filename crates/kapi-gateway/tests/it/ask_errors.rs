//! Everything that can become of a question but an answer.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use kapi_core::agent_end::ProviderFailureKind;
use kapi_gateway::ask::ask;
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::AnswerForm;
use kapi_gateway::ask::probe::probe;
use kapi_gateway::ask::server::ModelApi;
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_sys::cancel::Cancel;
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::scenario::ModelScenario;
use serde_json::{Value, json};

use crate::ask_rig::{
    APIS, KEY, Reply, Scripted, VERDICT_FORM, answer, ask_at, ask_for, error, question,
    read_request, server, spoken, write_reply,
};
use crate::room::with_room;
use crate::support::{PATIENCE, Target};

/// Time enough for a loopback, and short for a test that must wait it out.
const SHORT: Duration = Duration::from_millis(400);

fn name(error: &AskError) -> &'static str {
    match error {
        AskError::Prepare { .. } => "prepare",
        AskError::Unreachable { .. } => "unreachable",
        AskError::BrokenOff { .. } => "broken off",
        AskError::Unauthorised { .. } => "unauthorised",
        AskError::OutOfCredit { .. } => "out of credit",
        AskError::UnknownModel { .. } => "unknown model",
        AskError::RateLimited { .. } => "rate limited",
        AskError::Overloaded { .. } => "overloaded",
        AskError::Refused { .. } => "refused",
        AskError::Rejected { .. } => "rejected",
        AskError::Malformed { .. } => "malformed",
        AskError::Empty { .. } => "empty",
        AskError::CutShort { .. } => "cut short",
        AskError::TimedOut { .. } => "timed out",
        AskError::Cancelled { .. } => "cancelled",
    }
}

fn faulty(kind: FaultKind) -> ModelServer {
    let mut scenario = ModelScenario::new(Vec::new());
    scenario.faults = vec![InjectedFault::new(FaultTarget::Any, Times::Always, kind)];
    ModelServer::start(scenario).expect("a server")
}

#[test]
fn each_failure_of_a_server_has_its_kind_in_every_api() {
    use ProviderFailureKind as Kind;
    let status = |code| FaultKind::Status {
        code,
        retry_after_s: None,
    };
    for (fault, expected, kind) in [
        (status(401), "unauthorised", Some(Kind::Unauthorized)),
        (status(403), "unauthorised", Some(Kind::Unauthorized)),
        (status(429), "rate limited", Some(Kind::RateLimited)),
        (status(500), "overloaded", Some(Kind::ServerError)),
        (status(503), "overloaded", Some(Kind::ServerError)),
        (status(529), "overloaded", Some(Kind::ServerError)),
        (status(400), "rejected", Some(Kind::BadRequest)),
        (status(413), "rejected", Some(Kind::BadRequest)),
        (FaultKind::Malformed, "malformed", None),
        (FaultKind::Empty, "empty", Some(Kind::EmptyAnswer)),
        (
            FaultKind::Disconnect,
            "broken off",
            Some(Kind::TruncatedStream),
        ),
        (
            FaultKind::Truncate,
            "broken off",
            Some(Kind::TruncatedStream),
        ),
    ] {
        let model = faulty(fault.clone());
        for api in APIS {
            let asked = ask_at(&server(api, &model.base_url()), AnswerForm::Words);
            let n_unmetered = asked.n_unmetered;
            let error = error(asked);
            assert_eq!(name(&error), expected, "{api:?} {fault:?}: {error:?}");
            let failure = error.failure();
            assert_eq!(
                failure.map(|failure| failure.kind),
                kind,
                "{api:?} {fault:?}"
            );
            let may_have_cost = matches!(expected, "malformed" | "broken off");
            assert_eq!(n_unmetered, u32::from(may_have_cost), "{api:?} {fault:?}");
        }
    }
}

#[test]
fn a_rate_limit_says_when_it_is_over() {
    let model = faulty(FaultKind::Status {
        code: 429,
        retry_after_s: Some(17),
    });
    for api in APIS {
        let error = error(ask_at(&server(api, &model.base_url()), VERDICT_FORM));
        assert!(
            matches!(
                error,
                AskError::RateLimited {
                    reset_after_ms: Some(17_000),
                    ..
                }
            ),
            "{error:?}"
        );
        let failure = error.failure().expect("a failure");
        assert_eq!(failure.retry_after_ms, Some(17_000));
    }
    assert_eq!(model.requests().len(), 3, "nobody asks again at once");
}

#[test]
fn a_server_that_says_nothing_is_given_up_at_the_deadline() {
    for kind in [FaultKind::Hang, FaultKind::Stall] {
        let model = faulty(kind);
        for api in APIS {
            with_room(100, |limit_ms| {
                let started = Instant::now();
                let limit = Duration::from_millis(limit_ms);
                let asked = ask_for(&server(api, &model.base_url()), limit);
                // It may have cost something, once it was sent.
                let was_sent = asked.n_unmetered == 1;
                let error = error(asked);
                assert!(
                    matches!(error, AskError::TimedOut { deadline_ms, .. } if deadline_ms == limit_ms),
                    "{api:?}: {error:?}"
                );
                assert!(started.elapsed() >= limit && started.elapsed() < limit + PATIENCE);
                was_sent.then_some(())
            });
        }
    }
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_given_up_too() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("a client");
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
            let mut sent = stream.write_all(head.as_bytes());
            while sent.is_ok() {
                thread::park_timeout(Duration::from_millis(5));
                sent = stream.write_all(b" ");
            }
        });
        let error = error(ask_for(&server(ModelApi::Chat, &url), SHORT));
        // The server's thread ends also if there was no time to connect.
        drop(TcpStream::connect(address));
        assert_eq!(name(&error), "timed out", "{error:?}");
    });
}

#[test]
fn a_wait_can_be_cancelled() {
    let model = faulty(FaultKind::Hang);
    let cancel = Cancel::new();
    let asked = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let server = server(ModelApi::Anthropic, &model.base_url());
            ask(&server, &question(AnswerForm::Words), PATIENCE, &cancel)
        });
        assert!(model.wait_until(PATIENCE, &|requests| !requests.is_empty()));
        cancel.raise();
        waiting.join().expect("no panic")
    });
    assert_eq!(asked.n_unmetered, 1);
    assert_eq!(name(&error(asked)), "cancelled");
    // Nothing is sent for one that is cancelled already.
    let server = Scripted::start(|_| panic!("nothing is sent"));
    let asked = ask(
        &server.server(ModelApi::Chat),
        &question(AnswerForm::Words),
        PATIENCE,
        &cancel,
    );
    assert_eq!(asked.n_unmetered, 0);
    assert_eq!(name(&error(asked)), "cancelled");
}

#[test]
fn nobody_at_an_address_is_unreachable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    for api in APIS {
        let error = error(ask_at(&server(api, &url), AnswerForm::Words));
        assert_eq!(name(&error), "unreachable", "{error:?}");
        let failure = error.failure().expect("a failure");
        assert!(failure.message.contains("refused"), "{}", failure.message);
        assert!(error.hint().is_some());
        let probed = probe(&server(api, &url), "m", PATIENCE, &Cancel::new());
        assert_eq!(name(&probed.outcome.expect_err("nobody")), "unreachable");
    }
}

#[test]
fn a_server_without_the_right_certificate_is_unreachable() {
    let plain = Scripted::start(|_| panic!("nothing can be read"));
    let secured = plain.server_at(ModelApi::Chat, "https", "");
    let error = error(ask_for(&secured, SHORT));
    assert!(
        ["unreachable", "timed out"].contains(&name(&error)),
        "{error:?}"
    );
}

/// Returns what an answer of this status and body is taken for, in an API.
fn taken_for(api: ModelApi, status: u16, body: Value) -> String {
    let server = Scripted::start(move |_| Reply::json(status, &body));
    name(&error(ask_at(&server.server(api), AnswerForm::Words))).to_owned()
}

#[test]
fn words_decide_where_the_status_does_not() {
    let worded = |message: &str| json!({ "error": { "message": message } });
    for (api, status, body, expected) in [
        (
            ModelApi::Anthropic,
            400,
            worded("Your credit balance is too low to access it"),
            "out of credit",
        ),
        (ModelApi::Chat, 402, worded("pay"), "out of credit"),
        (
            ModelApi::Chat,
            429,
            json!({ "error": { "message": "quota", "code": "insufficient_quota" } }),
            "out of credit",
        ),
        (
            ModelApi::Gemini,
            400,
            json!({ "error": { "message": "API key not valid.", "details": [{ "reason": "API_KEY_INVALID" }] } }),
            "unauthorised",
        ),
        (
            ModelApi::Gemini,
            404,
            worded("models/x is not found for API version v1beta"),
            "unknown model",
        ),
        (
            ModelApi::Chat,
            404,
            worded("The model `x` does not exist."),
            "unknown model",
        ),
        (
            ModelApi::Chat,
            400,
            json!({ "error": { "message": "bad", "code": "model_not_found" } }),
            "unknown model",
        ),
        (ModelApi::Chat, 404, json!("404 page not found"), "rejected"),
        (ModelApi::Chat, 302, json!({}), "rejected"),
        (ModelApi::Chat, 200, json!([]), "malformed"),
        (
            ModelApi::Chat,
            200,
            json!({ "error": "Unexpected endpoint or method." }),
            "malformed",
        ),
        (ModelApi::Anthropic, 200, json!({}), "malformed"),
        (ModelApi::Gemini, 200, json!({}), "malformed"),
    ] {
        assert_eq!(
            taken_for(api, status, body.clone()),
            expected,
            "{api:?} {status} {body}"
        );
    }
}

#[test]
fn a_model_that_declines_or_is_cut_short_gives_no_answer_and_still_costs() {
    let changed = |api, location: &str, value: &str| {
        let mut said = spoken(api, "I am done");
        *said.pointer_mut(location).expect(location) = json!(value);
        said
    };
    let mut refusing = spoken(ModelApi::Chat, "");
    refusing["choices"][0]["message"]["refusal"] = json!("I cannot judge this.");
    let chat_end = "/choices/0/finish_reason";
    let gemini_end = "/candidates/0/finishReason";
    for (api, body, expected) in [
        (
            ModelApi::Anthropic,
            changed(ModelApi::Anthropic, "/stop_reason", "refusal"),
            "refused",
        ),
        (
            ModelApi::Chat,
            changed(ModelApi::Chat, chat_end, "content_filter"),
            "refused",
        ),
        (ModelApi::Chat, refusing, "refused"),
        (
            ModelApi::Gemini,
            changed(ModelApi::Gemini, gemini_end, "SAFETY"),
            "refused",
        ),
        (
            ModelApi::Anthropic,
            changed(ModelApi::Anthropic, "/stop_reason", "max_tokens"),
            "cut short",
        ),
        (
            ModelApi::Chat,
            changed(ModelApi::Chat, chat_end, "length"),
            "cut short",
        ),
        (
            ModelApi::Gemini,
            changed(ModelApi::Gemini, gemini_end, "MAX_TOKENS"),
            "cut short",
        ),
        (
            ModelApi::Gemini,
            changed(ModelApi::Gemini, gemini_end, "OTHER"),
            "malformed",
        ),
    ] {
        let server = Scripted::start(move |_| Reply::json(200, &body));
        let asked = ask_at(&server.server(api), VERDICT_FORM);
        assert_eq!(
            (asked.usage.total(), asked.n_unmetered),
            (13, 0),
            "{api:?} {expected}"
        );
        let error = error(asked);
        assert_eq!(name(&error), expected, "{api:?}");
        assert_eq!(error.failure(), None, "the provider did not fail");
    }
    let blocked = json!({
        "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
        "usageMetadata": { "promptTokenCount": 4 },
    });
    assert_eq!(taken_for(ModelApi::Gemini, 200, blocked), "refused");
}

#[test]
fn a_servers_words_are_shown_without_the_key_and_without_tricks() {
    let server = Scripted::start(|_| {
        let message = format!("bad key {KEY}\u{1b}[2J\n{}", "x".repeat(9_000));
        Reply::json(401, &json!({ "error": { "message": message } }))
    });
    let error = error(ask_at(
        &server.server(ModelApi::Anthropic),
        AnswerForm::Words,
    ));
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains(KEY) && !shown.contains('\u{1b}') && !shown.contains('\n'),
        "{shown}"
    );
    assert!(
        shown.len() < 2_000 && shown.contains("bad key ***"),
        "{shown}"
    );
}

#[test]
fn an_answer_without_end_is_not_read_without_end() {
    let server = Scripted::start(|_| Reply {
        status: 200,
        headers: Vec::new(),
        body: " ".repeat(9 * 1024 * 1024),
    });
    let error = error(ask_at(&server.server(ModelApi::Chat), AnswerForm::Words));
    assert_eq!(name(&error), "broken off", "{error:?}");
}

#[test]
fn the_hosts_own_proxy_is_gone_through() {
    let proxy = Target::start(|mut stream| {
        let tunnel = read_request(stream).expect("a request");
        assert_eq!(tunnel.line, "CONNECT model.example:80 HTTP/1.1");
        stream.write_all(b"HTTP/1.1 200 Ok\r\n\r\n").expect("sent");
        let asked = read_request(stream).expect("a request");
        assert!(
            asked.head.contains("host: model.example\r\n"),
            "{}",
            asked.head
        );
        write_reply(
            stream,
            &Reply::json(200, &spoken(ModelApi::Chat, "from beyond")),
        );
    });
    let named = format!("http://{}", proxy.address);
    let environment = BTreeMap::from([("http_proxy".into(), named.into())]);
    let mut beyond = server(ModelApi::Chat, "http://model.example");
    beyond.host_proxy = HostProxy::of(&environment).expect("a proxy");
    let answer = answer(ask_at(&beyond, AnswerForm::Words));
    assert_eq!(answer.text, "from beyond");
}

#[test]
fn a_redirect_does_not_take_the_key_along() {
    let server = Scripted::start(|_| {
        Reply::json(307, &json!({})).header("Location", "http://127.0.0.1:9/v1/messages")
    });
    let error = error(ask_at(
        &server.server(ModelApi::Anthropic),
        AnswerForm::Words,
    ));
    assert!(
        matches!(error, AskError::Rejected { status: 307, .. }),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 1);
}
