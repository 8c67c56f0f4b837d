//! Each API over a plain socket: the right step, the client's own tools, the same
//! whole and streamed.

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::record::{Api, KeyFingerprint, ServedAnswer};
use kapi_testkit::model_server::scenario::{
    AssistantTurn, ModelScenario, ReplyUsage, Route, ToolUse,
};
use serde_json::{Value, json};

use crate::client::{Said, Speech, Turn, exchange, head, post};

const USAGE: ReplyUsage = ReplyUsage {
    input: 1000,
    output: 200,
    cache_read: 30,
    cache_write: 4,
    reasoning: 5,
};

fn object(names: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

/// Returns tools in the shape of each API, named as that API's usual CLI names them.
pub(crate) fn tools(speech: Speech) -> Value {
    let edits = json!({
        "type": "object", "required": ["path", "edits"],
        "properties": {
            "path": { "type": "string" },
            "edits": { "type": "array", "items": object(&["oldText", "newText"]) },
        },
    });
    match speech {
        Speech::Anthropic => json!([
            { "name": "Bash", "input_schema": object(&["command", "description"]) },
            { "name": "Write", "input_schema": object(&["file_path", "content"]) },
            { "name": "Edit", "input_schema": object(&["file_path", "old_string", "new_string"]) },
            { "name": "Read", "input_schema": object(&["file_path"]) },
            { "name": "mcp__kapi__claim", "input_schema": object(&["state"]) },
        ]),
        Speech::Chat => json!([
            { "type": "function", "function": { "name": "bash", "parameters": object(&["command"]) } },
            { "type": "function", "function": { "name": "write", "parameters": object(&["path", "content"]) } },
            { "type": "function", "function": { "name": "edit", "parameters": edits } },
            { "type": "function", "function": { "name": "read", "parameters": object(&["path"]) } },
            { "type": "function", "function": { "name": "claim", "parameters": object(&["state"]) } },
        ]),
        Speech::Responses => json!([
            { "type": "function", "name": "exec_command", "parameters": object(&["cmd"]) },
            { "type": "custom", "name": "apply_patch" },
            { "type": "namespace", "name": "mcp__kapi", "tools": [
                { "type": "function", "name": "claim", "parameters": object(&["state"]) },
            ] },
            { "type": "web_search" },
        ]),
        Speech::Gemini => json!([{ "functionDeclarations": [
            { "name": "run_shell_command", "parametersJsonSchema": object(&["command"]) },
            { "name": "write_file", "parametersJsonSchema": object(&["file_path", "content"]) },
            { "name": "replace", "parameters":
                object(&["file_path", "instruction", "old_string", "new_string"]) },
            { "name": "read_file", "parametersJsonSchema": object(&["file_path"]) },
            { "name": "mcp_kapi_claim", "parametersJsonSchema": object(&["state"]) },
        ] }]),
    }
}

fn steps() -> Vec<AssistantTurn> {
    vec![
        AssistantTurn::bash("ls").saying("Looking. ".repeat(100).as_str()),
        AssistantTurn::write("a/b.txt", "x\ny\n"),
        AssistantTurn::edit("a/b.txt", "x", "z"),
        AssistantTurn::read("a/b.txt"),
        AssistantTurn::tools(vec![
            ToolUse::Mcp {
                name: "claim".to_owned(),
                arguments: json!({ "state": "done" }),
            },
            ToolUse::Named {
                name: "unheard".to_owned(),
                arguments: json!({ "of": 1 }),
            },
        ]),
        AssistantTurn::text("Finished."),
    ]
}

fn expected(speech: Speech) -> Vec<Vec<(&'static str, Value)>> {
    match speech {
        Speech::Anthropic => vec![
            vec![(
                "Bash",
                json!({ "command": "ls", "description": "description" }),
            )],
            vec![(
                "Write",
                json!({ "file_path": "/w/a/b.txt", "content": "x\ny\n" }),
            )],
            vec![(
                "Edit",
                json!({ "file_path": "/w/a/b.txt", "old_string": "x", "new_string": "z" }),
            )],
            vec![("Read", json!({ "file_path": "/w/a/b.txt" }))],
            vec![
                ("mcp__kapi__claim", json!({ "state": "done" })),
                ("unheard", json!({ "of": 1 })),
            ],
        ],
        Speech::Chat => vec![
            vec![("bash", json!({ "command": "ls" }))],
            vec![("write", json!({ "path": "a/b.txt", "content": "x\ny\n" }))],
            vec![(
                "edit",
                json!({ "path": "a/b.txt", "edits": [{ "oldText": "x", "newText": "z" }] }),
            )],
            vec![("read", json!({ "path": "a/b.txt" }))],
            vec![
                ("claim", json!({ "state": "done" })),
                ("unheard", json!({ "of": 1 })),
            ],
        ],
        Speech::Responses => vec![
            vec![("exec_command", json!({ "cmd": "ls" }))],
            vec![(
                "apply_patch",
                json!("*** Begin Patch\n*** Add File: a/b.txt\n+x\n+y\n*** End Patch\n"),
            )],
            vec![(
                "apply_patch",
                json!("*** Begin Patch\n*** Update File: a/b.txt\n@@\n-x\n+z\n*** End Patch\n"),
            )],
            vec![("exec_command", json!({ "cmd": "cat 'a/b.txt'" }))],
            vec![
                ("claim", json!({ "state": "done" })),
                ("unheard", json!({ "of": 1 })),
            ],
        ],
        Speech::Gemini => vec![
            vec![("run_shell_command", json!({ "command": "ls" }))],
            vec![(
                "write_file",
                json!({ "file_path": "/w/a/b.txt", "content": "x\ny\n" }),
            )],
            vec![(
                "replace",
                json!({
                    "file_path": "/w/a/b.txt", "instruction": "instruction", "old_string": "x",
                    "new_string": "z",
                }),
            )],
            vec![("read_file", json!({ "file_path": "/w/a/b.txt" }))],
            vec![
                ("mcp_kapi_claim", json!({ "state": "done" })),
                ("unheard", json!({ "of": 1 })),
            ],
        ],
    }
}

#[test]
fn every_step_in_every_api_whole_and_streamed() {
    let mut scenario = ModelScenario::new(steps());
    scenario.usage = USAGE;
    scenario.after = "Nothing left.".to_owned();
    let server = ModelServer::start(scenario).expect("a server");
    for speech in Speech::ALL {
        let mut turns = vec![Turn::User("Do it.")];
        let mut calls = expected(speech);
        // The last step, and what comes after it, only speak.
        calls.extend([vec![], vec![]]);
        for (index, calls) in calls.into_iter().enumerate() {
            let calls = calls
                .into_iter()
                .map(|(name, input)| (name.to_owned(), input));
            let said = Said {
                text: match index {
                    0 => "Looking. ".repeat(100),
                    5 => "Finished.".to_owned(),
                    6 => "Nothing left.".to_owned(),
                    _ => String::new(),
                },
                calls: calls.collect(),
                tokens: 1239,
            };
            let (path, body) = speech.request(false, &turns, &tools(speech));
            let reply = post(&server, &path, &body);
            assert_eq!((reply.status, reply.complete), (200, true), "{speech:?}");
            assert_eq!(speech.whole(&reply), said, "{speech:?} step {index}");
            let (path, body) = speech.request(true, &turns, &tools(speech));
            let reply = post(&server, &path, &body);
            assert_eq!((reply.status, reply.complete), (200, true), "{speech:?}");
            assert_eq!(
                speech.streamed(&reply),
                said,
                "{speech:?} step {index}, streamed"
            );
            turns.push(if index == 5 {
                Turn::Spoke
            } else {
                Turn::Tool("result")
            });
        }
    }
}

#[test]
fn gemini_streams_an_array_unless_asked_for_events() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let (path, body) = Speech::Gemini.request(true, &[Turn::User("u")], &tools(Speech::Gemini));
    let reply = post(&server, &path.replace("?alt=sse", ""), &body);
    let chunks: Vec<Value> = serde_json::from_str(&reply.body).expect("an array");
    assert!(chunks.len() > 1);
    let last = chunks.last().expect("a chunk");
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn chat_sends_usage_only_where_asked_for() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let (path, mut body) = Speech::Chat.request(true, &[Turn::User("u")], &tools(Speech::Chat));
    assert!(post(&server, &path, &body).body.contains("total_tokens"));
    body["stream_options"] = json!({ "include_usage": false });
    let reply = post(&server, &path, &body);
    assert!(!reply.body.contains("total_tokens"));
    assert!(reply.body.ends_with("data: [DONE]\n\n"));
}

