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
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
        command.arg("mcp").stdin(Stdio::piped());
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

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its answer and whether it counts as an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (Value, bool) {
        let answer = self.request("tools/call", &json!({"name": name, "arguments": arguments}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let is_error = answer["result"]["isError"].as_bool().unwrap();
        (serde_json::from_str(text).unwrap(), is_error)
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
