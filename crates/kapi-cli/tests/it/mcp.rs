//! `kapi mcp` as a client meets it: the built binary on a pipe, outside of any run and within one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST};

/// A client's end of one server.
pub(crate) struct Client {
    child: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
    next_id: u64,
}

impl Client {
    pub(crate) fn new(env: &Environment) -> Self {
        Self::with(env, &[])
    }

    /// Starts a server with options.
    fn with(env: &Environment, options: &[&str]) -> Self {
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
        command.arg("mcp").args(options).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            output,
            next_id: 1,
        }
    }

    /// Tells the server to stop, which it answers by an orderly end.
    pub(crate) fn terminate(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request and returns its id.
    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Returns the schema of what a tool answers.
    fn output_schema(&mut self, name: &str) -> Value {
        let tools = self.request("tools/list", &json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        let mut tools = tools.into_iter();
        let tool = tools.find(|tool| tool["name"] == name).unwrap();
        tool["outputSchema"].clone()
    }

    /// Calls a tool and returns its answer and whether it counts as an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (Value, bool) {
        let answer = self.request("tools/call", &json!({"name": name, "arguments": arguments}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let is_error = answer["result"]["isError"].as_bool().unwrap();
        let given: Value = serde_json::from_str(text).unwrap();
        assert_eq!(answer["result"]["structuredContent"], given);
        assert_fits(&given, &self.output_schema(name));
        (given, is_error)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Hanging up is how a client ends a server.
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

/// Checks that an answer is what its tool's schema says, as clients do.
fn assert_fits(value: &Value, schema: &Value) {
    let word = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let is_integer = word == "number" && types.contains(&json!("integer"));
    assert!(
        types.is_empty() || is_integer || types.contains(&json!(word)),
        "{value}: {schema}"
    );
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            value.get(name.as_str().unwrap()).is_some(),
            "{name}: {value}"
        );
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for (name, field) in fields {
        if let Some(properties) = schema.get("properties") {
            assert!(properties.get(name).is_some(), "{name} is not in {schema}");
            assert_fits(field, &properties[name]);
        }
    }
}

fn draft() -> Value {
    json!({
        "goal": "make the answer right", "doneCriteria": "it is 42", "askBefore": ["git push"],
        "decisionStyle": "decide", "goalType": "ticket", "surfaces": [],
        "verifyCommand": "sh test.sh", "judgeModel": {"provider": "anthropic", "modelId": "m"},
    })
}

#[test]
fn a_client_shakes_hands_lists_tools_and_hangs_up() {
    let env = Environment::new();
    let mut client = Client::new(&env);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = client.request("initialize", &hello);
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answer["result"]["serverInfo"]["name"], "kapi");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "until_done_set",
            "until_done_plan",
            "until_done_replan",
            "until_done_task_update",
            "until_done_progress",
            "until_done_complete",
            "until_done_block",
            "until_done_wait",
            "until_done_distill",
            "until_done_status",
            "background_task",
            "background_status",
            "background_cancel",
            "loop_trigger",
            "loop_status",
            "guardrail_add",
        ]
    );
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 2}}),
    );
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(
        client.request("sampling/x", &json!({}))["error"]["code"],
        -32_601
    );
}

#[test]
fn a_client_outside_of_a_run_proposes_one_goal_and_looks() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:echo 42 > answer.txt\"\n");
    let mut client = Client::new(&env);
    let (proposed, is_error) = client.call("until_done_set", &draft());
    assert_eq!(proposed["reason"], "not_confirmed", "{proposed}");
    assert!(is_error);
    let (again, _) = client.call("until_done_set", &draft());
    assert_eq!(again["reason"], "goal_exists", "{again}");
    let (status, is_error) = client.call("until_done_status", &json!({}));
    assert_eq!(status["state"]["goal"], FIRST);
    assert_eq!(status["judge"], "anthropic/m");
    assert_eq!(status["askBefore"], json!(["git push"]));
    assert!(!is_error);
    let (plan, is_error) = client.call("until_done_plan", &json!({"tasks": []}));
    assert_eq!(plan["reason"], "wrong_run", "{plan}");
    assert!(is_error);
    let (bad, _) = client.call("until_done_set", &json!({"goal": 7}));
    assert_eq!(bad["reason"], "bad_input", "{bad}");
    assert_eq!(env.json(&["status"])["goals"].as_array().unwrap().len(), 1);
}