#[test]
fn routes_count_from_the_prompt_they_fit() {
    let mut scenario = ModelScenario::new(vec![
        AssistantTurn::text("main 0"),
        AssistantTurn::text("main 1"),
        AssistantTurn::text("main 2"),
    ]);
    scenario.routes = vec![Route::new(
        "second",
        vec![AssistantTurn::bash("ls"), AssistantTurn::text("route 1")],
    )];
    let server = ModelServer::start(scenario).expect("a server");
    for speech in Speech::ALL {
        let check = |turns: &[Turn<'_>], text: &str, n_calls: usize| {
            let (path, body) = speech.request(true, turns, &tools(speech));
            let said = speech.streamed(&post(&server, &path, &body));
            assert_eq!(
                (said.text.as_str(), said.calls.len()),
                (text, n_calls),
                "{speech:?}"
            );
        };
        let mut turns = vec![
            Turn::User("first"),
            Turn::Spoke,
            Turn::User("the second prompt"),
        ];
        check(&turns[..1], "main 0", 0);
        check(&turns, "", 1);
        turns.push(Turn::Tool("second is not said by the user here"));
        check(&turns, "route 1", 0);
        turns.extend([Turn::Spoke, Turn::User("third")]);
        check(&turns, "Done.", 0);
    }
}

