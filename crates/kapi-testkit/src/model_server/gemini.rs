//! Gemini `generateContent`: requests read, answers and their chunks written.
//! It does not know the scenario.

use serde_json::{Value, json};

use crate::model_server::record::Api;
use crate::model_server::reply::{ModelReply, RenderedReply, ServerSentEvent, pieces};
use crate::model_server::request::{
    Delivery, ModelRequest, OfferedTool, RequestMessage, items_at, string_at, text_of,
};

/// Reads a request; model and delivery stand in the path, not in the body.
pub(crate) fn read(body: &Value, model: &str, delivery: Delivery) -> ModelRequest {
    let mut history = Vec::new();
    for content in items_at(body, "contents") {
        let parts = items_at(content, "parts");
        if content["role"] == "model" {
            history.push(RequestMessage::Assistant);
            continue;
        }
        let mut said = Vec::new();
        for part in parts {
            if let Some(response) = part.get("functionResponse") {
                history.push(RequestMessage::ToolResult(text_of(&response["response"])));
            } else if let Some(text) = part["text"].as_str() {
                said.push(text);
            }
        }
        if !said.is_empty() {
            history.push(RequestMessage::User(said.join("\n")));
        }
    }
    let tools = items_at(body, "tools")
        .iter()
        .flat_map(|group| items_at(group, "functionDeclarations"))
        .map(|function| {
            let schema = function
                .get("parametersJsonSchema")
                .unwrap_or(&function["parameters"]);
            OfferedTool::function(&string_at(function, "name"), schema)
        })
        .collect();
    let config = &body["generationConfig"];
    ModelRequest {
        api: Api::Gemini,
        model: model.to_owned(),
        delivery,
        tools,
        system: text_of(&body["systemInstruction"]["parts"]),
        history,
        schema: config
            .get("responseJsonSchema")
            .or_else(|| config.get("responseSchema"))
            .cloned(),
    }
}

/// Writes an answer.
pub(crate) fn render(request: &ModelRequest, reply: &ModelReply, serial: usize) -> RenderedReply {
    let usage = reply.usage;
    let usage = json!({
        "promptTokenCount": usage.prompt_total(),
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cache_read,
        "totalTokenCount": usage.prompt_total() + usage.answer_total(),
    });
    let mut parts: Vec<Value> = pieces(&reply.text)
        .iter()
        .map(|piece| json!({ "text": piece }))
        .collect();
    for call in &reply.calls {
        parts.push(json!({
            "functionCall": {
                "id": call.id, "name": call.name, "args": call.input.arguments(),
            },
            // Current models sign their calls, and clients send the signature back.
            "thoughtSignature": "c2lnbmVk",
        }));
    }
    if parts.is_empty() {
        parts.push(json!({ "text": "" }));
    }
    let chunk = |parts: &[Value]| {
        json!({
            "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
            "usageMetadata": usage,
            "modelVersion": request.model,
            "responseId": format!("gemini-{serial:08}"),
        })
    };
    let finished = |mut chunk: Value| {
        chunk["candidates"][0]["finishReason"] = json!("STOP");
        chunk
    };
    let mut chunks: Vec<Value> = parts.chunks(1).map(chunk).collect();
    if let Some(last) = chunks.pop() {
        chunks.push(finished(last));
    }
    RenderedReply {
        whole: finished(chunk(&parts)),
        events: chunks.iter().map(ServerSentEvent::unnamed).collect(),
    }
}
