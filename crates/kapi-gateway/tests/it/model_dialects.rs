//! The scripted model server of the test kit behind the gateway, in all four dialects.
//!
//! Neither knows of the other: the server was written for real agent CLIs.

use kapi_gateway::model::dialect::ModelDialect;
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::KeyFingerprint;
use kapi_testkit::model_server::scenario::{AssistantTurn, ModelScenario, ReplyUsage};

use crate::model_rig::{Provide, SECRET, Setup, run};

const NOT_THIS_ONE: Provide<'_> = &|_, _| panic!("the scripted server is another");
const USAGE: ReplyUsage = ReplyUsage {
    input: 100,
    output: 20,
    cache_read: 3000,
    cache_write: 400,
    reasoning: 7,
};

fn server() -> ModelServer {
    ModelServer::start(ModelScenario {
        usage: USAGE,
        require_key: Some(SECRET.to_owned()),
        ..ModelScenario::new(vec![
            AssistantTurn::text("It is a fine day.").saying("Words, words, words."),
        ])
    })
    .expect("a server")
}

fn check(dialect: ModelDialect, version: &str, (path, body): (&str, &str)) {
    let server = server();
    let setup = Setup {
        base_url: Some(format!("{}{version}", server.base_url())),
        ..Setup::new(dialect)
    };
    run(setup, NOT_THIS_ONE, &|rig| {
        let mut agent = rig.connect();
        let got = agent.post(path, body);
        assert_eq!(
            (got.head.status, got.is_whole),
            (200, true),
            "{path} {}",
            got.body
        );
        let usage = rig.totals().usage;
        assert_eq!(
            usage.input_tokens,
            USAGE.prompt_total(),
            "{path}: {}",
            got.body
        );
        assert_eq!(
            usage.output_tokens,
            USAGE.answer_total(),
            "{path}: {}",
            got.body
        );
        assert_eq!(
            (rig.totals().n_unmetered, rig.reported()),
            (0, usage),
            "{path}"
        );
        let requests = server.requests();
        let key = requests[0].key_fingerprint.as_ref();
        assert_eq!(key, Some(&KeyFingerprint::of(SECRET)));
        let models = rig.connect().get("/v1/models");
        assert_eq!(models.head.status, 200, "{}", models.body);
        assert_eq!(rig.totals().n_calls, 1);
    });
}

#[test]
fn anthropic_whole_and_streamed() {
    let path = "/v1/messages?beta=true";
    let whole = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    check(ModelDialect::Anthropic, "", (path, whole));
    let streamed = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    check(ModelDialect::Anthropic, "", (path, streamed));
}

#[test]
fn responses_whole_and_streamed() {
    let path = "/v1/responses";
    check(
        ModelDialect::Responses,
        "/v1",
        (path, r#"{"model":"m","input":"hi"}"#),
    );
    let streamed = r#"{"model":"m","stream":true,"input":"hi"}"#;
    check(ModelDialect::Responses, "/v1", (path, streamed));
}

#[test]
fn chat_whole_and_streamed_without_being_asked_for_usage() {
    let path = "/v1/chat/completions";
    let whole = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    check(ModelDialect::Chat, "/v1", (path, whole));
    let streamed = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    check(ModelDialect::Chat, "/v1", (path, streamed));
}

#[test]
fn gemini_whole_and_streamed_in_both_forms() {
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    for call in [
        "generateContent",
        "streamGenerateContent?alt=sse",
        "streamGenerateContent",
    ] {
        let path = format!("/v1beta/models/gemini-2.5-pro:{call}");
        check(ModelDialect::Gemini, "", (&path, body));
    }
}
