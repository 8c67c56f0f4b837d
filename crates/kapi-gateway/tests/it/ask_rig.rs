//! A server that answers with whatever a test says, and a question to ask it.
//!
//! Requests are kept as they came, so that a test can look at what was asked.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapi_gateway::ask::answer::ModelAnswer;
use kapi_gateway::ask::error::AskError;
use kapi_gateway::ask::form::{AnswerForm, VERDICT};
use kapi_gateway::ask::server::{ModelApi, ModelEndpoint};
use kapi_gateway::ask::{ModelQuestion, QuestionOutcome, ask};
use kapi_gateway::model::route::BaseUrl;
use kapi_gateway::model::secret::ProviderKey;
use kapi_sys::cancel::Cancel;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Target};

pub(crate) const APIS: [ModelApi; 3] = [ModelApi::Anthropic, ModelApi::Chat, ModelApi::Gemini];
pub(crate) const KEY: &str = "sk-secret-of-the-test";
pub(crate) const VERDICT_FORM: AnswerForm = AnswerForm::Object(&VERDICT);

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// What is answered.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A server that answers as a function says.
pub(crate) struct Scripted {
    target: Target,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let target = Target::start(move |stream| {
            if let Some(request) = read_request(stream) {
                let reply = answer(&request);
                kept.lock().expect("a lock").push(request);
                write_reply(stream, &reply);
            }
        });
        Self { target, requests }
    }

    pub(crate) fn server(&self, api: ModelApi) -> ModelEndpoint {
        self.server_at(api, "http", "")
    }

    pub(crate) fn server_at(&self, api: ModelApi, scheme: &str, path: &str) -> ModelEndpoint {
        server(api, &format!("{scheme}://{}{path}", self.target.address))
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("a lock").clone()
    }
}

/// Returns a server at an address, with the test's key.
pub(crate) fn server(api: ModelApi, url: &str) -> ModelEndpoint {
    ModelEndpoint {
        api,
        base_url: BaseUrl::parse(url).expect("a base URL"),
        key: Some(ProviderKey::parse(KEY).expect("a key")),
        extra_authorities: None,
        host_proxy: None,
    }
}

pub(crate) fn question(form: AnswerForm) -> ModelQuestion<'static> {
    ModelQuestion {
        model: "test-model-1",
        system: "You judge.",
        user: "Is it done?",
        output_tokens_max: 300,
        form,
    }
}

/// Asks with patience.
pub(crate) fn ask_at(server: &ModelEndpoint, form: AnswerForm) -> QuestionOutcome {
    ask(server, &question(form), PATIENCE, &Cancel::new())
}

pub(crate) fn ask_for(server: &ModelEndpoint, deadline: Duration) -> QuestionOutcome {
    ask(
        server,
        &question(AnswerForm::Words),
        deadline,
        &Cancel::new(),
    )
}

pub(crate) fn answer(asked: QuestionOutcome) -> ModelAnswer {
    asked.outcome.expect("an answer")
}

pub(crate) fn error(asked: QuestionOutcome) -> AskError {
    asked.outcome.expect_err("no answer")
}

/// Returns a whole answer in an API's shape with this text.
pub(crate) fn spoken(api: ModelApi, text: &str) -> Value {
    match api {
        ModelApi::Anthropic => json!({
            "id": "msg_1", "model": "test-model-1", "stop_reason": "end_turn",
            "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": text }],
            "usage": { "input_tokens": 10, "output_tokens": 3 },
        }),
        ModelApi::Chat => json!({
            "id": "chatcmpl-1", "model": "test-model-1",
            "choices": [{ "message": { "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13 },
        }),
        ModelApi::Gemini => json!({
            "candidates": [{
                "content": { "parts": [{ "text": "hm", "thought": true }, { "text": text }] },
                "finishReason": "STOP",
            }],
            "usageMetadata": {
                "promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 1,
            },
            "modelVersion": "test-model-1", "responseId": "r1",
        }),
    }
}

pub(crate) fn read_request(mut stream: &TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>())
    });
    let mut body = vec![0; length.map_or(0, |length| length.expect("a length"))];
    stream.read_exact(&mut body).ok()?;
    Some(Request {
        line: head.lines().next().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        head,
    })
}

pub(crate) fn write_reply(mut stream: &TcpStream, reply: &Reply) {
    let mut text = format!(
        "HTTP/1.1 {} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in &reply.headers {
        text.extend([*name, ": ", value, "\r\n"]);
    }
    text.push_str("Connection: close\r\n\r\n");
    text.push_str(&reply.body);
    // A client that has given up reads no more.
    let _written = stream.write_all(text.as_bytes());
}
