//! The real Pi in its RPC mode, with or without the package, asking a scripted model: what a person
//! types, what they are shown, and how they answer dialogs.
//!
//! Knows Pi's protocol; what should happen is each test's affair.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use kapi_testkit::agent_tools::{AgentTools, Cli, Edition, path_with};
use serde_json::{Value, json};

use crate::environment::{Environment, PATIENCE, write};

/// Which Pi is started: where one is stands here and nowhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PiVersion {
    /// The one that the package is written against.
    #[default]
    Pinned,
    /// The more recent one of the two that are pinned.
    Recent,
}

impl PiVersion {
    /// Returns its program, and the folder that has to come first in its `PATH`.
    pub(crate) fn program(self) -> (PathBuf, Option<PathBuf>) {
        let checkout = checkout();
        let tools = match self {
            Self::Pinned => AgentTools::ensure(&checkout, &[Cli::Pi]),
            Self::Recent => AgentTools::ensure_edition(&checkout, Cli::Pi, Edition::Recent),
        };
        let tools = tools.expect("pi can be installed");
        let program = tools.binary(Cli::Pi).unwrap().to_path_buf();
        (program, tools.path_first().map(Path::to_path_buf))
    }
}

/// How a Pi is started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options<'a> {
    /// Which it is.
    pub(crate) version: PiVersion,
    /// Where its model is.
    pub(crate) base_url: String,
    /// Whether the package is loaded.
    pub(crate) is_bare: bool,
    /// Further words of its command line.
    pub(crate) args: &'a [&'a str],
    /// Variables beside those of the machine.
    pub(crate) vars: &'a [(&'a str, &'a str)],
}

/// What keeps a Pi off the network.
pub(crate) const QUIET: [(&str, &str); 3] = [
    ("PI_OFFLINE", "1"),
    ("PI_TELEMETRY", "0"),
    ("PI_SKIP_VERSION_CHECK", "1"),
];

/// A Pi that runs.
pub(crate) struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What was read and not yet waited for.
    ahead: VecDeque<Value>,
    /// Everything that was read, for messages of failed tests.
    seen: Vec<Value>,
}

/// Returns the checkout.
pub(crate) fn checkout() -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    checkout.canonicalize().unwrap()
}

/// Returns the package.
pub(crate) fn package() -> PathBuf {
    checkout().join("extensions/pi-kapi")
}

/// The key of the provider whose model works, and that of another one whose model can judge.
pub(crate) const OWN_KEY: &str = "sk-pi";
pub(crate) const OTHER_KEY: &str = "sk-of-another-provider";

