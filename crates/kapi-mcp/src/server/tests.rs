//! The server as a client meets it: lines in, lines out.

use std::io::{BufReader, Cursor};

use kapi_goal::tools::GoalTool;
use kapi_wire::kernel_tools::{AnyTool, KernelTool, ToolOffer};
use serde_json::{Value, json};

use super::{ToolServer, serve};
use crate::call::CallOutcome;
use crate::frame::MESSAGE_BYTES_MAX;
use crate::protocol::HANDSHAKE_VERSIONS;

/// Returns the answers to these lines, from tools that say what they were given.
fn answers(lines: &[&str]) -> Vec<Value> {
    answers_to(ToolOffer::ALL, lines)
}

fn answers_to(offer: ToolOffer, lines: &[&str]) -> Vec<Value> {
    let text = lines.join("\n");
    let mut output = Vec::new();
    let mut input = BufReader::with_capacity(512, Cursor::new(text.as_bytes()));
    let server = ToolServer {
        offer,
        call: &mut |tool, arguments| CallOutcome::Answered(echo(tool, &arguments)),
        settle: &|_, _| Value::Null,
    };
    serve(&mut input, &mut output, server).unwrap();
    let text = String::from_utf8(output).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str(line).unwrap());
    answers.collect()
}

/// The answer of a tool that says what it was given.
fn echo(tool: AnyTool, arguments: &Value) -> Value {
    let ok = tool != AnyTool::Goal(GoalTool::Block);
    let name = tool.name();
    match tool {
        AnyTool::Goal(_) => json!({"ok": ok, "tool": name, "arguments": arguments}),
        AnyTool::Kernel(_) => json!({"ok": ok, "text": name, "details": arguments}),
    }
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

#[test]
fn a_version_is_agreed_on() {
    let version = |wanted: &Value| {
        let params = json!({"protocolVersion": wanted, "capabilities": {}});
        let answers = answers(&[&request("initialize", &params)]);
        answers[0]["result"]["protocolVersion"].clone()
    };
    for known in HANDSHAKE_VERSIONS {
        assert_eq!(version(&json!(known)), known);
    }
    for unknown in [json!("1999-01-01"), json!(7), Value::Null] {
        assert_eq!(version(&unknown), HANDSHAKE_VERSIONS[0]);
    }
}

#[test]
fn every_tool_is_listed_with_its_schema() {
    let answers = answers(&[&request("tools/list", &json!({}))]);
    let tools = answers[0]["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let goal = GoalTool::ALL.map(GoalTool::name);
    assert_eq!(
        names,
        [&goal[..], &KernelTool::ALL.map(KernelTool::name)].concat()
    );
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["title"], tool["title"]);
        let is_look = tool["name"].as_str().unwrap().ends_with("_status");
        assert_eq!(tool["annotations"]["readOnlyHint"], is_look, "{tool}");
        let ends = tool["name"] == "background_cancel";
        assert_eq!(tool["annotations"]["destructiveHint"], ends, "{tool}");
    }
}

#[test]
fn a_call_is_answered_as_text_and_a_refusal_as_an_error() {
    let call = |name: &str| {
        let params = json!({"name": name, "arguments": {"note": "n"}});
        answers(&[&request("tools/call", &params)]).remove(0)
    };
    let done = call("until_done_progress");
    assert_eq!(done["result"]["isError"], false);
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    let answer: Value = serde_json::from_str(text).unwrap();
    assert_eq!(answer["arguments"], json!({"note": "n"}));
    assert_eq!(done["result"]["structuredContent"], answer);
    assert_eq!(call("until_done_block")["result"]["isError"], true);
    assert_eq!(call("until_done_fly")["error"]["code"], -32_602);
}

#[test]
fn a_call_of_the_kernel_is_answered_as_text_and_as_data() {
    let params = json!({"name": "background_status", "arguments": {"taskId": "task_1"}});
    let call = request("tools/call", &params);
    let answer = answers(&[&call]).remove(0);
    assert_eq!(
        answer["result"],
        json!({
            "content": [{"type": "text", "text": "background_status"}],
            "structuredContent": {"taskId": "task_1"},
            "isError": false,
        })
    );
    let unknown = answers_to(ToolOffer::GOAL, &[&call]).remove(0);
    assert_eq!(unknown["error"]["code"], -32_602, "it was not offered");
    let listed = answers_to(ToolOffer::GOAL, &[&request("tools/list", &json!({}))]).remove(0);
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        GoalTool::ALL.len()
    );
}

#[test]
fn what_is_no_request_does_no_harm() {
    let notification =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    assert_eq!(answers(&[notification, "", answer]), [] as [Value; 0]);
    for (line, code, id) in [
        ("{", -32_700, Value::Null),
        (r#"{"id":5,"method":"ping"}"#, -32_600, json!(5)),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            -32_600,
            Value::Null,
        ),
        ("17", -32_600, Value::Null),
        ("[]", -32_600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"resources/list"}"#,
            -32_601,
            json!("a"),
        ),
    ] {
        let answers = answers(&[line, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]);
        assert_eq!(answers[0]["error"]["code"], code, "{line}");
        assert_eq!(answers[0]["id"], id, "{line}");
        assert_eq!(answers[1]["result"], json!({}), "it goes on after {line}");
    }
}

#[test]
fn a_batch_is_answered_as_one() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answers = answers(&[&format!("[{ping},{note},{ping}]"), &format!("[{note}]")]);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].as_array().unwrap().len(), 2);
}

#[test]
fn a_line_without_end_is_not_kept() {
    let long = "x".repeat(MESSAGE_BYTES_MAX + 10);
    let answers = answers(&[&long, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#]);
    assert_eq!(answers[0]["error"]["code"], -32_600);
    assert_eq!(answers[1]["id"], 2);
    assert_eq!(answers.len(), 2);
}
