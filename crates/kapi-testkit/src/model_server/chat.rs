//! OpenAI chat completions: requests read, answers and their chunks written.
//! It does not know the scenario.

use serde_json::{Value, json};

use crate::model_server::record::Api;
use crate::model_server::reply::{ModelReply, RenderedReply, ServerSentEvent, pieces};
use crate::model_server::request::{
    Delivery, ModelRequest, OfferedTool, RequestMessage, items_at, string_at, text_of,
};

/// Reads a request.
pub(crate) fn read(body: &Value) -> ModelRequest {
    let mut system = String::new();
    let mut history = Vec::new();
    for message in items_at(body, "messages") {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("assistant") => history.push(RequestMessage::Assistant),
            Some("tool") => history.push(RequestMessage::ToolResult(text)),
            Some("user") => history.push(RequestMessage::User(text)),
            // "system", or "developer" where the model has one.
            _ => {
                system.push_str(&text);
                system.push('\n');
            }
        }
    }
    let tools = items_at(body, "tools")
        .iter()
        .filter(|tool| tool["type"] == "function")
        .map(|tool| {
            let function = &tool["function"];
            OfferedTool::function(&string_at(function, "name"), &function["parameters"])
        })
        .collect();
    let format = &body["response_format"];
    ModelRequest {
        api: Api::Chat,
        model: string_at(body, "model"),
        delivery: delivery(body),
        tools,
        system,
        history,
        schema: format["json_schema"].get("schema").cloned(),
    }
}

fn delivery(body: &Value) -> Delivery {
    if body["stream"] != true {
        Delivery::Whole
    } else if body["stream_options"]["include_usage"] == true {
        Delivery::EventsWithUsage
    } else {
        Delivery::Events
    }
}

/// Writes an answer.
pub(crate) fn render(request: &ModelRequest, reply: &ModelReply, serial: usize) -> RenderedReply {
    let id = format!("chatcmpl-{serial:08}");
    let usage = usage_of(reply);
    let finish_reason = if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| {
            json!({
                "id": format!("call_{}", call.id),
                "type": "function",
                "function": { "name": call.name, "arguments": call.input.arguments_text() },
            })
        })
        .collect();
    let mut message = json!({ "role": "assistant", "content": reply.text });
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls.clone());
    }
    let whole = json!({
        "id": id, "object": "chat.completion", "created": 0, "model": request.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason }],
        "usage": usage,
    });
    let chunk = |choices: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": request.model,
            "choices": choices,
        })
    };
    let delta = |delta: Value, finish: Value| {
        ServerSentEvent::unnamed(&chunk(
            json!([{ "index": 0, "delta": delta, "finish_reason": finish }]),
        ))
    };
    let mut events = vec![delta(
        json!({ "role": "assistant", "content": "" }),
        Value::Null,
    )];
    for piece in pieces(&reply.text) {
        events.push(delta(json!({ "content": piece }), Value::Null));
    }
    let calls = calls.iter().enumerate();
    for part in calls.flat_map(|(index, call)| call_parts(index, call)) {
        events.push(delta(json!({ "tool_calls": [part] }), Value::Null));
    }
    events.push(delta(json!({}), json!(finish_reason)));
    if request.delivery == Delivery::EventsWithUsage {
        let mut last = chunk(json!([]));
        last["usage"] = usage;
        events.push(ServerSentEvent::unnamed(&last));
    }
    events.push(ServerSentEvent {
        name: None,
        text: "[DONE]".to_owned(),
    });
    RenderedReply { whole, events }
}

/// Cuts one tool call into a head and pieces of its arguments.
fn call_parts(index: usize, call: &Value) -> Vec<Value> {
    let mut head = call.clone();
    head["index"] = json!(index);
    head["function"]["arguments"] = json!("");
    let mut parts = vec![head];
    for piece in pieces(&string_at(&call["function"], "arguments")) {
        parts.push(json!({ "index": index, "function": { "arguments": piece } }));
    }
    parts
}

fn usage_of(reply: &ModelReply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.prompt_total(),
        "completion_tokens": usage.answer_total(),
        "total_tokens": usage.prompt_total() + usage.answer_total(),
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
