//! What a client of the Agent Client Protocol says next: a state machine over messages.
//!
//! Knows no process and no clock. Whatever an agent sends is read as far as it has a meaning; what has
//! none is passed over.

use serde_json::{Value, json};

use super::PROTOCOL_VERSION;
use super::turn::{AcpAccess, AcpTurn};
use crate::json_line::text;

/// JSON-RPC: there is no such method.
const METHOD_NOT_FOUND: i64 = -32_601;
/// The ids of the requests of a turn.
const INITIALIZE: u64 = 1;
const OPEN: u64 = 2;
const PROMPT: u64 = 3;
const READY: u64 = 4;
/// A method that no agent has: its refusal comes after what the agent was about to say.
const READY_METHOD: &str = "_kapi/ready";
/// Updates that are held until the refusal comes; an agent with more does not refuse.
const HELD_MAX: usize = 1_000;

/// Asks whether a tool may run; the reason where it may not.
pub(crate) type Permission<'a> = &'a mut dyn FnMut(&Value) -> Result<(), String>;

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcpStage {
    /// The agent says what it can.
    Initializing,
    /// A session is made or loaded.
    Opening { is_resumable: bool },
    /// The agent works.
    Prompting,
    /// The turn is over.
    Over,
}

/// A turn, message by message.
#[derive(Debug)]
pub(crate) struct Conversation {
    turn: AcpTurn,
    stage: AcpStage,
    session: String,
    /// Updates after a session was loaded, until it is known whether they repeat its past: an agent may
    /// answer first and repeat it then.
    held: Option<Vec<Value>>,
}

/// What follows from a message.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reaction {
    /// What is said to the agent.
    pub(crate) send: Vec<Value>,
    /// What is printed for whoever reads the run.
    pub(crate) print: Vec<Value>,
    /// How the turn ended, once it has.
    pub(crate) over: Option<Result<(), String>>,
}

impl Conversation {
    /// Begins a turn.
    pub(crate) const fn new(turn: AcpTurn) -> Self {
        Self {
            turn,
            stage: AcpStage::Initializing,
            session: String::new(),
            held: None,
        }
    }

