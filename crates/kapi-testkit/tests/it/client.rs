//! A client over a plain socket, one request a connection, and the same small
//! conversation in the words of each API.
//! It shares no code with the server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use kapi_testkit::model_server::ModelServer;
use serde_json::{Value, json};

/// An answer as it came over the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// Zero where not one byte came.
    pub(crate) status: u16,
    pub(crate) head: String,
    /// Without chunk framing.
    pub(crate) body: String,
    /// The body has ended as its framing says.
    pub(crate) complete: bool,
}

/// An API to talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

/// What a model said: text, calls as name and arguments, and all tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) tokens: u64,
}

/// A turn of a conversation, as the client remembers it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn<'text> {
    User(&'text str),
    /// The assistant used a tool, and this is the result.
    Tool(&'text str),
    /// The assistant spoke.
    Spoke,
}

impl Speech {
    pub(crate) const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini];

    /// Returns the path and the body that ask for the next turn.
    pub(crate) fn request(
        self,
        stream: bool,
        turns: &[Turn<'_>],
        tools: &Value,
    ) -> (String, Value) {
        let messages: Vec<Value> = turns.iter().flat_map(|turn| self.messages(*turn)).collect();
        let path = match (self, stream) {
            (Self::Anthropic, _) => "/v1/messages?beta=true",
            (Self::Chat, _) => "/v1/chat/completions",
            (Self::Responses, _) => "/v1/responses",
            (Self::Gemini, false) => "/v1beta/models/m:generateContent",
            (Self::Gemini, true) => "/v1beta/models/m:streamGenerateContent?alt=sse",
        };
        let body = match self {
            Self::Anthropic => json!({
                "model": "m", "stream": stream, "system": "working directory: /w",
                "messages": messages, "tools": tools,
            }),
            Self::Chat => json!({
                "model": "m", "stream": stream, "stream_options": { "include_usage": true },
                "messages": messages, "tools": tools,
            }),
            Self::Responses => json!({
                "model": "m", "stream": stream, "instructions": "i", "input": messages, "tools": tools,
            }),
            Self::Gemini => json!({
                "contents": messages, "tools": tools,
                "systemInstruction": { "parts": [{ "text": "workspace directory: /w" }] },
            }),
        };
        (path.to_owned(), body)
    }

    fn messages(self, turn: Turn<'_>) -> Vec<Value> {
        match (self, turn) {
            (Self::Anthropic | Self::Chat, Turn::User(text)) => {
                vec![json!({ "role": "user", "content": text })]
            }
            (Self::Anthropic | Self::Chat, Turn::Spoke) => {
                vec![json!({ "role": "assistant", "content": "words" })]
            }
            (Self::Anthropic, Turn::Tool(result)) => vec![
                json!({ "role": "assistant", "content": [
                    { "type": "text", "text": "words" },
                    { "type": "tool_use", "id": "t", "name": "Bash", "input": {} },
                ] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "t", "content": result },
                    { "type": "text", "text": "<system-reminder>be kind</system-reminder>" },
                ] }),
            ],
            (Self::Chat, Turn::Tool(result)) => vec![
                json!({ "role": "assistant", "content": null, "tool_calls": [] }),
                json!({ "role": "tool", "tool_call_id": "t", "content": result }),
            ],
            (Self::Responses, Turn::User(text)) => vec![json!({
                "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }],
            })],
            (Self::Responses, Turn::Spoke) => vec![json!({
                "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": "words" }],
            })],
            (Self::Responses, Turn::Tool(result)) => vec![
                json!({ "type": "reasoning", "summary": [] }),
                json!({ "type": "function_call", "call_id": "t", "name": "x", "arguments": "{}" }),
                json!({ "type": "function_call_output", "call_id": "t", "output": result }),
            ],
            (Self::Gemini, Turn::User(text)) => {
                vec![json!({ "role": "user", "parts": [{ "text": text }] })]
            }
            (Self::Gemini, Turn::Spoke) => {
                vec![json!({ "role": "model", "parts": [{ "text": "words" }] })]
            }
            (Self::Gemini, Turn::Tool(result)) => vec![
                json!({ "role": "model", "parts": [{ "functionCall": { "name": "x", "args": {} } }] }),
                json!({ "role": "user", "parts": [
                    { "functionResponse": { "name": "x", "response": { "output": result } } },
                ] }),
            ],
        }
    }

    /// Reads an answer that came whole.
    pub(crate) fn whole(self, reply: &Reply) -> Said {
        let body: Value = serde_json::from_str(&reply.body).expect("the body is JSON");
        let mut said = Said::nothing();
        match self {
            Self::Anthropic => {
                for block in list(&body["content"]) {
                    match text(&block["type"]) {
                        "text" => said.text.push_str(text(&block["text"])),
                        _ => said
                            .calls
                            .push((text(&block["name"]).to_owned(), block["input"].clone())),
                    }
                }
                said.tokens = sum(&body["usage"]);
            }
            Self::Chat => {
                let message = &body["choices"][0]["message"];
                said.text.push_str(text(&message["content"]));
                for call in list(&message["tool_calls"]) {
                    said.push_call(&call["function"]["name"], &call["function"]["arguments"]);
                }
                said.tokens = number(&body["usage"]["total_tokens"]);
            }
            Self::Responses => said.add_response(&body),
            Self::Gemini => said.add_candidate(&body),
        }
        said
    }

    /// Puts an answer together from its events.
    pub(crate) fn streamed(self, reply: &Reply) -> Said {
        let mut said = Said::nothing();
        let mut inputs: Vec<(String, String)> = Vec::new();
        for event in events(&reply.body) {
            match self {
                Self::Anthropic => said.add_anthropic_event(&event, &mut inputs),
                Self::Chat => said.add_chat_event(&event, &mut inputs),
                Self::Responses if event["type"] == "response.completed" => {
                    said.add_response(&event["response"]);
                }
                Self::Responses => {}
                Self::Gemini => said.add_candidate(&event),
            }
        }
        for (name, input) in inputs {
            said.push_call(&json!(name), &json!(input));
        }
        said
    }

    /// Reads an answer that came whole, or puts it together from its events.
    pub(crate) fn said(self, stream: bool, reply: &Reply) -> Said {
        if stream {
            self.streamed(reply)
        } else {
            self.whole(reply)
        }
    }
}

