//! One question and its answer, in each of the three ways of speaking.

use kapi_gateway::ask::answer::AnswerChannel;
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::AnswerForm;
use kapi_gateway::ask::probe::{AvailabilitySource, probe};
use kapi_gateway::ask::server::{ModelApi, ModelEndpoint};
use kapi_spend::rules::tokens::TokenCounts;
use kapi_sys::cancel::Cancel;
use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::{
    AssistantTurn, JudgeRule, ModelScenario, ReplyUsage, ToolUse,
};
use serde_json::{Value, json};

use crate::ask_rig::{
    APIS, KEY, Reply, Scripted, VERDICT_FORM, answer, ask_at, error, question, server, spoken,
};
use crate::support::PATIENCE;

const DONE: &str = r#"{"verdict":"done","reason":"all there"}"#;

fn scenario() -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::tools(vec![ToolUse::Named {
        name: "verdict".to_owned(),
        arguments: json!({ "verdict": "done", "reason": "all there" }),
    }])]);
    scenario.usage = ReplyUsage {
        input: 700,
        output: 40,
        cache_read: 200,
        cache_write: 0,
        reasoning: 5,
    };
    scenario.require_key = Some(KEY.to_owned());
    scenario
}

fn at(model: &ModelServer, api: ModelApi) -> ModelEndpoint {
    server(api, &model.base_url())
}

#[test]
fn words_are_asked_for_without_tools_or_history_and_counted_exactly() {
    let model = ModelServer::start(scenario()).expect("a server");
    for api in APIS {
        let asked = ask_at(&at(&model, api), AnswerForm::Words);
        let expected = TokenCounts {
            input: 700,
            output: 45,
            cache_read: 200,
            cache_write: 0,
        };
        assert_eq!((asked.usage, asked.n_unmetered), (expected, 0), "{api:?}");
        let answer = answer(asked);
        assert_eq!(
            (answer.text.as_str(), answer.channel),
            ("ok", AnswerChannel::Text)
        );
        assert_eq!(answer.model, "test-model-1", "{api:?}");
        let request = model.requests().pop().expect("a request");
        assert_eq!(request.tools, Vec::<String>::new());
        assert_eq!(request.last_user, "Is it done?");
        let body = request.body.to_string();
        assert_eq!(body.matches("Is it done?").count(), 1, "{body}");
        assert_eq!(body.matches("You judge.").count(), 1, "{body}");
    }
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn a_verdict_comes_by_a_channel_of_its_own() {
    let mut scenario = scenario();
    let verdict = serde_json::from_str(DONE).expect("json");
    scenario.judges = vec![JudgeRule::new("Is it done?", vec![verdict])];
    let model = ModelServer::start(scenario.clone()).expect("a server");
    for api in [ModelApi::Chat, ModelApi::Gemini] {
        let answer = answer(ask_at(&at(&model, api), VERDICT_FORM));
        assert_eq!(answer.channel, AnswerChannel::Format, "{api:?}");
        let found: Value = serde_json::from_str(&answer.text).expect("json");
        assert_eq!(found["verdict"], "done", "{api:?}");
    }
    scenario.judges = Vec::new();
    model.set_scenario(scenario);
    let answer = answer(ask_at(&at(&model, ModelApi::Anthropic), VERDICT_FORM));
    assert_eq!(answer.channel, AnswerChannel::Tool);
    let found: Value = serde_json::from_str(&answer.text).expect("json");
    assert_eq!(found, json!({ "verdict": "done", "reason": "all there" }));
    assert_eq!(model.requests().len(), 3, "one request each");
}

#[test]
fn the_form_of_the_verdict_is_asked_for_in_each_apis_own_words() {
    let server = Scripted::start(|request| {
        let api = api_of(&request.line);
        Reply::json(200, &spoken(api, DONE))
    });
    for api in APIS {
        assert_eq!(answer(ask_at(&server.server(api), VERDICT_FORM)).text, DONE);
    }
    let requests = server.requests();
    let [anthropic, chat, gemini] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(anthropic.line, "POST /v1/messages HTTP/1.1");
    assert!(anthropic.head.contains(&format!("x-api-key: {KEY}\r\n")));
    assert!(anthropic.head.contains("anthropic-version: 2023-06-01\r\n"));
    assert_eq!(anthropic.body["max_tokens"], 300);
    assert_eq!(
        anthropic.body["tool_choice"],
        json!({ "type": "tool", "name": "verdict" })
    );
    let words = json!(["done", "continue", "blocked", "impossible"]);
    let schema = &anthropic.body["tools"][0]["input_schema"];
    assert_eq!(schema["properties"]["verdict"]["enum"], words);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(chat.line, "POST /v1/chat/completions HTTP/1.1");
    assert!(
        chat.head
            .contains(&format!("authorization: Bearer {KEY}\r\n"))
    );
    let format = &chat.body["response_format"]["json_schema"];
    assert_eq!(
        (&format["strict"], &format["schema"]),
        (&json!(true), schema)
    );
    assert_eq!(chat.body["tools"], Value::Null);
    assert_eq!(
        gemini.line,
        "POST /v1beta/models/test-model-1:generateContent HTTP/1.1"
    );
    assert!(gemini.head.contains(&format!("x-goog-api-key: {KEY}\r\n")));
    let config = &gemini.body["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    assert_eq!(
        config["responseSchema"]["properties"]["verdict"]["enum"],
        words
    );
    assert_eq!(config["maxOutputTokens"], 300);
}

fn api_of(line: &str) -> ModelApi {
    if line.contains("/messages") {
        ModelApi::Anthropic
    } else if line.contains("generateContent") {
        ModelApi::Gemini
    } else {
        ModelApi::Chat
    }
}

#[test]
fn words_around_a_verdict_do_not_get_into_it() {
    let server = Scripted::start(|_| {
        let mut said = spoken(ModelApi::Anthropic, DONE);
        said["stop_reason"] = json!("tool_use");
        said["content"].as_array_mut().expect("a list").push(json!({
            "type": "tool_use", "id": "t1", "name": "verdict",
            "input": { "verdict": "continue", "reason": "the text above was not mine" },
        }));
        Reply::json(200, &said)
    });
    let answer = answer(ask_at(&server.server(ModelApi::Anthropic), VERDICT_FORM));
    assert_eq!(answer.channel, AnswerChannel::Tool);
    assert!(answer.text.contains("continue") && !answer.text.contains("done"));
}

#[test]
fn a_verdict_given_twice_over_is_none() {
    let call = json!({ "type": "tool_use", "id": "t", "name": "verdict", "input": { "a": 1 } });
    let twice = json!({
        "stop_reason": "tool_use", "content": [call, call],
        "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    let server = Scripted::start(move |_| Reply::json(200, &twice));
    let asked = ask_at(&server.server(ModelApi::Anthropic), VERDICT_FORM);
    assert_eq!(asked.usage.total(), 2, "it cost all the same");
    assert!(matches!(error(asked), AskError::Malformed { .. }));
}

#[test]
fn repeated_fields_of_a_verdict_reach_the_reader_as_they_are() {
    let server = Scripted::start(|_| Reply {
        status: 200,
        headers: Vec::new(),
        body: r#"{"stop_reason":"tool_use","content":[{"type":"tool_use","name":"verdict",
            "input":{"verdict":"continue","verdict":"done","reason":"r"}}]}"#
            .to_owned(),
    });
    let asked = ask_at(&server.server(ModelApi::Anthropic), VERDICT_FORM);
    assert_eq!(asked.n_unmetered, 1, "the answer told no use");
    let text = answer(asked).text;
    assert_eq!(text.matches("\"verdict\"").count(), 2, "{text}");
}

