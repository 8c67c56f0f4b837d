//! Judge rules: one verdict a call, in the form the client asks for.

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::fault::{FaultKind, FaultTarget, InjectedFault, Times};
use kapi_testkit::model_server::record::ServedAnswer;
use kapi_testkit::model_server::scenario::{AssistantTurn, JudgeRule, ModelScenario};
use serde_json::{Value, json};

use crate::client::{Speech, Turn, post};
use crate::wire::tools;

fn judging(verdicts: Vec<Value>) -> ModelScenario {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("no verdict")]);
    scenario.judges = vec![JudgeRule::new("JUDGE-THIS", verdicts)];
    scenario
}

#[test]
fn verdicts_come_one_a_call_and_the_last_repeats() {
    for speech in Speech::ALL {
        let verdicts = vec![json!({ "v": 1 }), json!("not { JSON"), json!({ "v": 3 })];
        let server = ModelServer::start(judging(verdicts)).expect("a server");
        let ask = |prompt: &str, tools: &Value| {
            let (path, body) = speech.request(true, &[Turn::User(prompt)], tools);
            speech.streamed(&post(&server, &path, &body)).text
        };
        assert_eq!(ask("Please JUDGE-THIS now", &json!([])), r#"{"v":1}"#);
        assert_eq!(ask("other", &tools(speech)), "no verdict");
        assert_eq!(ask("JUDGE-THIS", &tools(speech)), "not { JSON");
        assert_eq!(ask("JUDGE-THIS", &json!([])), r#"{"v":3}"#);
        assert_eq!(ask("JUDGE-THIS", &json!([])), r#"{"v":3}"#);
        let answers: Vec<ServedAnswer> = server.requests().into_iter().map(|r| r.answer).collect();
        assert_eq!(
            answers
                .iter()
                .filter(|answer| **answer == ServedAnswer::Judge)
                .count(),
            4
        );
    }
}

#[test]
fn a_verdict_goes_through_the_tool_made_for_it() {
    let verdicts = vec![json!({ "v": 1 }), json!({ "v": 2 })];
    let server = ModelServer::start(judging(verdicts)).expect("a server");
    let tools = json!([{ "name": "StructuredOutput", "input_schema": { "type": "object" } }]);
    let ask = |turns: &[Turn<'_>]| {
        let (path, body) = Speech::Anthropic.request(true, turns, &tools);
        Speech::Anthropic.streamed(&post(&server, &path, &body))
    };
    for v in [1, 2] {
        let said = ask(&[Turn::User("JUDGE-THIS")]);
        assert_eq!(
            said.calls,
            [("StructuredOutput".to_owned(), json!({ "v": v }))]
        );
        let said = ask(&[Turn::User("JUDGE-THIS"), Turn::Tool("accepted")]);
        assert_eq!(
            (said.text.as_str(), said.calls.len()),
            ("The verdict is given.", 0)
        );
    }
}

#[test]
fn side_requests_and_failures_use_up_no_verdict() {
    let mut scenario = judging(vec![json!({ "v": 1 }), json!({ "v": 2 })]);
    scenario.faults = vec![InjectedFault::new(
        FaultTarget::Judge,
        Times::First(2),
        FaultKind::Truncate,
    )];
    let server = ModelServer::start(scenario).expect("a server");
    let (path, body) = Speech::Responses.request(false, &[Turn::User("JUDGE-THIS")], &json!([]));
    let mut side = body.clone();
    side["text"]["format"] = json!({ "type": "json_schema", "schema": {
        "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } },
    } });
    let said = Speech::Responses.whole(&post(&server, &path, &side));
    assert_eq!(said.text, r#"{"title":"title"}"#);
    assert!(!post(&server, &path, &body).complete);
    assert!(!post(&server, &path, &body).complete);
    let mut demanding = body;
    demanding["text"]["format"] = json!({ "type": "json_schema", "schema": {
        "type": "object", "required": ["v"], "properties": { "v": { "type": "number" } },
    } });
    let said = Speech::Responses.whole(&post(&server, &path, &demanding));
    assert_eq!(said.text, r#"{"v":1}"#);
}