#[test]
fn side_requests_use_no_step_and_fit_their_schema() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let (path, mut body) = Speech::Gemini.request(false, &[Turn::User("Do it.")], &json!([]));
    assert_eq!(
        Speech::Gemini.whole(&post(&server, &path, &body)).text,
        "ok"
    );
    body["generationConfig"] = json!({ "responseJsonSchema": {
        "type": "object", "required": ["model"],
        "properties": { "model": { "enum": ["flash", "pro"] } },
    } });
    let said = Speech::Gemini.whole(&post(&server, &path, &body));
    assert_eq!(said.text, r#"{"model":"flash"}"#);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!((request.answer, request.step), (ServedAnswer::Side, None));
    }
}

#[test]
fn a_missing_tool_is_said_aloud() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let tools = json!([{ "name": "Other", "input_schema": object(&[]) }]);
    let (path, body) = Speech::Anthropic.request(true, &[Turn::User("u")], &tools);
    let said = Speech::Anthropic.streamed(&post(&server, &path, &body));
    assert_eq!(said.calls, []);
    assert!(
        said.text.starts_with("The client offers no tool"),
        "{}",
        said.text
    );
}

#[test]
fn keys_are_required_where_they_are_and_never_kept() {
    let mut scenario = ModelScenario::new(vec![AssistantTurn::text("welcome")]);
    scenario.require_key = Some("sk-right".to_owned());
    let server = ModelServer::start(scenario).expect("a server");
    let (path, body) =
        Speech::Anthropic.request(false, &[Turn::User("u")], &tools(Speech::Anthropic));
    let body = body.to_string();
    let status = |path: &str, header: &str| {
        exchange(&server, &head("POST", path, &body, header), &body).status
    };
    assert_eq!(status(&path, ""), 401);
    assert_eq!(status(&path, "x-api-key: sk-wrong\r\n"), 401);
    assert_eq!(status(&path, "x-api-key: sk-right\r\n"), 200);
    assert_eq!(status(&path, "X-Goog-Api-Key: sk-right\r\n"), 200);
    assert_eq!(status(&path, "Authorization: Bearer sk-right\r\n"), 200);
    assert_eq!(status("/v1/messages?key=sk-right", ""), 200);
    let requests = server.requests();
    assert!(!format!("{requests:?}").contains("sk-right"));
    assert_eq!(requests[0].key_fingerprint, None);
    assert_eq!(
        (&requests[0].answer, requests[0].model.as_str()),
        (&ServedAnswer::Denied, "m")
    );
    assert_eq!(
        requests[1].key_fingerprint,
        Some(KeyFingerprint::of("sk-wrong"))
    );
    assert_eq!(
        KeyFingerprint::of("abc").sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn what_is_recorded() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let turns = [Turn::User("Do it."), Turn::Tool("the result")];
    let (path, body) = Speech::Anthropic.request(true, &turns, &tools(Speech::Anthropic));
    post(&server, &path, &body);
    let requests = server.requests();
    let [request] = requests.as_slice() else {
        panic!("one request: {requests:?}");
    };
    assert_eq!(request.api, Some(Api::Anthropic));
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/messages")
    );
    assert_eq!((request.model.as_str(), request.step), ("m", Some(1)));
    assert_eq!(request.answer, ServedAnswer::Step);
    assert_eq!(
        request.tools,
        ["Bash", "Write", "Edit", "Read", "mcp__kapi__claim"]
    );
    assert_eq!(
        (
            request.last_user.as_str(),
            request.last_tool_result.as_str()
        ),
        ("Do it.", "the result")
    );
    assert_eq!(request.body, body);
}