#[test]
fn a_server_without_a_channel_is_asked_in_words() {
    for (api, channels) in [
        (
            ModelApi::Anthropic,
            &["tool_choice", "output_config", "JSON object"][..],
        ),
        (
            ModelApi::Chat,
            &["response_format", "tool_choice", "JSON object"],
        ),
        (ModelApi::Gemini, &["responseSchema", "JSON object"]),
    ] {
        let server = Scripted::start(move |request| {
            let body = request.body.to_string();
            let has = |word: &str| body.contains(word);
            if has("tool_choice")
                || has("response_format")
                || has("output_config")
                || has("responseSchema")
            {
                let refusal = json!({ "error": { "message": "unknown parameter" } });
                return Reply::json(400, &refusal);
            }
            Reply::json(200, &spoken(api, DONE))
        });
        let asked = ask_at(&server.server(api), VERDICT_FORM);
        assert_eq!((asked.usage.total(), asked.n_unmetered), (13, 0), "{api:?}");
        let answer = answer(asked);
        assert_eq!(
            (answer.text.as_str(), answer.channel),
            (DONE, AnswerChannel::Text),
            "{api:?}"
        );
        let requests = server.requests();
        assert_eq!(requests.len(), channels.len(), "{api:?}");
        for (request, word) in requests.iter().zip(channels) {
            assert!(request.body.to_string().contains(word), "{api:?} {word}");
        }
    }
}