/// Writes down for a machine's Pi where its models are: `scripted/scripted`, and `other/judge`.
pub(crate) fn configure(env: &Environment, base_url: &str) {
    let provider = |key: &str, model: &str| {
        json!({
            "baseUrl": format!("{}/v1", base_url), "api": "openai-completions",
            "apiKey": key,
            "compat": { "supportsDeveloperRole": false, "supportsReasoningEffort": false },
            "models": [{
                "id": model, "contextWindow": 128_000, "maxTokens": 8192,
                "cost": { "input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0 },
            }],
        })
    };
    let models = json!({ "providers": {
        "scripted": provider(OWN_KEY, "scripted"),
        "other": provider(OTHER_KEY, "judge"),
    } });
    let file = env.home().join(".pi/agent/models.json");
    write(&file, models.to_string());
}

/// Returns a Pi in the repository of a machine, not yet started.
pub(crate) fn pi(env: &Environment, options: &Options<'_>) -> Command {
    let (pi, first) = options.version.program();
    configure(env, &options.base_url);
    let mut command = env.command(pi.to_str().unwrap(), &env.repository());
    command.args(["--provider", "scripted", "--model", "scripted"]);
    if !options.is_bare {
        command.arg("-e").arg(package());
    }
    command.args(options.args);
    command.env_remove("KAPI_SESSION");
    if let Some(first) = first {
        command.env("PATH", path_with(&first));
    }
    command.envs(QUIET);
    command.env("KAPI_BIN", env!("CARGO_BIN_EXE_kapi"));
    command.envs(options.vars.iter().copied());
    command
}

impl Host {
    /// Starts a Pi in the repository of a machine.
    pub(crate) fn start(env: &Environment, options: &Options<'_>) -> Self {
        let mut command = pi(env, options);
        command.args(["--mode", "rpc"]);
        command.stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Self {
            child,
            input,
            lines,
            ahead: VecDeque::new(),
            seen: Vec::new(),
        }
    }

    /// Sends a line.
    pub(crate) fn send(&mut self, value: &Value) {
        self.send_line(&value.to_string());
    }

    /// Sends a line as it is, which may say what no text of ours can.
    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Waits for a line, and passes over those before it.
    pub(crate) fn wait(&mut self, what: &str, is_it: &dyn Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let line = self.ahead.pop_front().unwrap_or_else(|| {
                let left = end.saturating_duration_since(Instant::now());
                let line = self.lines.recv_timeout(left);
                line.unwrap_or_else(|error| panic!("{what}: {error}\n{}", self.scenario()))
            });
            if line["type"] != "message_update" {
                self.seen.push(line.clone());
            }
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Returns what was read last, and what Pi said beside it.
    fn scenario(&mut self) -> String {
        drop(self.input.take());
        // It ends with its input; what it said is whole then.
        drop(self.child.kill());
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            drop(stderr.read_to_string(&mut said));
        }
        let lines = self.seen.iter().rev().take(25).rev();
        let lines: Vec<String> = lines
            .map(|line| line.to_string().chars().take(600).collect())
            .collect();
        format!("{}\n{said}", lines.join("\n"))
    }

    /// Asks Pi itself something.
    pub(crate) fn ask(&mut self, command: &Value) -> Value {
        let kind = command["type"].clone();
        self.send(command);
        let response = self.wait(&kind.to_string(), &|line| {
            line["type"] == "response" && line["command"] == kind
        });
        assert_eq!(response["success"], true, "{response:#}");
        response["data"].clone()
    }

    /// Types a command of the package.
    pub(crate) fn command(&mut self, text: &str) {
        assert!(text.starts_with('/'), "{text}");
        self.send(&json!({ "type": "prompt", "message": text }));
    }

    /// Types something for the model and waits for the end of its turn.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.send(&json!({ "type": "prompt", "message": text }));
        self.wait("the end of the turn", &|line| line["type"] == "agent_end");
    }

    /// Waits for a dialog or a notification.
    pub(crate) fn shown(&mut self, method: &str) -> Value {
        self.wait(method, &|line| {
            line["type"] == "extension_ui_request" && line["method"] == method
        })
    }

    /// Waits for a notification that holds a text.
    pub(crate) fn reported(&mut self, text: &str) -> String {
        let reported = self.wait(text, &|line| {
            let message = line["message"].as_str().unwrap_or_default();
            line["method"] == "notify" && message.contains(text)
        });
        reported["message"].as_str().unwrap().to_owned()
    }

    /// Returns what stands in the widget, after what was waited for last.
    pub(crate) fn widget(&self) -> Vec<&str> {
        let mut seen = self.seen.iter().rev();
        let last = seen.find(|line| line["method"] == "setWidget");
        let lines = last.and_then(|widget| widget["widgetLines"].as_array());
        lines
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Waits for a choice and takes the option that begins with a text.
    pub(crate) fn choose(&mut self, option: &str) -> Value {
        let dialog = self.shown("select");
        let options = dialog["options"].as_array().unwrap().iter();
        let mut texts = options.filter_map(Value::as_str);
        let Some(text) = texts.find(|text| text.starts_with(option)) else {
            panic!("{option:?} is no option: {dialog:#}")
        };
        self.reply(&dialog, "value", &json!(text));
        dialog
    }

    /// Waits for an editor and puts a text in it; what it showed is returned.
    pub(crate) fn type_text(&mut self, text: &str) -> Value {
        let dialog = self.shown("editor");
        self.reply(&dialog, "value", &json!(text));
        dialog
    }

    /// Waits for a question with yes and no.
    pub(crate) fn confirm(&mut self, is_yes: bool) -> Value {
        let dialog = self.shown("confirm");
        self.reply(&dialog, "confirmed", &json!(is_yes));
        dialog
    }

    /// Waits for a dialog and leaves it, as Esc does.
    pub(crate) fn escape(&mut self, method: &str) -> Value {
        let dialog = self.shown(method);
        self.reply(&dialog, "cancelled", &json!(true));
        dialog
    }

    fn reply(&mut self, dialog: &Value, key: &str, value: &Value) {
        let mut response = json!({ "type": "extension_ui_response", "id": dialog["id"] });
        response[key] = value.clone();
        self.send(&response);
    }

    /// Returns Pi's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the name and the file of the session.
    pub(crate) fn session(&mut self) -> (String, String) {
        let state = self.ask(&json!({ "type": "get_state" }));
        let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
        (text("sessionId"), text("sessionFile"))
    }

    /// Ends it as a person does, and checks that no extension failed.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter());
        assert!(status.success(), "{status}: {}", self.scenario());
        let failed = self
            .seen
            .iter()
            .find(|line| line["type"] == "extension_error");
        assert_eq!(failed, None);
    }
}

/// Reads lines on a thread of its own, until nobody wants them.
fn read_lines(output: ChildStdout) -> Receiver<Value> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let values = lines.map(|line| serde_json::from_str(&line).unwrap_or(Value::String(line)));
        // Whoever waited has gone when a test is over.
        values.map_while(|value| sender.send(value).ok()).count()
    });
    lines
}

impl Drop for Host {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind; one that passed has nothing left.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
