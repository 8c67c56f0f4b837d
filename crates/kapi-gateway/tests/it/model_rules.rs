//! What may be asked of a model, and how much it may write: what the provider then really gets.
//!
//! Who watches is the rig's; the provider answers with what it was sent.

use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::{GatewayEvent, GatewayRefusal};
use kapi_gateway::model::rules::{CallRules, ProviderTools};
use kapi_gateway::model::wish::{CallAnswer, CallWish};

use crate::model_rig::{Provide, Setup, put_json, run};

const USED: &str = r#"{"usage":{"input_tokens":7,"output_tokens":3}}"#;
const ANSWERS: Provide<'_> = &|_, stream| put_json(stream, "200 OK", "", USED);

fn rules(models: &[&str], provider_tools: ProviderTools) -> CallRules {
    CallRules {
        models: models.iter().map(|&model| model.to_owned()).collect(),
        provider_tools,
    }
}

#[test]
fn other_models_than_those_of_the_run_are_refused() {
    let setup = Setup {
        rules: rules(&["claude-sonnet-*"], ProviderTools::TakenOut),
        ..Setup::new(ModelDialect::Anthropic)
    };
    run(setup, ANSWERS, &|rig| {
        let mut agent = rig.connect();
        let asked = |model: &str| format!(r#"{{"model":"{model}","max_tokens":9}}"#);
        let got = agent.post("/v1/messages", &asked("claude-opus-5"));
        assert_eq!(got.head.status, 403);
        assert!(got.body.contains("may not ask the model"), "{}", got.body);
        assert_eq!(rig.seen().len(), 0, "the provider hears nothing of it");
        let got = agent.post("/v1/messages", &asked("claude-sonnet-5"));
        assert_eq!(got.head.status, 200);
        let refused = GatewayEvent::Refused {
            why: GatewayRefusal::Model,
        };
        assert!(rig.events().contains(&refused));
        let named = GatewayEvent::ModelRefused {
            model: "claude-opus-5".to_owned(),
        };
        assert!(rig.events().contains(&named), "{:?}", rig.events());
        rig.wait_until(&|_| rig.ended() == [2]);
    });
}

#[test]
fn what_only_the_provider_would_do_is_taken_out_and_told() {
    let body = r#"{"model":"m","tools":[{"name":"Read"},{"type":"web_search_20250305","name":"web_search"}]}"#;
    run(Setup::new(ModelDialect::Anthropic), ANSWERS, &|rig| {
        assert_eq!(rig.connect().post("/v1/messages", body).head.status, 200);
        let seen = String::from_utf8(rig.seen()[0].body.clone()).expect("text");
        assert_eq!(seen, r#"{"model":"m","tools":[{"name":"Read"}]}"#);
        let told = GatewayEvent::TakenOut {
            call: 1,
            parts: vec!["tool web_search_20250305".to_owned()],
        };
        assert!(rig.events().contains(&told), "{:?}", rig.events());
    });
    let setup = Setup {
        rules: rules(&[], ProviderTools::Allowed),
        ..Setup::new(ModelDialect::Anthropic)
    };
    run(setup, ANSWERS, &|rig| {
        assert_eq!(rig.connect().post("/v1/messages", body).head.status, 200);
        assert_eq!(
            rig.seen()[0].body,
            body.as_bytes(),
            "allowed in so many words"
        );
    });
}

#[test]
fn an_answer_is_limited_to_what_is_granted_and_never_beyond_what_was_asked() {
    let granted: &'static (dyn Fn(&CallWish<'_>) -> CallAnswer + Sync) = &|_| CallAnswer::Go {
        output_max: Some(500),
    };
    for (dialect, path, body, expected) in [
        (
            ModelDialect::Anthropic,
            "/v1/messages",
            r#"{"max_tokens":8000}"#,
            r#"{"max_tokens":500}"#,
        ),
        (
            ModelDialect::Anthropic,
            "/v1/messages",
            r#"{"max_tokens":80}"#,
            r#"{"max_tokens":80}"#,
        ),
        (
            ModelDialect::Responses,
            "/v1/responses",
            "{}",
            r#"{"max_output_tokens":500}"#,
        ),
        (
            ModelDialect::Chat,
            "/v1/chat/completions",
            "{}",
            r#"{"max_tokens":500}"#,
        ),
        (
            ModelDialect::Gemini,
            "/v1beta/models/g:generateContent",
            "{}",
            r#"{"generationConfig":{"maxOutputTokens":500}}"#,
        ),
    ] {
        let setup = Setup {
            on_call: granted,
            ..Setup::new(dialect)
        };
        run(setup, ANSWERS, &|rig| {
            assert_eq!(rig.connect().post(path, body).head.status, 200);
            let seen = String::from_utf8(rig.seen()[0].body.clone()).expect("text");
            assert_eq!(seen, expected, "{dialect:?}");
        });
    }
}

#[test]
fn a_call_that_is_not_granted_is_refused_for_good_and_not_counted() {
    let setup = Setup {
        on_call: &|wish| {
            assert_eq!((wish.call, wish.model), (1, "m"));
            CallAnswer::Refused {
                why: "too little of the budget is left".to_owned(),
            }
        },
        ..Setup::new(ModelDialect::Anthropic)
    };
    run(setup, ANSWERS, &|rig| {
        let got = rig.connect().post("/v1/messages", r#"{"model":"m"}"#);
        assert_eq!(got.head.status, 400);
        assert_eq!(got.header("x-should-retry").as_deref(), Some("false"));
        assert!(
            got.body.contains("too little of the budget"),
            "{}",
            got.body
        );
        assert_eq!((rig.totals().n_calls, rig.totals().n_refused), (0, 1));
        assert_eq!(rig.ended(), [0_u64; 0]);
    });
}
