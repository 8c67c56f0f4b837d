//! Which requests pass, what usage objects mean, and how errors are worded.
//!
//! Pure: texts in, decisions and counts out.

use kapi_core::usage::Usage;
use serde_json::Value;

use super::{GatewayErrorKind, ModelDialect, RequestPurpose};

const ALL: [ModelDialect; 4] = [
    ModelDialect::Anthropic,
    ModelDialect::Responses,
    ModelDialect::Chat,
    ModelDialect::Gemini,
];

fn check_request(dialect: ModelDialect, request: &str, expected: Option<RequestPurpose>) {
    let (method, path) = request.split_once(' ').expect("method and path");
    let found = dialect.request(method, path).map(|known| known.purpose);
    assert_eq!(found, expected, "{dialect:?} {request}");
}

#[test]
fn requests_that_agents_need() {
    let check = |dialect: ModelDialect, purpose: RequestPurpose, requests: &[&str]| {
        for request in requests {
            check_request(dialect, request, Some(purpose));
        }
    };
    let (call, inquiry) = (RequestPurpose::ModelCall, RequestPurpose::Inquiry);
    let calls = ["POST /v1/messages", "POST /messages"];
    check(ModelDialect::Anthropic, call, &calls);
    let inquiries = [
        "POST /v1/messages/count_tokens",
        "GET /v1/models",
        "GET /v1/models/claude-sonnet-4.5",
    ];
    check(ModelDialect::Anthropic, inquiry, &inquiries);
    let calls = ["POST /v1/responses", "POST /responses/compact"];
    check(ModelDialect::Responses, call, &calls);
    check(
        ModelDialect::Responses,
        inquiry,
        &["POST /v1/responses/input_tokens"],
    );
    check(ModelDialect::Chat, call, &["POST /v1/chat/completions"]);
    let inquiries = ["GET /models/some/vendor", "GET /v1/models/llama3:8b"];
    check(ModelDialect::Chat, inquiry, &inquiries);
    let calls = [
        "POST /v1beta/models/gemini-2.5-pro:generateContent",
        "POST /v1beta/models/g:streamGenerateContent",
    ];
    check(ModelDialect::Gemini, call, &calls);
    let inquiries = ["POST /v1/models/g:countTokens", "GET /v1beta/models"];
    check(ModelDialect::Gemini, inquiry, &inquiries);
}

#[test]
fn requests_that_no_agent_needs() {
    for dialect in ALL {
        for request in [
            "GET /",
            "POST /",
            "DELETE /v1/models/x",
            "PUT /v1/messages",
            "GET /v1/messages",
            "GET /v1/responses",
            "GET /v1/responses/resp_1",
            "POST /v1/messages/batches",
            "POST /v1/batches",
            "POST /v1/files",
            "GET /v1/organizations/usage_report",
            "POST /v1/embeddings",
            "POST /v1/images/generations",
            "POST /v1/../v1/messages",
            "POST /v1/./messages",
            "POST //v1/messages",
            "POST /v1//messages",
            "POST /v1/v1/messages",
            "POST /v1/messages/",
            "POST /v1/messages%2fbatches",
            "POST /v1/message%73",
            "POST /v1/models/../messages",
            "POST v1/messages",
            "POST http://other.test/v1/messages",
            "POST /v1beta/models/a/b:generateContent",
            "POST /v1beta/models/:generateContent",
            "POST /v1beta/models/g:batchGenerateContent",
            "POST /v1beta/cachedContents",
            "post /v1/messages",
        ] {
            check_request(dialect, request, None);
        }
    }
    let call_by_get = "GET /v1beta/models/g:generateContent";
    check_request(ModelDialect::Gemini, call_by_get, None);
    check_request(ModelDialect::Chat, "POST /v1/messages", None);
    check_request(ModelDialect::Anthropic, "POST /v1/responses", None);
}

#[test]
fn queries_that_would_hide_usage() {
    for query in ["", "alt=sse", "key=x&alt=json", "pageSize=5&pageToken=x"] {
        assert!(ModelDialect::Gemini.allows_query(query), "{query}");
    }
    for query in [
        "alt=proto",
        "alt",
        "fields=candidates",
        "$alt=proto",
        "%61lt=proto",
        "x=y",
    ] {
        assert!(!ModelDialect::Gemini.allows_query(query), "{query}");
    }
    assert!(ModelDialect::Anthropic.allows_query("beta=true"));
}

