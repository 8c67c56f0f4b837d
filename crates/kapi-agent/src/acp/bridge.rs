//! The client of one ACP agent for one turn: runs as `kapi __acp-agent` inside the sandbox.
//!
//! Starts the agent, speaks with it over pipes and prints what it says, line by line. Whether a tool
//! may run is asked at the gate of the run; nothing is decided here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use kapi_sys::cancel::Cancel;
use kapi_sys::hang_up::HangUpChannel;
use kapi_sys::process::{
    OutputLine, ProcessEnd, ProcessError, ProcessLimits, Program, environment, run,
};
use kapi_sys::signal::{self, Interrupts, SignalError};
use serde_json::{Value, json};

use super::conversation::{Conversation, Reaction};
use super::turn::AcpTurn;
use super::{PROGRAM_VARIABLE, STOP_CHANNEL};
use crate::script::runner::{GateAnswer, ask_gate};

/// The largest turn in bytes.
const INPUT_BYTES_MAX: u64 = 8 << 20;
/// The longest message of an agent.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The longest an agent may run; the turn's own deadline is the harness's business.
const AGENT_DEADLINE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Bytes kept of what an agent writes to standard error.
const TAIL_BYTES_MAX: usize = 16 << 10;
/// Messages that wait to be written.
const MESSAGES_MAX: usize = 256;
/// How often is looked whether the turn was cancelled.
const LOOK: Duration = Duration::from_millis(100);
/// How long an agent may take to end after its turn, or after it was asked to stop.
const GRACE: Duration = Duration::from_secs(3);

