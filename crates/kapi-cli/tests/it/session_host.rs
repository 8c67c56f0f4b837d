//! A host of `kapi rpc` without a model: a test says what the person types, what the model does, and
//! how a judge answers.
//!
//! Knows the messages; what should come of them is each test's affair.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::environment::{Environment, TASK};
use crate::program::parse;

/// The model of the host's that judges.
const JUDGE: &str = "other/judge";
/// What stands before and behind the token of a judge's question.
const TOKEN: (&str, &str) = ("The token of this question is `", "`");

/// How long an answer may take at all: proving thousands of files takes its time on a busy machine.
const BACKSTOP: Duration = Duration::from_secs(240);

/// A session.
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What was heard and not yet waited for.
    ahead: VecDeque<Value>,
    calls: u64,
    /// What the judge was asked.
    pub(crate) judged: Vec<String>,
    /// What happens while it thinks.
    pub(crate) while_judged: Option<Box<dyn FnMut()>>,
}

/// What a goal does once the model has come to rest.
#[derive(Debug)]
pub(crate) enum Next {
    /// The model takes another turn, which begins with this.
    Turn(String),
    /// It goes no further by itself.
    Rest(Value),
}

impl Session {
    /// Begins a session in a directory.
    pub(crate) fn start(env: &Environment, dir: &Path) -> Self {
        let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), dir);
        command.arg("rpc").stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut session = Self {
            lines: read_lines(child.stdout.take().unwrap()),
            input: child.stdin.take(),
            child,
            ahead: VecDeque::new(),
            calls: 0,
            judged: Vec::new(),
            while_judged: None,
        };
        let hello = session.call("hello", json!({"v": 2, "ui": true}));
        assert!(hello["tools"].is_array(), "{hello}");
        let models = json!({"names": [JUDGE, "own/model"], "own": "own/model"});
        session.call("models", models);
        session
    }

    /// Asks for something that is granted.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for something and returns the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            call["params"] = params;
        }
        self.send(&call);
        self.wait(method, &|line| line["id"] == id)
    }

    /// Types something behind `/until-done`.
    pub(crate) fn types(&mut self, line: &str) -> Value {
        self.ask("slash", json!({ "line": line }))
    }

    /// Waits for something that is told unasked.
    pub(crate) fn notice(&mut self, method: &str) -> Value {
        let notice = self.wait(method, &|line| line["method"] == method);
        notice["params"].clone()
    }

    /// Calls a tool of Kapi's as the model, after the gate let it.
    pub(crate) fn tool(&mut self, name: &str, input: &Value) -> Value {
        let used = json!({"tool": name, "input": input});
        let permission = self.call("tool_call", used.clone());
        assert_eq!(permission["refused"], Value::Null, "{permission}");
        self.call("tool", used)
    }

    /// Says that the model begins.
    pub(crate) fn begins(&mut self) {
        self.call("run_started", Value::Null);
    }

    /// Says that the model has come to rest.
    pub(crate) fn ends(&mut self) {
        let end = json!({
            "outcome": "finished", "message": "So it is.", "input_tokens": 10, "output_tokens": 2,
        });
        self.call("run_ended", end);
    }

    /// Sets the usual goal up, has its contract approved, and waits for the first turn. Returns what
    /// the person was shown.
    pub(crate) fn set_up(&mut self, terms: &Value) -> String {
        let begun = self.types(TASK);
        assert!(begun.get("error").is_none(), "{begun}");
        let drafting = self.notice("turn");
        assert!(drafting["message"].as_str().unwrap().starts_with("Draft"));
        self.begins();
        let mut contract = json!({
            "goal": TASK, "doneCriteria": "sh test.sh exits 0", "askBefore": [],
            "decisionStyle": "the simplest way", "goalType": "ticket", "surfaces": [],
            "verifyCommand": "sh test.sh",
            "judgeModel": {"provider": "other", "modelId": "judge"},
        });
        for (key, value) in terms.as_object().unwrap() {
            contract[key] = value.clone();
        }
        self.tool("until_done_set", &contract);
        self.ends();
        let dialog = self.notice("dialog");
        assert_eq!(dialog["title"], "Approve this contract and start?");
        self.call("answer", json!({"dialog": dialog["id"], "choice": 0}));
        self.notice("turn");
        dialog["message"].as_str().unwrap().to_owned()
    }

    /// Takes a turn that uses the shell, does this and claims the goal; returns what follows.
    pub(crate) fn claims(&mut self, work: impl FnOnce(&mut Self)) -> Next {
        self.begins();
        let shell = json!({"tool": "bash", "input": {"command": "sh test.sh"}});
        let permission = self.call("tool_call", shell);
        assert_eq!(permission["refused"], Value::Null, "{permission}");
        work(self);
        let claim = json!({"evidence": "it printed: the answer is right"});
        self.tool("until_done_complete", &claim);
        self.ends();
        self.next()
    }

    /// Waits for what follows the end of a turn.
    pub(crate) fn next(&mut self) -> Next {
        let is_next = |line: &Value| line["method"] == "turn" || line["method"] == "rest";
        let notice = self.wait("what follows", &is_next);
        let params = notice["params"].clone();
        if notice["method"] == "rest" {
            return Next::Rest(params);
        }
        Next::Turn(params["message"].as_str().unwrap().to_owned())
    }

    /// Ends the turn after the proof, and returns what the person is told.
    pub(crate) fn rests(&mut self, next: Next) -> Value {
        match next {
            Next::Rest(rest) => rest,
            Next::Turn(message) => {
                assert!(message.contains("The goal is done"), "{message}");
                self.begins();
                self.ends();
                self.notice("rest")
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn wait(&mut self, what: &str, is_it: &dyn Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.ahead.iter().position(is_it) {
            return self.ahead.remove(at).unwrap();
        }
        let end = Instant::now() + BACKSTOP;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{what}: {error}: {:#?}", self.ahead));
            if line["method"] == "ask_model" {
                self.judges(&line["params"]);
            } else if is_it(&line) {
                return line;
            } else {
                self.ahead.push_back(line);
            }
        }
    }

    /// Answers a judge's question: it is done.
    fn judges(&mut self, question: &Value) {
        let text = format!("{}\n{}", question["system"], question["user"]);
        let token = text.split_once(TOKEN.0).unwrap().1;
        let token = token.split_once(TOKEN.1).unwrap().0;
        let verdict = json!({"verdict": "done", "reason": "it says 42", "token": token});
        self.judged.push(text.clone());
        if let Some(meanwhile) = &mut self.while_judged {
            meanwhile();
        }
        self.calls += 1;
        let answer = json!({
            "question": question["id"], "text": verdict.to_string(), "failure": null, "usage": null,
        });
        let call = json!({
            "jsonrpc": "2.0", "id": self.calls, "method": "model_answered", "params": answer,
        });
        self.send(&call);
    }

    /// Hangs up.
    pub(crate) fn hangs_up(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn read_lines(output: ChildStdout) -> Receiver<Value> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let read = BufReader::new(output).lines().map_while(Result::ok);
        let values = read.map(|line| parse(&line));
        // Whoever waited has gone when a test is over.
        values.map_while(|value| sender.send(value).ok()).count()
    });
    lines
}

impl Drop for Session {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind; one that passed has nothing left.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