#[test]
fn usage_means_the_same_whoever_counted() {
    let check = |dialect: ModelDialect, text: &str, expected: Option<(u64, u64)>| {
        let expected = expected.map(|(input_tokens, output_tokens)| Usage {
            input_tokens,
            output_tokens,
            usd_micros: None,
            ..Usage::ZERO
        });
        assert_eq!(
            dialect
                .usage(text.as_bytes())
                .map(|counts| counts.usage(None)),
            expected,
            "{dialect:?} {text}"
        );
    };
    let anthropic = ModelDialect::Anthropic;
    let cached = r#"{"input_tokens":9,"cache_creation_input_tokens":20,"cache_read_input_tokens":
        300,"output_tokens":4,"service_tier":"standard","cache_creation":{"ephemeral_5m":20}}"#;
    check(anthropic, cached, Some((329, 4)));
    check(anthropic, r#"{"output_tokens":7}"#, Some((0, 7)));
    check(
        anthropic,
        r#"{"input_tokens":3,"cache_read_input_tokens":null}"#,
        Some((3, 0)),
    );
    let passes = r#"{"input_tokens":10,"output_tokens":5,"iterations":[
        {"type":"compaction","input_tokens":1000,"output_tokens":200},
        {"type":"message","input_tokens":10,"output_tokens":5}]}"#;
    check(anthropic, passes, Some((1010, 205)));
    check(anthropic, "{}", None);
    check(anthropic, r#"{"input_tokens":-1}"#, None);
    let full = r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},
        "output_tokens":30,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":130}"#;
    check(ModelDialect::Responses, full, Some((100, 30)));
    check(ModelDialect::Responses, "{}", None);
    let full = r#"{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,
        "prompt_tokens_details":{"cached_tokens":60}}"#;
    check(ModelDialect::Chat, full, Some((100, 30)));
    let apart = r#"{"prompt_tokens":100,"completion_tokens":30,"total_tokens":150,
        "completion_tokens_details":{"reasoning_tokens":20}}"#;
    check(ModelDialect::Chat, apart, Some((100, 50)));
    check(
        ModelDialect::Chat,
        r#"{"completion_tokens":1.5,"prompt_tokens":1}"#,
        None,
    );
    check(ModelDialect::Chat, "{}", None);
    let full = r#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":10,
        "thoughtsTokenCount":20,"toolUsePromptTokenCount":5,"totalTokenCount":135}"#;
    check(ModelDialect::Gemini, full, Some((105, 30)));
    check(
        ModelDialect::Gemini,
        r#"{"promptTokenCount":3,"totalTokenCount":3}"#,
        Some((3, 0)),
    );
    check(
        ModelDialect::Gemini,
        r#"{"promptTokenCount":3,"totalTokenCount":9}"#,
        Some((3, 6)),
    );
    check(ModelDialect::Gemini, r#"{"trafficType":"ON_DEMAND"}"#, None);
}

#[test]
fn errors_have_the_shape_that_each_client_reads() {
    for fault in [
        GatewayErrorKind::Spent,
        GatewayErrorKind::Stalled,
        GatewayErrorKind::Forbidden,
        GatewayErrorKind::Unreachable,
    ] {
        let message =
            |dialect: ModelDialect| dialect.error_body(fault, "why")["error"]["message"].clone();
        for dialect in ALL {
            assert_eq!(message(dialect), "why", "{dialect:?}");
        }
    }
    // No client asks again after one of these, and no client waits.
    assert_eq!(GatewayErrorKind::Spent.status(), 400);
    assert!(!GatewayErrorKind::Spent.is_passing() && GatewayErrorKind::Stalled.is_passing());
    let event_data = |dialect: ModelDialect| -> Value {
        let event = dialect.error_event(GatewayErrorKind::Spent, "why");
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        assert!(event.ends_with("\n\n"), "{event:?}");
        serde_json::from_str(data.expect("data")).expect("JSON")
    };
    assert_eq!(event_data(ModelDialect::Anthropic)["type"], "error");
    assert_eq!(
        event_data(ModelDialect::Responses)["type"],
        "response.failed"
    );
    assert_eq!(
        event_data(ModelDialect::Chat)["error"]["code"],
        "insufficient_quota"
    );
    assert_eq!(
        event_data(ModelDialect::Gemini)["error"]["status"],
        "FAILED_PRECONDITION"
    );
}
