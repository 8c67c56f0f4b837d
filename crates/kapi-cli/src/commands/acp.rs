//! `kapi acp`: an editor that speaks the Agent Client Protocol works on goals.
//!
//! To the editor Kapi is an agent: a prompt is a goal, whose contract the person approves in the
//! editor. This thread hears the editor, and each prompt is followed on a thread of its own.

mod contract_question;
mod editor;
mod goal;
mod session;
mod session_report;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, Scope};

use kapi_agent::acp::PROTOCOL_VERSION;
use kapi_mcp::message::{self, IncomingMessage, RequestError};
use kapi_sys::signal::Interrupts;
use serde_json::{Value, json};

use crate::commands::acp::editor::Editor;
use crate::commands::acp::session::EditorSession;
use crate::commands::mcp::input::Input;
use crate::context::Context;
use crate::driving::interrupts;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};

/// What other processes are told about who holds a lock.
const OWNER: &str = "kapi acp";
/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// The most sessions of one editor.
const SESSIONS_MAX: usize = 64;

/// Options of `kapi acp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Options of `kapi run` for each goal, after `--`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Serves one editor until it hangs up.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("start goals from an editor")?;
    let interrupts = interrupts()?;
    let editor = Editor::on_standard_output()?;
    let context = &Context {
        ui: Ui {
            format: Format::Human,
            ..context.ui
        },
        ..context.clone()
    };
    thread::scope(|scope| {
        let mut desk = EditorDesk {
            context,
            options: &args.options,
            editor: &editor,
            interrupts: &interrupts,
            sessions: BTreeMap::new(),
        };
        let mut lines = BufReader::new(Input::new(&interrupts));
        let served = desk.serve(scope, &mut lines);
        // What is under way is interrupted, and goes on when the person says so.
        interrupts.cancel().raise();
        editor.hang_up();
        served
    })?;
    Ok(Exit::Success)
}

/// What the thread knows that hears an editor.
struct EditorDesk<'a> {
    context: &'a Context,
    options: &'a [String],
    editor: &'a Editor,
    interrupts: &'a Interrupts,
    sessions: BTreeMap<String, Arc<EditorSession>>,
}

impl<'a> EditorDesk<'a> {
    fn serve<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        lines: &mut dyn BufRead,
    ) -> Result<(), Error>
    where
        'a: 'scope,
    {
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
            let mut limited = io::Read::take(&mut *lines, limit);
            let n_read = limited.read_until(b'\n', &mut line);
            match n_read.map_err(|error| Error::failed(&error))? {
                0 => return Ok(()),
                LINE_BYTES_MAX => return Err(Error::usage("a message is longer than 16 MiB")),
                _ => self.hear(scope, &line),
            }
        }
    }

    fn hear<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, line: &[u8])
    where
        'a: 'scope,
    {
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            let error = RequestError::new(message::PARSE_ERROR, "the line is not JSON".to_owned());
            self.editor.send(&message::error(&Value::Null, &error));
            return;
        };
        match IncomingMessage::read(&value) {
            IncomingMessage::Request { id, method, params } if method == "session/prompt" => {
                self.prompt(scope, id, params);
            }
            IncomingMessage::Request { id, method, params } => {
                let answer = match self.answer(&method, &params) {
                    Ok(result) => message::result(&id, &result),
                    Err(error) => message::error(&id, &error),
                };
                self.editor.send(&answer);
            }
            IncomingMessage::Notification { method, params } if method == "session/cancel" => {
                if let Ok(session) = self.session(&params) {
                    session.cancel();
                }
            }
            IncomingMessage::Notification { .. } => {}
            IncomingMessage::Answer { id, result } => self.editor.answered(&id, result),
            IncomingMessage::Invalid { id } => {
                let text = "it is not a request of JSON-RPC 2.0".to_owned();
                let error = RequestError::new(message::INVALID_REQUEST, text);
                self.editor.send(&message::error(&id, &error));
            }
        }
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, RequestError> {
        match method {
            "initialize" => Ok(json!({
                // The only version that is spoken; an editor that speaks another one leaves.
                "protocolVersion": PROTOCOL_VERSION,
                "agentCapabilities": {
                    "loadSession": false,
                    "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                    "mcpCapabilities": {"http": false, "sse": false},
                },
                "agentInfo": {
                    "name": "kapi", "title": "Kapi", "version": env!("CARGO_PKG_VERSION"),
                },
                "authMethods": [],
            })),
            "session/new" => self.open(params),
            _ => {
                let text = format!("there is no method {method}");
                Err(RequestError::new(message::METHOD_NOT_FOUND, text))
            }
        }
    }

    fn open(&mut self, params: &Value) -> Result<Value, RequestError> {
        let invalid = |text: &str| RequestError::new(message::INVALID_PARAMS, text.to_owned());
        let cwd = params.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        let cwd = cwd.filter(|cwd| cwd.is_absolute() && cwd.is_dir());
        let cwd = cwd.ok_or_else(|| invalid("`cwd` is not the absolute path of a directory"))?;
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(invalid(
                "there are 64 sessions already; start `kapi acp` again",
            ));
        }
        let id = format!("kapi-{}", self.sessions.len() + 1);
        let session = EditorSession::new(id.clone(), cwd);
        self.sessions.insert(id.clone(), Arc::new(session));
        Ok(json!({"sessionId": id}))
    }

    fn session(&self, params: &Value) -> Result<Arc<EditorSession>, RequestError> {
        let id = params.get("sessionId").and_then(Value::as_str);
        let found = id.and_then(|id| self.sessions.get(id));
        found.cloned().ok_or_else(|| {
            let text = format!("there is no session {}", id.unwrap_or_default());
            RequestError::new(message::INVALID_PARAMS, text)
        })
    }

    fn prompt<'scope>(&self, scope: &'scope Scope<'scope, '_>, id: Value, params: Value)
    where
        'a: 'scope,
    {
        let refuse = |error: &RequestError| self.editor.send(&message::error(&id, error));
        let session = match self.session(&params) {
            Ok(session) => session,
            Err(error) => return refuse(&error),
        };
        if !session.begin() {
            let text = "the session is at work: cancel that first".to_owned();
            return refuse(&RequestError::new(message::INVALID_REQUEST, text));
        }
        let (editor, context) = (self.editor, self.context);
        let (options, interrupts) = (self.options, self.interrupts);
        scope.spawn(move || {
            let prompt = goal::EditorPrompt {
                context,
                editor,
                session: &session,
                options,
                interrupts,
            };
            let answer = prompt.follow(&params);
            session.end();
            editor.send(&message::result(&id, &answer));
        });
    }
}