impl Said {
    fn nothing() -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            tokens: 0,
        }
    }

    fn push_call(&mut self, name: &Value, arguments: &Value) {
        let arguments = serde_json::from_str(text(arguments)).expect("arguments are JSON");
        self.calls.push((text(name).to_owned(), arguments));
    }

    fn add_anthropic_event(&mut self, event: &Value, inputs: &mut Vec<(String, String)>) {
        let (block, delta) = (&event["content_block"], &event["delta"]);
        if block["type"] == "tool_use" {
            inputs.push((text(&block["name"]).to_owned(), String::new()));
        }
        self.text.push_str(text(&delta["text"]));
        if let Some((_, input)) = inputs.last_mut() {
            input.push_str(text(&delta["partial_json"]));
        }
        if event["type"] == "message_delta" {
            self.tokens = sum(&event["usage"]);
        }
    }

    fn add_chat_event(&mut self, event: &Value, inputs: &mut Vec<(String, String)>) {
        let delta = &event["choices"][0]["delta"];
        self.text.push_str(text(&delta["content"]));
        for call in list(&delta["tool_calls"]) {
            if let Some(name) = call["function"]["name"].as_str() {
                inputs.push((name.to_owned(), String::new()));
            }
            let (_, input) = inputs.last_mut().expect("a call begins with its name");
            input.push_str(text(&call["function"]["arguments"]));
        }
        self.tokens += number(&event["usage"]["total_tokens"]);
    }

    fn add_response(&mut self, response: &Value) {
        for item in list(&response["output"]) {
            match text(&item["type"]) {
                "message" => self.text.push_str(text(&item["content"][0]["text"])),
                "custom_tool_call" => {
                    self.calls
                        .push((text(&item["name"]).to_owned(), item["input"].clone()));
                }
                _ => self.push_call(&item["name"], &item["arguments"]),
            }
        }
        self.tokens = number(&response["usage"]["total_tokens"]);
    }

    fn add_candidate(&mut self, body: &Value) {
        for part in list(&body["candidates"][0]["content"]["parts"]) {
            self.text.push_str(text(&part["text"]));
            if let Some(call) = part.get("functionCall") {
                self.calls
                    .push((text(&call["name"]).to_owned(), call["args"].clone()));
            }
        }
        // Every chunk repeats the sum.
        self.tokens = number(&body["usageMetadata"]["totalTokenCount"]);
    }
}

/// Sends a request with a JSON body and reads the answer to its end.
pub(crate) fn post(server: &ModelServer, path: &str, body: &Value) -> Reply {
    exchange(
        server,
        &head("POST", path, &body.to_string(), ""),
        &body.to_string(),
    )
}

/// Returns the head of a request; `extra` are header lines.
pub(crate) fn head(method: &str, path: &str, body: &str, extra: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n{extra}\r\n",
        body.len()
    )
}

/// Sends bytes and reads the answer to its end.
pub(crate) fn exchange(server: &ModelServer, head: &str, body: &str) -> Reply {
    let mut stream = connect(server);
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body.as_bytes()).expect("the server reads");
    let mut bytes = Vec::new();
    // A cut connection may end in an error; what came before it counts.
    stream.read_to_end(&mut bytes).ok();
    parse(&String::from_utf8(bytes).expect("an answer is text"))
}

/// Opens a connection.
pub(crate) fn connect(server: &ModelServer) -> TcpStream {
    TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens")
}

/// Returns the events of a stream that are JSON.
pub(crate) fn events(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|text| *text != "[DONE]")
        .map(|text| serde_json::from_str(text).unwrap_or(Value::Null))
        .collect()
}

fn parse(answer: &str) -> Reply {
    let Some((head, rest)) = answer.split_once("\r\n\r\n") else {
        return Reply {
            status: 0,
            head: answer.to_owned(),
            body: String::new(),
            complete: false,
        };
    };
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (body, complete) = if head.contains("transfer-encoding: chunked") {
        dechunk(rest)
    } else {
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        (
            rest.to_owned(),
            length == Some(rest.len().to_string().as_str()),
        )
    };
    Reply {
        status: status.expect("a status"),
        head: head.to_owned(),
        body,
        complete,
    }
}

fn dechunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((length, tail)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a chunk length");
        if length == 0 {
            return (body, true);
        }
        body.push_str(&tail[..length]);
        rest = &tail[length + 2..];
    }
    (body, false)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn sum(usage: &Value) -> u64 {
    let counts = usage.as_object().expect("a usage");
    counts.values().map(number).sum()
}