#[test]
fn a_client_chooses_the_tools_of_one_role() {
    let env = Environment::new();
    for (group, first, n_tools) in [
        ("kernel", "background_task", 6),
        ("goal", "until_done_set", 10),
        ("all", "until_done_set", 16),
    ] {
        let mut client = Client::with(&env, &["--tools", group]);
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), n_tools, "{group}");
        assert_eq!(tools[0]["name"], first);
    }
    let refused = env.kapi(&["mcp", "--tools", "none"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

/// Proposes a goal through a client that has dialogs, and answers its question.
fn answer_proposal(client: &mut Client, ask_before: &[&str], reply: &Value) -> Value {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}});
    client.request("initialize", &hello);
    let mut draft = draft();
    draft["askBefore"] = json!(ask_before);
    draft.as_object_mut().unwrap().remove("judgeModel");
    let call = json!({"name": "until_done_set", "arguments": draft});
    let id = client.ask("tools/call", &call);
    let asked = client.receive();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let text = asked["params"]["message"].as_str().unwrap();
    for words in ["make the answer right", "sh test.sh", "hash"]
        .iter()
        .chain(ask_before)
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": reply}));
    let answer = client.receive();
    assert_eq!(answer["id"], id, "{answer}");
    answer["result"]["structuredContent"].clone()
}

#[test]
fn a_person_approves_a_proposal_in_their_clients_dialog() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:echo 42 > answer.txt\"\njudge = \"none\"\n");
    let mut client = Client::new(&env);
    let reply = json!({"action": "accept", "content": {"approve": true}});
    let answer = answer_proposal(&mut client, &[], &reply);
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["status"], "active");
    let shown = env.json(&["show", "1", "--all"]);
    assert_eq!(shown["approval"], "client", "{shown}");
    let log = env.kapi(&["log", "1"]);
    assert!(
        log.stdout.contains("in an agent client's dialog"),
        "{log:?}"
    );
}

#[test]
fn only_a_persons_own_no_ends_a_proposal() {
    let env = Environment::new();
    env.configure("[goal]\nagent = \"command:true\"\n");
    for (reply, reason, status) in [
        (json!({"action": "decline"}), "not_confirmed", "proposed"),
        (json!({"action": "accept"}), "not_confirmed", "proposed"),
        (
            json!({"action": "accept", "content": {"approve": false}}),
            "rejected",
            "cancelled",
        ),
        (json!({"action": "cancel"}), "not_confirmed", "proposed"),
    ] {
        let mut client = Client::new(&env);
        let answer = answer_proposal(&mut client, &["git push"], &reply);
        assert_eq!(answer["reason"], reason, "{answer}");
        let (shown, _) = client.call("until_done_status", &json!({}));
        assert_eq!(shown["state"]["status"], status, "{reply}");
    }
}

#[test]
fn a_client_within_a_run_speaks_for_it() {
    let env = Environment::new();
    let call = |id: u32, name: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}})
        .to_string()
    };
    let plan = json!({"tasks": [{"id": "T-1", "title": "one", "phase": "red"}]});
    let update = json!({"id": "T-1", "patch": {"status": "done"}});
    let lines = [
        call(1, "until_done_plan", plan),
        call(2, "until_done_task_update", update),
        call(3, "until_done_complete", json!({"evidence": "42"})),
    ];
    let agent = format!(
        "command:kapi mcp > answers < /dev/null; printf '%s\\n' {} | kapi mcp > answers; \
         echo 42 > answer.txt",
        lines.map(|line| format!("'{line}'")).join(" ")
    );
    let run = env.run(&agent, &[]);
    run.assert_status("done", 0);
    let answers = env.show(BRANCH, "answers");
    let errors: Vec<bool> = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|answer| answer["result"]["isError"].as_bool().unwrap())
        .collect();
    assert_eq!(errors, [false, false, false], "{answers}");
}
