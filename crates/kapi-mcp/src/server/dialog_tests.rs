//! What takes time, as a client meets it: progress, cancelling, questions to its person, in both eras.

use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::thread;
use std::time::Duration;

use kapi_goal::tools::GoalTool;
use kapi_wire::kernel_tools::{AnyTool, ToolOffer};
use serde_json::{Value, json};

use super::{ToolServer, serve};
use crate::call::{CallOutcome, Question};
use crate::protocol::REQUEST_VERSION;

/// Longer than any test runs.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// A client's end of a server.
struct Client {
    input: PipeWriter,
    output: BufReader<PipeReader>,
}

impl Client {
    fn send(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .unwrap();
    }

    fn call(&mut self, id: u32, tool: &str, meta: &Value) {
        let params = json!({"name": tool, "arguments": {"taskId": "task_1"}, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn shake_hands(&mut self, version: &str, capabilities: &Value) {
        let params = json!({"protocolVersion": version, "capabilities": capabilities});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(self.receive()["result"]["protocolVersion"], version);
    }
}

fn question() -> Question {
    Question {
        text: "May it?".to_owned(),
        schema: json!({"type": "object"}),
        about: "it".to_owned(),
        unanswered: json!({"ok": false, "reason": "not_confirmed"}),
    }
}

/// Serves a client whose looks wait for ever and whose drafts ask.
fn with_client(act: impl FnOnce(&mut Client)) {
    let (from_client, input) = io::pipe().unwrap();
    let (output, mut to_client) = io::pipe().unwrap();
    let serving = thread::spawn(move || {
        let server = ToolServer {
            offer: ToolOffer::ALL,
            call: &mut |tool, _| match tool {
                AnyTool::Goal(GoalTool::Set) => CallOutcome::Asking(question()),
                AnyTool::Goal(_) => CallOutcome::Answered(json!({"ok": true})),
                AnyTool::Kernel(_) => CallOutcome::Waiting(Box::new(|link| {
                    link.report(1, 9, "so far");
                    link.wait(FOR_EVER);
                    json!({"ok": true, "text": "given up", "details": {}})
                })),
            },
            settle: &|about, reply| json!({"ok": true, "about": about, "said": format!("{reply:?}")}),
        };
        serve(&mut BufReader::new(from_client), &mut to_client, server)
    });
    let mut client = Client {
        input,
        output: BufReader::new(output),
    };
    act(&mut client);
    // Hanging up ends everything that waits.
    drop(client.input);
    serving.join().unwrap().unwrap();
}

#[test]
fn a_call_that_waits_tells_how_far_it_is_and_lets_others_pass() {
    with_client(|client| {
        client.call(1, "background_status", &json!({"progressToken": "p"}));
        let progress = json!({
            "progressToken": "p", "progress": 1, "total": 9, "message": "so far",
        });
        let told = client.receive();
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"], progress);
        client.call(2, "until_done_status", &json!({}));
        assert_eq!(client.receive()["id"], 2);
    });
}

#[test]
fn a_cancelled_call_is_not_answered() {
    with_client(|client| {
        client.call(1, "background_status", &json!({"progressToken": 7}));
        client.receive();
        let params = json!({"requestId": 1, "reason": "enough"});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
        for id in 2..40 {
            client.call(id, "until_done_status", &json!({}));
            assert_eq!(client.receive()["id"], id);
        }
    });
}

#[test]
fn a_person_is_asked_through_a_client_that_has_dialogs() {
    for (version, names_mode) in [("2025-06-18", false), ("2025-11-25", true)] {
        with_client(|client| {
            client.shake_hands(version, &json!({"elicitation": {}}));
            for (reply, said) in [
                (json!({"action": "accept", "content": {"a": 1}}), "Accepted"),
                (json!({"action": "decline"}), "Declined"),
                (json!({"action": "cancel"}), "Cancelled"),
            ] {
                client.call(1, "until_done_set", &json!({}));
                let asked = client.receive();
                assert_eq!(asked["method"], "elicitation/create");
                assert_eq!(asked["params"]["message"], "May it?");
                assert_eq!(asked["params"].get("mode").is_some(), names_mode);
                client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply}));
                let answer = client.receive();
                let content = &answer["result"]["structuredContent"];
                assert_eq!(content["about"], "it");
                assert!(
                    content["said"].as_str().unwrap().starts_with(said),
                    "{content}"
                );
            }
        });
    }
}

#[test]
fn a_client_without_dialogs_gets_the_answer_without_them() {
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        with_client(|client| {
            client.shake_hands("2025-11-25", &capabilities);
            client.call(1, "until_done_set", &json!({}));
            let answer = client.receive();
            assert_eq!(
                answer["result"]["structuredContent"]["reason"],
                "not_confirmed"
            );
        });
    }
}

#[test]
fn a_question_ends_with_its_call() {
    with_client(|client| {
        client.shake_hands("2025-11-25", &json!({"elicitation": {"form": {}}}));
        client.call(1, "until_done_set", &json!({}));
        let asked = client.receive();
        let params = json!({"requestId": 1});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
        // Its answer comes too late, and is nobody's.
        let reply = json!({"action": "accept", "content": {}});
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply}));
        client.call(2, "until_done_status", &json!({}));
        assert_eq!(client.receive()["id"], 2);
    });
}

/// What each request says where there is no handshake.
fn terms(version: &str, capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn a_client_without_handshake_is_served_by_what_each_request_says() {
    with_client(|client| {
        let meta = terms(REQUEST_VERSION, &json!({"elicitation": {}}));
        for method in ["server/discover", "tools/list"] {
            client.send(&json!({
                "jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta},
            }));
            let result = client.receive()["result"].clone();
            assert_eq!(result["resultType"], "complete", "{result}");
            assert_eq!(result["cacheScope"], "private", "{result}");
            let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(server["name"], "kapi", "{result}");
        }
        client.call(2, "until_done_set", &meta);
        let result = client.receive()["result"].clone();
        assert_eq!(result["resultType"], "input_required");
        let asked = &result["inputRequests"]["question"];
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["mode"], "form");
        let reply = json!({"question": {"action": "accept", "content": {}}});
        let params = json!({
            "name": "until_done_set", "arguments": {}, "_meta": meta,
            "inputResponses": reply, "requestState": result["requestState"],
        });
        client.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}));
        let result = client.receive()["result"].clone();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["structuredContent"]["about"], "it");
    });
}

#[test]
fn terms_that_cannot_hold_are_refused() {
    with_client(|client| {
        let known = terms(REQUEST_VERSION, &json!({}));
        let version = "io.modelcontextprotocol/protocolVersion";
        for (method, meta, code) in [
            ("tools/list", terms("1900-01-01", &json!({})), -32_022),
            ("tools/list", json!({ version: REQUEST_VERSION }), -32_602),
            ("ping", known.clone(), -32_601),
            ("initialize", known, -32_601),
            ("server/discover", json!({}), -32_601),
        ] {
            client.send(&json!({
                "jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta},
            }));
            let error = client.receive()["error"].clone();
            assert_eq!(error["code"], code, "{method}: {error}");
            if code == -32_022 {
                assert_eq!(error["data"]["supported"][0], REQUEST_VERSION);
                assert_eq!(error["data"]["requested"], "1900-01-01");
            }
        }
    });
}
