//! OpenAI responses: requests read, answers and their events written.
//! It does not know the scenario.

use serde_json::{Value, json};

use crate::model_server::record::Api;
use crate::model_server::reply::{
    CallInput, ModelReply, RenderedReply, ReplyToolCall, ServerSentEvent, pieces,
};
use crate::model_server::request::{
    Delivery, ModelRequest, OfferedTool, RequestMessage, ToolForm, items_at, string_at, text_of,
};

/// The name that the client's search for tools goes by here; on the wire it has none.
pub(crate) const SEARCH: &str = "tool_search";

/// Reads a request.
pub(crate) fn read(body: &Value) -> ModelRequest {
    let mut system = string_at(body, "instructions");
    let mut history = Vec::new();
    let mut tools = read_tools(items_at(body, "tools"), None);
    if let Some(prompt) = body["input"].as_str() {
        history.push(RequestMessage::User(prompt.to_owned()));
    }
    for item in items_at(body, "input") {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind == "message" {
            read_message(item, &mut history, &mut system);
        } else if ["additional_tools", "tool_search_output"].contains(&kind) {
            tools.extend(read_tools(items_at(item, "tools"), None));
        } else if kind == "tool_search_call" {
            // Looking a tool up is no step: the one that wants the tool is still to come.
        } else if kind.ends_with("_output") {
            history.push(RequestMessage::ToolResult(text_of(&item["output"])));
        } else if kind.ends_with("_call") || kind == "reasoning" {
            history.push(RequestMessage::Assistant);
        }
    }
    let format = &body["text"]["format"];
    ModelRequest {
        api: Api::Responses,
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

fn read_message(item: &Value, history: &mut Vec<RequestMessage>, system: &mut String) {
    let text = text_of(&item["content"]);
    match item["role"].as_str() {
        Some("assistant") => history.push(RequestMessage::Assistant),
        Some("user") => history.push(RequestMessage::User(text)),
        // "system" or "developer".
        _ => {
            system.push('\n');
            system.push_str(&text);
        }
    }
}

/// Reads tools; those of a namespace remember it.
fn read_tools(items: &[Value], namespace: Option<&str>) -> Vec<OfferedTool> {
    let mut tools = Vec::new();
    for item in items {
        let form = match item["type"].as_str() {
            Some("function") => ToolForm::Function(item["parameters"].clone()),
            Some("custom") => ToolForm::Freeform,
            Some("tool_search") => {
                tools.push(OfferedTool {
                    name: SEARCH.to_owned(),
                    namespace: None,
                    form: ToolForm::Search,
                });
                continue;
            }
            Some("namespace") => {
                tools.extend(read_tools(items_at(item, "tools"), item["name"].as_str()));
                continue;
            }
            // Tools that the provider runs itself, such as web search.
            _ => continue,
        };
        tools.push(OfferedTool {
            name: string_at(item, "name"),
            namespace: namespace.map(str::to_owned),
            form,
        });
    }
    tools
}

/// Writes an answer.
pub(crate) fn render(request: &ModelRequest, reply: &ModelReply, serial: usize) -> RenderedReply {
    let usage = reply.usage;
    let mut items = Vec::new();
    if !reply.text.is_empty() {
        items.push(json!({
            "type": "message", "id": format!("msg_{serial:08}"), "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": reply.text, "annotations": [] }],
        }));
    }
    items.extend(reply.calls.iter().map(call_item));
    let whole = json!({
        "id": format!("resp_{serial:08}"), "object": "response", "created_at": 0,
        "status": "completed", "model": request.model, "output": items,
        "usage": {
            "input_tokens": usage.prompt_total(),
            "input_tokens_details": {
                "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
            },
            "output_tokens": usage.answer_total(),
            "output_tokens_details": { "reasoning_tokens": usage.reasoning },
            "total_tokens": usage.prompt_total() + usage.answer_total(),
        },
        "error": null, "incomplete_details": null, "parallel_tool_calls": true, "tools": [],
        "tool_choice": "auto", "metadata": {},
    });
    let mut opened = whole.clone();
    opened["status"] = json!("in_progress");
    opened["output"] = json!([]);
    opened["usage"] = Value::Null;
    let mut values = vec![
        json!({ "type": "response.created", "response": opened }),
        json!({ "type": "response.in_progress", "response": opened }),
    ];
    for (index, item) in items.iter().enumerate() {
        push_item(&mut values, index, item);
    }
    values.push(json!({ "type": "response.completed", "response": whole }));
    let events = values
        .into_iter()
        .enumerate()
        .map(|(sequence_number, mut value)| {
            value["sequence_number"] = json!(sequence_number);
            ServerSentEvent::named(&string_at(&value, "type"), &value)
        })
        .collect();
    RenderedReply { whole, events }
}

fn call_item(call: &ReplyToolCall) -> Value {
    let call_id = format!("call_{}", call.id);
    if let (SEARCH, CallInput::Arguments(arguments)) = (call.name.as_str(), &call.input) {
        return json!({
            "type": "tool_search_call", "id": format!("tsc_{}", call.id), "call_id": call_id,
            "status": "completed", "execution": "client", "arguments": arguments,
        });
    }
    let mut item = match &call.input {
        CallInput::Arguments(arguments) => json!({
            "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call_id,
            "status": "completed", "name": call.name, "arguments": arguments.to_string(),
        }),
        CallInput::Freeform(input) => json!({
            "type": "custom_tool_call", "id": format!("ctc_{}", call.id), "call_id": call_id,
            "status": "completed", "name": call.name, "input": input,
        }),
    };
    if let Some(namespace) = &call.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

/// Writes the events of one output item: opened empty, filled by pieces, closed whole.
fn push_item(values: &mut Vec<Value>, index: usize, item: &Value) {
    let at = |kind: &str| json!({ "type": kind, "output_index": index, "item_id": item["id"] });
    let mut opened = item.clone();
    opened["status"] = json!("in_progress");
    if item["type"] == "tool_search_call" {
        for (kind, item) in [("added", &opened), ("done", item)] {
            let kind = format!("response.output_item.{kind}");
            values.push(json!({ "type": kind, "output_index": index, "item": item }));
        }
        return;
    }
    let (field, stem) = match item["type"].as_str() {
        Some("function_call") => ("arguments", "response.function_call_arguments"),
        Some("custom_tool_call") => ("input", "response.custom_tool_call_input"),
        _ => ("text", "response.output_text"),
    };
    let is_message = field == "text";
    let content = if is_message {
        opened["content"] = json!([]);
        string_at(&item["content"][0], field)
    } else {
        opened[field] = json!("");
        string_at(item, field)
    };
    values.push(
        json!({ "type": "response.output_item.added", "output_index": index, "item": opened }),
    );
    if is_message {
        let mut part = at("response.content_part.added");
        part["content_index"] = json!(0);
        part["part"] = json!({ "type": "output_text", "text": "", "annotations": [] });
        values.push(part);
    }
    for piece in pieces(&content) {
        let mut delta = at(&format!("{stem}.delta"));
        delta["content_index"] = json!(0);
        delta["delta"] = json!(piece);
        values.push(delta);
    }
    let mut done = at(&format!("{stem}.done"));
    done["content_index"] = json!(0);
    done[field] = json!(content);
    values.push(done);
    if is_message {
        let mut part = at("response.content_part.done");
        part["content_index"] = json!(0);
        part["part"] = item["content"][0].clone();
        values.push(part);
    }
    values
        .push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
}
