//! What a request asks for, by its method, path and headers, and how each API
//! words an error.
//! It does not read bodies.

use serde_json::{Value, json};

use crate::model_server::http::HttpRequest;
use crate::model_server::record::Api;
use crate::model_server::reply::{ModelReply, RenderedReply};
use crate::model_server::request::{Delivery, ModelRequest};
use crate::model_server::{anthropic, chat, gemini, responses};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An answer of the model.
    Generate(Api),
    /// The number of tokens of a prompt.
    Count(Api),
    /// The list of models.
    Models,
    /// A sign of life.
    Alive,
    Unknown,
}

/// Returns what a request asks for.
pub(crate) fn classify(request: &HttpRequest) -> Endpoint {
    const SUFFIXES: [(&str, Endpoint); 7] = [
        ("/messages", Endpoint::Generate(Api::Anthropic)),
        ("/messages/count_tokens", Endpoint::Count(Api::Anthropic)),
        ("/chat/completions", Endpoint::Generate(Api::Chat)),
        ("/responses", Endpoint::Generate(Api::Responses)),
        (":generateContent", Endpoint::Generate(Api::Gemini)),
        (":streamGenerateContent", Endpoint::Generate(Api::Gemini)),
        (":countTokens", Endpoint::Count(Api::Gemini)),
    ];
    let path = request.path.as_str();
    match request.method.as_str() {
        "POST" => SUFFIXES
            .iter()
            .find(|(suffix, _)| path.ends_with(suffix))
            .map_or(Endpoint::Unknown, |(_, endpoint)| *endpoint),
        "GET" if path.ends_with("/models") => Endpoint::Models,
        "GET" | "HEAD" if ["/", "/v1", "/v1/", "/v1beta"].contains(&path) => Endpoint::Alive,
        _ => Endpoint::Unknown,
    }
}

/// Returns the key that a request presents, wherever its API puts it.
pub(crate) fn key_of(request: &HttpRequest) -> Option<String> {
    let header = |name| request.header(name).map(str::to_owned);
    let bearer = || {
        let (scheme, key) = request.header("authorization")?.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| key.trim().to_owned())
    };
    let query = || {
        request
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix("key=").map(str::to_owned))
    };
    header("x-api-key")
        .or_else(|| header("x-goog-api-key"))
        .or_else(bearer)
        .or_else(query)
}

/// Reads the body of a request for an answer.
pub(crate) fn read(api: Api, request: &HttpRequest, body: &Value) -> ModelRequest {
    match api {
        Api::Anthropic => anthropic::read(body),
        Api::Chat => chat::read(body),
        Api::Responses => responses::read(body),
        Api::Gemini => {
            let last = request.path.rsplit('/').next().unwrap_or_default();
            let (model, method) = last.split_once(':').unwrap_or((last, ""));
            let events = request.query.split('&').any(|pair| pair == "alt=sse");
            let delivery = match (method == "streamGenerateContent", events) {
                (true, true) => Delivery::Events,
                (true, false) => Delivery::Array,
                (false, _) => Delivery::Whole,
            };
            gemini::read(body, model, delivery)
        }
    }
}

/// Writes an answer in the shape of the request's API.
pub(crate) fn render(request: &ModelRequest, reply: &ModelReply, serial: usize) -> RenderedReply {
    match request.api {
        Api::Anthropic => anthropic::render(request, reply, serial),
        Api::Chat => chat::render(request, reply, serial),
        Api::Responses => responses::render(request, reply, serial),
        Api::Gemini => gemini::render(request, reply, serial),
    }
}

/// Returns the number of tokens of a prompt, guessed from its length.
pub(crate) fn token_count(api: Api, body: &Value) -> Value {
    let tokens = body.to_string().len() / 4;
    match api {
        Api::Gemini => json!({ "totalTokens": tokens }),
        Api::Anthropic | Api::Chat | Api::Responses => json!({ "input_tokens": tokens }),
    }
}

/// Returns a list of one model that satisfies every client's reader.
pub(crate) fn model_list() -> Value {
    json!({
        "object": "list",
        "has_more": false,
        "data": [{
            "id": "scripted", "object": "model", "type": "model", "display_name": "scripted",
            "created": 0, "created_at": "2025-01-01T00:00:00Z", "owned_by": "kapi",
        }],
        "models": [],
    })
}

/// Returns an error in the words of an API.
pub(crate) fn error_body(api: Option<Api>, status: u16, message: &str) -> Value {
    let (kind, gemini_status) = match status {
        400 => ("invalid_request_error", "INVALID_ARGUMENT"),
        401 => ("authentication_error", "UNAUTHENTICATED"),
        403 => ("permission_error", "PERMISSION_DENIED"),
        404 => ("not_found_error", "NOT_FOUND"),
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
        503 | 529 => ("overloaded_error", "UNAVAILABLE"),
        _ => ("api_error", "INTERNAL"),
    };
    match api {
        Some(Api::Anthropic) => {
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        Some(Api::Gemini) => {
            json!({ "error": { "code": status, "message": message, "status": gemini_status } })
        }
        Some(Api::Chat | Api::Responses) | None => json!({
            "error": { "message": message, "type": kind, "param": null, "code": kind },
        }),
    }
}