#[test]
fn probes_counts_and_strangers() {
    let server = ModelServer::start(ModelScenario::new(steps())).expect("a server");
    let alive = exchange(&server, &head("HEAD", "/", "", ""), "");
    assert_eq!(
        (alive.status, alive.body.as_str(), alive.complete),
        (200, "", true)
    );
    let models = exchange(&server, &head("GET", "/v1/models", "", ""), "");
    assert!(models.body.contains("\"object\":\"list\""));
    let count = post(
        &server,
        "/v1/messages/count_tokens",
        &json!({ "messages": [] }),
    );
    assert_eq!(count.body, r#"{"input_tokens":3}"#);
    assert_eq!(post(&server, "/v1/nothing", &json!({})).status, 404);
    assert_eq!(
        exchange(&server, &head("POST", "/v1/messages", "{", ""), "{").status,
        400
    );
    let packed = head("POST", "/v1/messages", "{}", "content-encoding: zstd\r\n");
    assert_eq!(exchange(&server, &packed, "{}").status, 415);
    assert_eq!(exchange(&server, "no http\r\n\r\n", "").status, 400);
    let answers: Vec<ServedAnswer> = server.requests().into_iter().map(|r| r.answer).collect();
    assert_eq!(
        answers,
        [
            ServedAnswer::Probe,
            ServedAnswer::Probe,
            ServedAnswer::Count,
            ServedAnswer::Refused(404),
            ServedAnswer::Refused(400),
            ServedAnswer::Refused(415),
        ]
    );
}

#[test]
fn chunked_requests_and_kept_connections() {
    use std::io::{Read as _, Write as _};

    let server = ModelServer::start(ModelScenario::new(vec![AssistantTurn::text("hello")]))
        .expect("a server");
    let (path, body) = Speech::Chat.request(false, &[Turn::User("u")], &tools(Speech::Chat));
    let body = body.to_string();
    let (left, right) = body.split_at(10);
    let chunked = |connection: &str| {
        format!(
            "POST {path} HTTP/1.1\r\n{connection}transfer-encoding: chunked\r\n\r\n\
             {:x}\r\n{left}\r\n{:x}\r\n{right}\r\n0\r\n\r\n",
            left.len(),
            right.len()
        )
    };
    let mut stream = crate::client::connect(&server);
    stream
        .write_all(chunked("").as_bytes())
        .expect("the server reads");
    stream
        .write_all(chunked("connection: close\r\n").as_bytes())
        .expect("the server reads");
    let mut answers = String::new();
    stream
        .read_to_string(&mut answers)
        .expect("the answers end");
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2);
    assert_eq!(answers.matches("hello").count(), 2);
}