/// Why a turn could not be taken.
#[derive(Debug, thiserror::Error)]
enum BridgeError {
    #[error("read the turn")]
    Input(#[source] io::Error),
    #[error("understand the turn")]
    Form(#[source] serde_json::Error),
    #[error("open a pipe to the agent")]
    Pipe(#[source] io::Error),
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// What the thread that writes is told.
enum Outgoing {
    /// Something to say.
    Message(Value),
    /// What to say when the turn is cancelled.
    Cancelling(Option<Value>),
}

/// Takes the turn that stands on `stdin` with its agent, in the directory `cwd`, and returns the exit
/// code: 0 where the agent answered, whatever it answered.
pub fn acp_main(stdin: &mut dyn Read, stdout: &mut dyn Write, cwd: &Path) -> i32 {
    let (code, why) = match converse(stdin, stdout, cwd) {
        Ok(Ok(())) => return 0,
        Ok(Err(BrokenTurn { code, why })) => (code, why),
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            (1, format!("failed to {error}{cause}"))
        }
    };
    // Nobody is left to tell when even this cannot be written; the code tells.
    drop(io::stderr().write_all(format!("acp: {why}\n").as_bytes()));
    code
}

/// A turn that did not come to an answer.
struct BrokenTurn {
    code: i32,
    why: String,
}

fn converse(
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    cwd: &Path,
) -> Result<Result<(), BrokenTurn>, BridgeError> {
    let mut input = Vec::new();
    let mut limited = stdin.take(INPUT_BYTES_MAX);
    limited
        .read_to_end(&mut input)
        .map_err(BridgeError::Input)?;
    let turn: AcpTurn = serde_json::from_slice(&input).map_err(BridgeError::Form)?;
    let interrupts = signal::interrupts()?;
    let stop = HangUpChannel::open(Path::new(STOP_CHANNEL));
    let (reader, writer) = io::pipe().map_err(BridgeError::Pipe)?;
    let program = agent(&turn, cwd, OwnedFd::from(reader));
    let gate = turn.gate.clone().unwrap_or_default();
    let mut heard = Hearing {
        conversation: Conversation::new(turn),
        stdout,
        cwd,
        gate,
        over: None,
    };
    let cancel = Cancel::new();
    let (sender, receiver) = sync_channel(MESSAGES_MAX);
    let (running, is_running) = sync_channel(0);
    let ended = thread::scope(|scope| {
        let agent = AgentInput {
            receiver,
            running: is_running,
            interrupts: &interrupts,
            stop,
            cancel: &cancel,
        };
        scope.spawn(move || agent.write(writer));
        let mut sender = Some(sender);
        tell(
            sender.as_ref(),
            Outgoing::Message(heard.conversation.begin()),
        );
        let ran = run(program, &cancel, &mut |line| {
            if let OutputLine::Stdout(line) = line {
                heard.line(line, &mut sender);
            }
        });
        drop((sender, running));
        ran
    })?;
    Ok(match heard.over {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(BrokenTurn { code: 1, why }),
        None => Err(broken_off(ended.end, &ended.stderr.text())),
    })
}

/// Returns the agent: its standard input is the pipe, because it is spoken to for as long as it runs.
fn agent(turn: &AcpTurn, cwd: &Path, input: OwnedFd) -> Program {
    let env = environment();
    let command = turn.command.trim();
    let (first, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    let program = env.get(OsStr::new(PROGRAM_VARIABLE));
    let first = program.map_or_else(|| first.to_owned(), |_| format!("\"${PROGRAM_VARIABLE}\""));
    let shell = format!("exec {first} {rest} <&3 3<&-");
    Program {
        path: PathBuf::from("/bin/sh"),
        args: vec![OsString::from("-c"), OsString::from(shell)],
        env,
        cwd: cwd.to_path_buf(),
        stdin: Vec::new(),
        pass_fds: vec![input],
        limits: ProcessLimits {
            deadline: AGENT_DEADLINE,
            idle: None,
            tail_bytes_max: TAIL_BYTES_MAX,
            line_bytes_max: MESSAGE_BYTES_MAX,
        },
    }
}

/// Says how an agent ended in the middle of its turn.
fn broken_off(end: ProcessEnd, stderr: &str) -> BrokenTurn {
    let (code, how) = match end {
        ProcessEnd::Exited(code) => (code.max(1), format!("exited with code {code}")),
        ProcessEnd::Signaled(signal) => {
            let code = 128_i32.saturating_add(signal);
            (code, format!("was ended by signal {signal}"))
        }
        ProcessEnd::DeadlinePassed | ProcessEnd::IdlePassed => (1, "took too long".to_owned()),
        ProcessEnd::Cancelled => (130, "was stopped".to_owned()),
    };
    let why = format!("the agent {how} before it answered\n{stderr}");
    BrokenTurn { code, why }
}

/// What hears an agent.
struct Hearing<'a> {
    conversation: Conversation,
    stdout: &'a mut dyn Write,
    cwd: &'a Path,
    gate: Vec<String>,
    over: Option<Result<(), String>>,
}

impl Hearing<'_> {
    /// Takes one line; without a sender nothing more is said, and the agent's input ends.
    fn line(&mut self, line: &[u8], sender: &mut Option<SyncSender<Outgoing>>) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        let (gate, cwd) = (&self.gate, self.cwd);
        let reaction = self
            .conversation
            .take(&message, &mut |call| allowed(cwd, gate, call));
        let Reaction { send, print, over } = reaction;
        for line in &print {
            // Whoever reads the run may have gone; the agent is ended then by whoever began it.
            drop(writeln!(self.stdout, "{line}").and_then(|()| self.stdout.flush()));
        }
        let is_any = !send.is_empty();
        for message in send {
            tell(sender.as_ref(), Outgoing::Message(message));
        }
        if is_any {
            tell(
                sender.as_ref(),
                Outgoing::Cancelling(self.conversation.cancel()),
            );
        }
        if over.is_some() {
            self.over = over;
            *sender = None;
        }
    }
}

fn tell(sender: Option<&SyncSender<Outgoing>>, outgoing: Outgoing) {
    if let Some(sender) = sender {
        // The other end is gone only when the agent is.
        sender.send(outgoing).ok();
    }
}

/// Asks whether a tool may run. Without a gate it may: the sandbox is the limit.
fn allowed(cwd: &Path, gate: &[String], call: &Value) -> Result<(), String> {
    if gate.is_empty() {
        return Ok(());
    }
    let kind = call.get("kind").and_then(Value::as_str).unwrap_or("other");
    let title = call.get("title").and_then(Value::as_str).unwrap_or(kind);
    let input = json!({
        "command": title,
        "input": call.get("rawInput"),
        "locations": call.get("locations"),
    });
    let question = json!({"tool_name": kind, "tool_input": input});
    match ask_gate(cwd, gate, &question) {
        Ok(GateAnswer::Allowed) => Ok(()),
        Ok(GateAnswer::Denied { reason }) => Err(reason),
        Err(error) => Err(format!("failed to {error}")),
    }
}

/// What an agent is told.
struct AgentInput<'a> {
    receiver: Receiver<Outgoing>,
    /// Hangs up when the agent has ended; nothing comes here.
    running: Receiver<()>,
    interrupts: &'a Interrupts,
    /// Hangs up when the turn is no longer wanted.
    stop: Option<HangUpChannel>,
    cancel: &'a Cancel,
}

impl AgentInput<'_> {
    /// Writes what is said until there is nothing more to say, then closes the agent's input; where the
    /// turn is no longer wanted asks it to stop first. An agent that does not end in time is ended.
    fn write(self, writer: PipeWriter) {
        let mut pipe = File::from(OwnedFd::from(writer));
        let mut cancelling = None;
        let mut stopped_at: Option<Instant> = None;
        loop {
            match self.receiver.recv_timeout(LOOK) {
                Ok(Outgoing::Message(message)) => write_line(&mut pipe, &message),
                Ok(Outgoing::Cancelling(message)) => cancelling = message,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stopped_at.is_none() && self.is_stopped() {
                stopped_at = Some(Instant::now());
                let asked = cancelling.take();
                asked.iter().for_each(|asked| write_line(&mut pipe, asked));
            }
            if stopped_at.is_some_and(|at| at.elapsed() > GRACE) {
                self.cancel.raise();
                return;
            }
        }
        // The end of its input tells the agent to end.
        drop(pipe);
        if self.running.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            self.cancel.raise();
        }
    }

    /// Tells whether the turn is no longer wanted.
    fn is_stopped(&self) -> bool {
        let stop = self.stop.as_ref();
        self.interrupts.is_raised() || stop.is_some_and(HangUpChannel::has_hung_up)
    }
}

fn write_line(pipe: &mut File, message: &Value) {
    // An agent that reads no more is seen where it is heard: it says nothing more either.
    drop(writeln!(pipe, "{message}").and_then(|()| pipe.flush()));
}