#[test]
fn chat_models_that_know_the_limit_by_its_new_name_are_asked_so() {
    let server = Scripted::start(|request| {
        if request.body["max_tokens"].is_u64() {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. \
                Use 'max_completion_tokens' instead.";
            return Reply::json(400, &json!({ "error": { "message": message } }));
        }
        assert_eq!(request.body["max_completion_tokens"], 300);
        Reply::json(200, &spoken(ModelApi::Chat, DONE))
    });
    let answer = answer(ask_at(&server.server(ModelApi::Chat), VERDICT_FORM));
    assert_eq!(
        answer.channel,
        AnswerChannel::Format,
        "the channel was not given up for it"
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_of_ones_own_is_asked_below_its_path_and_without_a_key() {
    let server = Scripted::start(|_| {
        Reply::json(200, &spoken(ModelApi::Chat, "yes")).header("X-Request-Id", "req-7")
    });
    let mut own = server.server(ModelApi::Chat);
    own.key = None;
    let answer = answer(ask_at(&own, AnswerForm::Words));
    assert_eq!(answer.request_id.as_deref(), Some("req-7"));
    let request = server.requests().pop().expect("a request");
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert!(!request.head.to_lowercase().contains("authorization"));
    let below = server.server_at(ModelApi::Chat, "http", "/api/openai");
    ask_at(&below, AnswerForm::Words)
        .outcome
        .expect("an answer");
    let request = server.requests().pop().expect("a request");
    assert_eq!(request.line, "POST /api/openai/chat/completions HTTP/1.1");
}

#[test]
fn a_probe_finds_a_model_by_its_name() {
    let server = Scripted::start(|request| match request.line.as_str() {
        "GET /v1/models/test-model-1 HTTP/1.1" => {
            Reply::json(200, &json!({ "id": "test-model-1-20261001" }))
        }
        "GET /v1beta/models/test-model-1 HTTP/1.1" => {
            Reply::json(200, &json!({ "name": "models/test-model-1" }))
        }
        other => panic!("{other}"),
    });
    for (api, name) in [
        (ModelApi::Anthropic, "test-model-1-20261001"),
        (ModelApi::Gemini, "test-model-1"),
    ] {
        let probed = probe(
            &server.server(api),
            "test-model-1",
            PATIENCE,
            &Cancel::new(),
        );
        assert_eq!((probed.usage.total(), probed.n_unmetered), (0, 0));
        let present = probed.outcome.expect("a model");
        assert_eq!(
            (present.model.as_str(), present.seen),
            (name, AvailabilitySource::Listed)
        );
    }
}

#[test]
fn a_probe_asks_for_a_few_tokens_where_no_list_proves_anything() {
    let model = ModelServer::start(scenario()).expect("a server");
    for api in APIS {
        let probed = probe(&at(&model, api), "test-model-1", PATIENCE, &Cancel::new());
        assert_eq!(
            probed.outcome.expect("a model").seen,
            AvailabilitySource::Answered,
            "{api:?}"
        );
        assert_eq!(probed.usage.output, 45);
        let body = model.requests().pop().expect("a request").body.to_string();
        assert!(body.contains(":16"), "{body}");
    }
    let cut = Scripted::start(|_| {
        let mut said = spoken(ModelApi::Chat, "o");
        said["choices"][0]["finish_reason"] = json!("length");
        Reply::json(200, &said)
    });
    let probed = probe(&cut.server(ModelApi::Chat), "m", PATIENCE, &Cancel::new());
    assert_eq!(
        probed.outcome.expect("a model").seen,
        AvailabilitySource::Answered
    );
    assert_eq!(probed.usage.total(), 13);
}

#[test]
fn a_probe_finds_out_that_a_model_is_not_there() {
    for (api, body) in [
        (
            ModelApi::Anthropic,
            json!({ "error": { "type": "not_found_error", "message": "model: nope" } }),
        ),
        (
            ModelApi::Chat,
            json!({ "error": { "code": "model_not_found", "message": "no `nope`" } }),
        ),
        (
            ModelApi::Gemini,
            json!({ "error": { "message": "models/nope is not found for v1beta" } }),
        ),
    ] {
        let server = Scripted::start(move |_| Reply::json(404, &body));
        let probed = probe(&server.server(api), "nope", PATIENCE, &Cancel::new());
        let error = probed.outcome.expect_err("no model");
        assert!(
            matches!(&error, AskError::UnknownModel { model, .. } if model == "nope"),
            "{error:?}"
        );
        assert!(error.hint().is_some());
    }
    for name in ["", "two words", "a\"b", "../x", "models/a:b"] {
        let server = Scripted::start(|_| panic!("nothing is sent"));
        let probed = probe(
            &server.server(ModelApi::Gemini),
            name,
            PATIENCE,
            &Cancel::new(),
        );
        let error = probed.outcome.expect_err("no model");
        assert!(
            matches!(
                error,
                AskError::UnknownModel { .. } | AskError::Rejected { .. }
            ),
            "{name}"
        );
    }
    let mut long = question(AnswerForm::Words);
    let name = "m".repeat(201);
    long.model = &name;
    let server = Scripted::start(|_| panic!("nothing is sent"));
    let asked = kapi_gateway::ask::ask(
        &server.server(ModelApi::Chat),
        &long,
        PATIENCE,
        &Cancel::new(),
    );
    assert!(matches!(error(asked), AskError::UnknownModel { .. }));
}
