//! `kapi acp`: an editor that speaks the Agent Client Protocol, with a real goal behind it.
//!
//! The editor is this test: it writes and reads lines, and answers what its person is asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST};
use crate::program::parse;

const TASK: &str = "make the answer right";

/// An editor with one session.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Everything that was told of the session.
    updates: Vec<Value>,
    n_sent: u64,
}

impl Editor {
    fn start(env: &Environment, options: &[&str]) -> Self {
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
        command.args(["acp", "--"]).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut editor = Self {
            child,
            input,
            output: BufReader::new(output),
            updates: Vec::new(),
            n_sent: 0,
        };
        let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let begun = editor.ask("initialize", &params);
        assert_eq!(begun["result"]["protocolVersion"], 1, "{begun}");
        assert_eq!(begun["result"]["agentInfo"]["name"], "kapi");
        editor
    }

    fn open(&mut self, env: &Environment) -> String {
        let params = json!({"cwd": env.repository(), "mcpServers": []});
        let opened = self.ask("session/new", &params);
        opened["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        let n_read = self.output.read_line(&mut line).unwrap();
        assert_ne!(n_read, 0, "kapi hung up: {:#?}", self.updates);
        parse(line.trim_end())
    }

    /// Sends a request and returns its id.
    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.n_sent += 1;
        let id = self.n_sent;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Reads until the answer to a request or a request of Kapi's comes.
    fn await_message(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id || message["method"] == "session/request_permission" {
                return message;
            }
            assert_eq!(message["method"], "session/update", "{message}");
            self.updates.push(message["params"]["update"].clone());
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.await_message(id)
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Answers a question with the option of this kind.
    fn choose(&mut self, question: &Value, kind: &str) {
        let options = question["params"]["options"].as_array().unwrap();
        let chosen = options
            .iter()
            .find(|option| option["kind"] == kind)
            .unwrap();
        let outcome = json!({"outcome": "selected", "optionId": chosen["optionId"]});
        let id = &question["id"];
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }

    /// Returns everything that was said.
    fn said(&self) -> String {
        let said = self.updates.iter();
        let said = said.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Hangs up and returns the exit code.
    fn leave(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // One that has left is gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_prompt_is_a_goal_that_is_approved_followed_and_proved() {
    let env = Environment::new();
    let agent = env.script(
        "agent.yaml",
        "turns:\n  - steps:\n      - say: I write it.\n      - bash: echo 42 > answer.txt\n",
    );
    let options = [
        "--agent",
        &agent,
        "--verify",
        "sh test.sh",
        "--judge",
        "none",
    ];
    let mut editor = Editor::start(&env, &options);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, TASK);
    let question = editor.await_message(prompted);
    assert_eq!(
        question["method"], "session/request_permission",
        "{question}"
    );
    let contract = question["params"]["toolCall"].to_string();
    assert!(
        contract.contains(TASK) && contract.contains("sh test.sh"),
        "{contract}"
    );
    assert_eq!(
        env.json(&["show", "1"])["status"],
        "proposed",
        "nothing runs before"
    );
    editor.choose(&question, "allow_once");
    let ended = editor.await_message(prompted);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    let result = &ended["result"]["_meta"]["kapi"];
    assert_eq!(
        (&result["status"], &result["id"]),
        (&json!("done"), &json!(FIRST))
    );
    assert_eq!(result["commit"], env.commit_of(BRANCH));
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
    let said = editor.said();
    for words in ["I write it.", "sh test.sh -> exit 0", "git merge"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    let calls: Vec<&Value> = editor
        .updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call")
        .collect();
    let is_call = |kind: &str, title: &str| {
        let mut calls = calls.iter();
        calls.any(|call| call["kind"] == kind && call["title"].as_str().unwrap().contains(title))
    };
    assert!(is_call("execute", "echo 42 > answer.txt"), "{calls:#?}");
    assert!(is_call("execute", "verify: sh test.sh"), "{calls:#?}");
    // How it was approved is on record.
    let events = env.events(FIRST);
    let approved = events
        .iter()
        .find(|event| event["type"] == "contract_approved");
    assert_eq!(approved.unwrap()["data"]["means"], "client");
    assert_eq!(editor.leave(), 0);
}

#[test]
fn a_contract_that_is_not_approved_starts_nothing() {
    let env = Environment::new();
    let options = [
        "--agent",
        "command:touch ran",
        "--verify",
        "sh test.sh",
        "--judge",
        "none",
    ];
    let mut editor = Editor::start(&env, &options);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, TASK);
    let question = editor.await_message(prompted);
    editor.choose(&question, "reject_once");
    let ended = editor.await_message(prompted);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    assert_eq!(env.json(&["show", "1"])["status"], "cancelled");
    let events = env.events(FIRST);
    assert!(
        !events
            .iter()
            .any(|event| event["type"] == "effect_intended"),
        "{events:#?}"
    );
}

#[test]
fn a_cancelled_prompt_pauses_the_goal_and_the_next_one_goes_on_with_it() {
    let env = Environment::new();
    let agent = "command:if [ -e ../second ]; then cat > /dev/null; fi; \
                 if grep -q 'say it is 42' \"$KAPI_PROMPT_FILE\"; then echo 42 > answer.txt; \
                 else echo waiting; sleep 3600; fi";
    let options = [
        "--agent",
        agent,
        "--verify",
        "sh test.sh",
        "--judge",
        "none",
    ];
    let mut editor = Editor::start(&env, &options);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, TASK);
    let question = editor.await_message(prompted);
    editor.choose(&question, "allow_once");
    while !editor.said().contains("waiting") {
        let message = editor.read();
        editor.updates.push(message["params"]["update"].clone());
    }
    let busy = editor.prompt(&session, "and now?");
    let refused = editor.await_message(busy);
    assert!(
        refused["error"]["message"].to_string().contains("at work"),
        "{refused}"
    );
    let params = json!({"sessionId": session});
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    let ended = editor.await_message(prompted);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    assert_eq!(env.json(&["show", "1"])["status"], "paused");
    let prompted = editor.prompt(&session, "say it is 42");
    let ended = editor.await_message(prompted);
    let result = &ended["result"]["_meta"]["kapi"];
    assert_eq!(
        (&result["status"], &result["id"]),
        (&json!("done"), &json!(FIRST)),
        "{ended}"
    );
    // What ended is not taken up again: the next prompt is a goal of its own.
    let prompted = editor.prompt(&session, "another thing");
    let question = editor.await_message(prompted);
    assert!(
        question["params"]["toolCall"]
            .to_string()
            .contains("another thing")
    );
    assert_eq!(
        editor.leave(),
        0,
        "an open question is given up with its editor"
    );
    assert_eq!(env.json(&["show", "2"])["status"], "cancelled");
}

#[test]
fn an_editor_that_hangs_up_leaves_its_goal_paused_and_resume_takes_it_up() {
    let env = Environment::new();
    let agent = "command:if [ -e started.txt ]; then rm started.txt; echo 42 > answer.txt; \
                 else touch started.txt; echo waiting; sleep 3600; fi";
    let options = [
        "--agent",
        agent,
        "--verify",
        "sh test.sh",
        "--judge",
        "none",
    ];
    let mut editor = Editor::start(&env, &options);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, TASK);
    let question = editor.await_message(prompted);
    editor.choose(&question, "allow_once");
    while !editor.said().contains("waiting") {
        let message = editor.read();
        editor.updates.push(message["params"]["update"].clone());
    }
    assert_eq!(editor.leave(), 0);
    env.await_no_process();
    assert_eq!(env.json(&["show", "1"])["status"], "paused");
    let mut editor = Editor::start(&env, &options);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, "/resume 1");
    let ended = editor.await_message(prompted);
    assert_eq!(
        ended["result"]["_meta"]["kapi"]["status"], "done",
        "{ended}"
    );
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let env = Environment::new();
    let mut editor = Editor::start(&env, &["--agent", "command:true", "--no-such-option"]);
    let session = editor.open(&env);
    let prompted = editor.prompt(&session, TASK);
    let ended = editor.await_message(prompted);
    assert_eq!(ended["result"]["_meta"]["kapi"]["code"], "usage", "{ended}");
    assert!(
        editor.said().contains("--no-such-option"),
        "{}",
        editor.said()
    );
    // What is no request of the protocol disturbs nothing.
    let params = json!({"sessionId": "nobody", "prompt": []});
    assert_eq!(
        editor.ask("session/prompt", &params)["error"]["code"],
        -32602
    );
    assert_eq!(editor.ask("session/load", &params)["error"]["code"], -32601);
    let relative = json!({"cwd": "here", "mcpServers": []});
    assert_eq!(
        editor.ask("session/new", &relative)["error"]["code"],
        -32602
    );
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    editor.send(&json!([1, 2]));
    assert_eq!(editor.read()["error"]["code"], -32600);
    assert_eq!(editor.leave(), 0);
}
