//! What is taken out of requests, and that all else stays byte for byte.
//!
//! Pure: texts in, texts out.

use super::take_out;
use crate::model::dialect::ModelDialect;

#[track_caller]
fn check(dialect: ModelDialect, body: &str, expected: &str, told: &[&str]) {
    let own = take_out(dialect, body).expect("a request");
    let parts: Vec<&str> = own.parts.iter().map(String::as_str).collect();
    assert_eq!(own.body.as_deref(), Some(expected));
    assert_eq!(parts, told);
}

#[track_caller]
fn check_stays(dialect: ModelDialect, body: &str) {
    let own = take_out(dialect, body).expect("a request");
    assert_eq!(own.body, None, "{dialect:?} {body}: {:?}", own.parts);
    assert!(own.parts.is_empty());
}

#[test]
fn tools_of_the_agent_stay_and_those_of_the_provider_go() {
    check(
        ModelDialect::Anthropic,
        r#"{"tools":[{"name":"Read"},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"tool","name":"web_search"},"mcp_servers":[{"url":"https://x"}]}"#,
        r#"{"tools":[{"name":"Read"},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"auto"}}"#,
        &["MCP servers", "tool web_search_20250305"],
    );
    check(
        ModelDialect::Responses,
        r#"{"tools":[{"type":"function","name":"shell"},{"type":"web_search"},{"type":"mcp","server_url":"https://x"},{"type":"local_shell"},{"type":"shell","environment":{"type":"container_auto"}}],"tool_choice":"auto"}"#,
        r#"{"tools":[{"type":"function","name":"shell"},{"type":"local_shell"}],"tool_choice":"auto"}"#,
        &["tool mcp", "tool shell", "tool web_search"],
    );
    check(
        ModelDialect::Chat,
        r#"{"web_search_options":{},"tools":[{"type":"code_interpreter"}],"tool_choice":"required","model":"m"}"#,
        r#"{"model":"m"}"#,
        &["tool code_interpreter", "web search"],
    );
    check(
        ModelDialect::Gemini,
        r#"{"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f"}],"url_context":{}},{"codeExecution":{}}]}"#,
        r#"{"tools":[{"functionDeclarations":[{"name":"f"}]}]}"#,
        &[
            "tool codeExecution",
            "tool googleSearch",
            "tool url_context",
        ],
    );
}

#[test]
fn a_tool_of_tomorrow_is_taken_out_too() {
    for dialect in [
        ModelDialect::Anthropic,
        ModelDialect::Responses,
        ModelDialect::Chat,
    ] {
        check(
            dialect,
            r#"{"tools":[{"type":"telepathy_2027"}],"x":1.50}"#,
            r#"{"x":1.50}"#,
            &["tool telepathy_2027"],
        );
    }
    check(
        ModelDialect::Gemini,
        r#"{"tools":[{"telepathy":{}}]}"#,
        "{}",
        &["tool telepathy"],
    );
}

#[test]
fn images_and_files_elsewhere_become_words() {
    let words = "[left out by kapi: an image or file outside of the request]";
    check(
        ModelDialect::Anthropic,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]},{"type":"text","text":"hi"}]}]}"#,
        &format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","content":[{{"text":"{words}","type":"text"}}]}},{{"type":"text","text":"hi"}}]}}]}}"#
        ),
        &["a remote image or file"],
    );
    check(
        ModelDialect::Responses,
        r#"{"input":[{"content":[{"type":"input_image","image_url":"https://x"},{"type":"input_file","file_id":"f"}]}]}"#,
        &format!(
            r#"{{"input":[{{"content":[{{"text":"{words}","type":"input_text"}},{{"text":"{words}","type":"input_text"}}]}}]}}"#
        ),
        &["a remote image or file"],
    );
    check(
        ModelDialect::Chat,
        r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"HTTPS://x"}}]}]}"#,
        &format!(r#"{{"messages":[{{"content":[{{"text":"{words}","type":"text"}}]}}]}}"#),
        &["a remote image or file"],
    );
    check(
        ModelDialect::Gemini,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"gs://x"}}]}]}"#,
        &format!(r#"{{"contents":[{{"parts":[{{"text":"{words}"}}]}}]}}"#),
        &["a remote image or file"],
    );
}

#[test]
fn what_stands_in_the_request_itself_stays() {
    check_stays(
        ModelDialect::Anthropic,
        r#"{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AA=="}}]}],"tools":[{"type":"custom","name":"x"}],"speed":"standard"}"#,
    );
    check_stays(
        ModelDialect::Responses,
        r#"{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}],"previous_response_id":null}"#,
    );
    check_stays(
        ModelDialect::Chat,
        r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"tools":null}"#,
    );
    check_stays(
        ModelDialect::Gemini,
        r#"{"contents":[{"parts":[{"inlineData":{"data":"AA=="}}]}],"tools":[{"functionDeclarations":[]}]}"#,
    );
}

#[test]
fn dearer_services_and_other_models_are_not_asked_for() {
    check(
        ModelDialect::Anthropic,
        r#"{"speed":"fast","model":"m"}"#,
        r#"{"model":"m"}"#,
        &["a dearer service"],
    );
    check(
        ModelDialect::Chat,
        r#"{"service_tier":"priority","models":["a","b"],"model":"m"}"#,
        r#"{"model":"m"}"#,
        &["a dearer service", "other models"],
    );
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for body in [
        r#"{"tools":[],"tools":[{"type":"web_search"}]}"#,
        r#"{"tools":[],"t\u006fols":[{"type":"web_search"}]}"#,
        r#"{"tools":[{"type":"function","type":"web_search"}]}"#,
        "not json",
    ] {
        assert!(take_out(ModelDialect::Responses, body).is_err(), "{body}");
    }
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(100), "]".repeat(100));
    assert!(take_out(ModelDialect::Responses, &deep).is_err());
}
