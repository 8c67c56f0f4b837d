//! Anthropic Messages: requests read, answers and their events written.
//! It does not know the scenario.

use serde_json::{Value, json};

use crate::model_server::record::Api;
use crate::model_server::reply::{ModelReply, RenderedReply, ServerSentEvent, pieces};
use crate::model_server::request::{
    Delivery, ModelRequest, OfferedTool, RequestMessage, ToolForm, items_at, string_at, text_of,
};

/// The tool by which newer clients look up the tools that they keep back.
const SEARCH: &str = "ToolSearch";

/// Reads a request.
pub(crate) fn read(body: &Value) -> ModelRequest {
    let mut system = text_of(&body["system"]);
    let mut history = Vec::new();
    for message in items_at(body, "messages") {
        match message["role"].as_str() {
            // Looking a tool up is no step: the one that wants the tool is still to come.
            Some("assistant") if is_search(message) => {}
            Some("assistant") => history.push(RequestMessage::Assistant),
            Some("user") => read_user(&message["content"], &mut history, &mut system),
            // Reminders may come as messages of their own.
            _ => append(&mut system, &text_of(&message["content"])),
        }
    }
    let tools = items_at(body, "tools")
        .iter()
        // The API's own server-side tools have no schema, and nothing here can run them.
        .filter(|tool| tool["input_schema"].is_object())
        .map(|tool| match string_at(tool, "name") {
            name if name == SEARCH => OfferedTool {
                name,
                namespace: None,
                form: ToolForm::Search,
            },
            name => OfferedTool::function(&name, &tool["input_schema"]),
        })
        .collect();
    let format = &body["output_config"]["format"];
    ModelRequest {
        api: Api::Anthropic,
        model: string_at(body, "model"),
        delivery: match body["stream"].as_bool() {
            Some(true) => Delivery::Events,
            Some(false) | None => Delivery::Whole,
        },
        tools,
        system,
        history,
        schema: format.get("schema").cloned(),
    }
}

/// Tells whether the assistant looked tools up, and nothing else.
fn is_search(message: &Value) -> bool {
    let mut calls = items_at(message, "content")
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .peekable();
    calls.peek().is_some() && calls.all(|call| call["name"] == SEARCH)
}

/// Reads a user message, which may hold tool results, reminders and a prompt at once.
fn read_user(content: &Value, history: &mut Vec<RequestMessage>, system: &mut String) {
    if let Some(text) = content.as_str() {
        history.push(RequestMessage::User(text.to_owned()));
        return;
    }
    let mut said = Vec::new();
    for block in content.as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = string_at(block, "text");
        let is_found = |found: &Value| found["type"] == "tool_reference";
        if items_at(block, "content").iter().any(is_found) {
            // The tools that were looked up, which are offered from now on.
        } else if block["type"] == "tool_result" {
            history.push(RequestMessage::ToolResult(text_of(&block["content"])));
        } else if text.trim_start().starts_with("<system-reminder>") {
            append(system, &text);
        } else if !text.is_empty() {
            said.push(text);
        }
    }
    if !said.is_empty() {
        history.push(RequestMessage::User(said.join("\n")));
    }
}

fn append(system: &mut String, text: &str) {
    system.push('\n');
    system.push_str(text);
}

/// Writes an answer.
pub(crate) fn render(request: &ModelRequest, reply: &ModelReply, serial: usize) -> RenderedReply {
    let usage = json!({
        "input_tokens": reply.usage.input,
        "output_tokens": reply.usage.answer_total(),
        "cache_creation_input_tokens": reply.usage.cache_write,
        "cache_read_input_tokens": reply.usage.cache_read,
    });
    let stop_reason = if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let mut opened_usage = usage.clone();
    opened_usage["output_tokens"] = json!(1);
    let opened = json!({
        "id": format!("msg_{serial:08}"),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": opened_usage,
    });
    let mut content = Vec::new();
    let mut events = vec![
        event(json!({ "type": "message_start", "message": opened })),
        event(json!({ "type": "ping" })),
    ];
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text)
            .iter()
            .map(|piece| json!({ "type": "text_delta", "text": piece }))
            .collect();
        let start = json!({ "type": "text", "text": "" });
        push_block(&mut events, content.len(), &start, deltas);
        content.push(json!({ "type": "text", "text": reply.text }));
    }
    for call in &reply.calls {
        let mut block = json!({
            "type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": {},
        });
        let deltas = pieces(&call.input.arguments_text())
            .iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
            .collect();
        push_block(&mut events, content.len(), &block, deltas);
        block["input"] = call.input.arguments();
        content.push(block);
    }
    events.push(event(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason, "stop_sequence": null },
        "usage": usage,
    })));
    events.push(event(json!({ "type": "message_stop" })));
    let mut whole = opened;
    whole["content"] = Value::Array(content);
    whole["stop_reason"] = json!(stop_reason);
    whole["usage"] = usage;
    RenderedReply { whole, events }
}

/// Writes the events of one content block.
fn push_block(events: &mut Vec<ServerSentEvent>, index: usize, start: &Value, deltas: Vec<Value>) {
    events.push(event(
        json!({ "type": "content_block_start", "index": index, "content_block": start }),
    ));
    for delta in deltas {
        events.push(event(
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        ));
    }
    events.push(event(
        json!({ "type": "content_block_stop", "index": index }),
    ));
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "every caller builds the value in place"
)]
fn event(value: Value) -> ServerSentEvent {
    ServerSentEvent::named(&string_at(&value, "type"), &value)
}