    /// Returns the first message.
    pub(crate) fn begin(&self) -> Value {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
            },
            "clientInfo": {"name": "kapi", "title": "Kapi", "version": env!("CARGO_PKG_VERSION")},
        });
        request(INITIALIZE, "initialize", &params)
    }

    /// Returns what asks the agent to stop; nothing where it was asked for nothing yet.
    pub(crate) fn cancel(&self) -> Option<Value> {
        let is_at_work = self.stage == AcpStage::Prompting;
        let params = json!({"sessionId": self.session});
        is_at_work.then(|| json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}))
    }

    /// Takes a message of the agent.
    pub(crate) fn take(&mut self, message: &Value, permission: Permission<'_>) -> Reaction {
        let method = text(message, "/method");
        let id = message.get("id").filter(|id| !id.is_null());
        match (method, id) {
            ("session/request_permission", Some(id)) => self.permit(id, message, permission),
            ("session/update", _) => self.shown(message),
            ("", Some(id)) => self.answer(id, message),
            (_, Some(id)) if !method.is_empty() => {
                let text = format!("Kapi offers no {method}: work with your own tools");
                let error = json!({"code": METHOD_NOT_FOUND, "message": text});
                let refusal = json!({"jsonrpc": "2.0", "id": id, "error": error});
                Reaction {
                    send: vec![refusal],
                    ..Reaction::default()
                }
            }
            _ => Reaction::default(),
        }
    }

    /// Prints what belongs to the turn: what a loaded session repeats does not.
    fn shown(&mut self, message: &Value) -> Reaction {
        if self.stage != AcpStage::Prompting {
            return Reaction::default();
        }
        let print = match &mut self.held {
            None => vec![message.clone()],
            Some(held) => {
                held.push(message.clone());
                let is_of_turn = held.len() > HELD_MAX;
                if is_of_turn {
                    self.release()
                } else {
                    Vec::new()
                }
            }
        };
        Reaction {
            print,
            ..Reaction::default()
        }
    }

    /// Returns the updates that were held: the agent is at work, and they are of the turn.
    fn release(&mut self) -> Vec<Value> {
        self.held.take().unwrap_or_default()
    }

    fn permit(&mut self, id: &Value, message: &Value, permission: Permission<'_>) -> Reaction {
        let call = message.pointer("/params/toolCall").unwrap_or(&Value::Null);
        let options = message.pointer("/params/options").and_then(Value::as_array);
        let options = options.map_or(&[][..], Vec::as_slice);
        let is_looking = matches!(text(call, "/kind"), "read" | "search" | "think");
        let asked = match self.turn.access {
            AcpAccess::Look if !is_looking => Err("only looking is allowed here".to_owned()),
            AcpAccess::Look | AcpAccess::Work => permission(call),
        };
        let kinds = match asked {
            Ok(()) => ["allow_once", "allow_always"],
            Err(_) => ["reject_once", "reject_always"],
        };
        let chosen = kinds.iter().find_map(|kind| {
            let found = options.iter().find(|option| text(option, "/kind") == *kind);
            found.and_then(|option| option.get("optionId"))
        });
        let outcome = match chosen {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        let mut print = self.release();
        print.push(message.clone());
        if let Err(reason) = asked {
            print.push(json!({"type": "acp_refused", "title": text(call, "/title"),
                "reason": reason}));
        }
        Reaction {
            send: vec![json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})],
            print,
            over: None,
        }
    }

    fn answer(&mut self, id: &Value, message: &Value) -> Reaction {
        let is_due = |number: u64| id.as_u64() == Some(number);
        let error = message.get("error").map(|error| {
            let detail = error.pointer("/data/details").or_else(|| error.get("data"));
            let detail = detail.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            let said = text(error, "/message");
            detail.map_or_else(|| said.to_owned(), |detail| format!("{said}: {detail}"))
        });
        let result = message.get("result").unwrap_or(&Value::Null);
        match (self.stage, error) {
            (AcpStage::Initializing, Some(error)) if is_due(INITIALIZE) => {
                self.fail(format!("the agent refused to begin: {error}"))
            }
            (AcpStage::Initializing, None) if is_due(INITIALIZE) => self.open(result),
            (AcpStage::Opening { .. }, Some(error)) if is_due(OPEN) => self.not_opened(&error),
            (AcpStage::Opening { is_resumable }, None) if is_due(OPEN) => {
                self.prompt(result, is_resumable)
            }
            (AcpStage::Prompting, _) if is_due(READY) => {
                self.held = None;
                Reaction::default()
            }
            (AcpStage::Prompting, _) if is_due(PROMPT) => {
                self.stage = AcpStage::Over;
                let mut print = self.release();
                print.push(message.clone());
                Reaction {
                    print,
                    over: Some(Ok(())),
                    ..Reaction::default()
                }
            }
            _ => Reaction::default(),
        }
    }

    fn open(&mut self, result: &Value) -> Reaction {
        let version = result.get("protocolVersion").and_then(Value::as_u64);
        if version != Some(PROTOCOL_VERSION) {
            let spoken = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            return self.fail(format!(
                "the agent speaks version {spoken} of the Agent Client Protocol, Kapi speaks \
                 {PROTOCOL_VERSION}"
            ));
        }
        let offered = result.pointer("/agentCapabilities/loadSession");
        let is_resumable = offered.and_then(Value::as_bool).unwrap_or(false);
        let mut params = json!({"cwd": self.turn.workspace, "mcpServers": self.servers()});
        self.stage = AcpStage::Opening { is_resumable };
        let method = match self.turn.session.clone().filter(|_| is_resumable) {
            Some(session) => {
                params["sessionId"] = json!(session);
                self.session = session;
                "session/load"
            }
            None => "session/new",
        };
        say(request(OPEN, method, &params))
    }

    fn servers(&self) -> Vec<Value> {
        let tools = self.turn.tools.iter();
        let server = tools.map(|tools| {
            let env = tools.env.iter();
            let env = env.map(|(name, value)| json!({"name": name, "value": value}));
            json!({"name": tools.name, "command": tools.program, "args": tools.args,
                "env": env.collect::<Vec<Value>>()})
        });
        server.collect()
    }

    fn not_opened(&mut self, error: &str) -> Reaction {
        if self.session.is_empty() {
            return self.fail(format!("the agent opened no session: {error}"));
        }
        // The words that say: nothing was done yet, and a new session can be begun.
        self.fail(format!(
            "No session found matching {}: {error}",
            self.session
        ))
    }

    fn prompt(&mut self, result: &Value, is_resumable: bool) -> Reaction {
        let is_loaded = !self.session.is_empty();
        if !is_loaded {
            text(result, "/sessionId").clone_into(&mut self.session);
        }
        if self.session.is_empty() {
            return self.fail("the agent named no session".to_owned());
        }
        self.stage = AcpStage::Prompting;
        let params = json!({
            "sessionId": self.session,
            "prompt": [{"type": "text", "text": self.turn.prompt}],
        });
        let session = json!({"type": "acp_session", "session": self.session});
        let mut send = vec![request(PROMPT, "session/prompt", &params)];
        if is_loaded {
            self.held = Some(Vec::new());
            send.insert(0, request(READY, READY_METHOD, &json!({})));
        }
        Reaction {
            send,
            // One that cannot be loaded again is of no use to the next turn.
            print: is_resumable.then_some(session).into_iter().collect(),
            over: None,
        }
    }

    fn fail(&mut self, why: String) -> Reaction {
        self.stage = AcpStage::Over;
        Reaction {
            over: Some(Err(why)),
            ..Reaction::default()
        }
    }
}

fn say(message: Value) -> Reaction {
    Reaction {
        send: vec![message],
        ..Reaction::default()
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[cfg(test)]
mod tests;
