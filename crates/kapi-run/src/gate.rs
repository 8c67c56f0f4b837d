//! The host's end of an agent's permission hook: may this tool run, or is a person asked first?
//!
//! One question in, one answer out, a connection each, on a socket that only one run's sandbox is
//! shown. Whatever cannot be read, decided or recorded is denied. What falls under a contract's list
//! is the core's business, and what was allowed stands in the goal.

pub mod client;
pub mod person;
pub mod support;

mod mounts;

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kapi_agent::agent::AgentKind;
use kapi_agent::hook::gate::{QUESTION_BYTES_MAX, ToolQuestion, question};
use kapi_agent::stream::score;
use kapi_core::consent_rule::matches;
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_gateway::serve::StopSignal;

use crate::gate::client::{ALLOW, DENY};
use crate::run_service::RunService;
use crate::run_socket::RunSocket;

/// How long one question may take to arrive.
const QUESTION_TIME: Duration = Duration::from_secs(10);
/// How long one answer may take to be taken.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Refused commands of one run that are recorded: a log does not grow without end.
const RECORDED_MAX: usize = 100;

/// Whose list is asked about.
#[derive(Clone, Copy)]
pub enum GateRules<'a> {
    /// Whatever the run's service says at each question; what is refused is recorded.
    Service(&'a dyn RunService),
    /// A list that nobody is asked about and nothing is recorded of.
    Fixed(&'a [String]),
}

/// Where a gate is opened.
#[derive(Debug, Clone, Copy)]
pub struct GateSite<'a> {
    /// The isolation of the agent.
    pub level: SandboxLevel,
    /// The workspace, whose own settings may outrank the hooks.
    pub workspace: &'a Path,
    /// The directory for the socket, which is made anew.
    pub directory: &'a Path,
    /// The program that asks.
    pub self_exe: &'a Path,
}

/// A run's gate; when it is dropped, nobody listens there any more.
pub struct PermissionGate<'a> {
    rules: GateRules<'a>,
    run_socket: RunSocket,
    /// The program that asks and the socket, as the agent sees them.
    program: PathBuf,
    socket: PathBuf,
    /// What was recorded in this run, and which entries a person refused in it.
    recorded: Mutex<BTreeSet<(String, String)>>,
    said_no: Mutex<BTreeSet<String>>,
    refused_score: AtomicU32,
    n_refused: AtomicU32,
}

impl<'a> PermissionGate<'a> {
    /// Opens a gate; `None` where nothing is asked about.
    pub fn open(
        rules: GateRules<'a>,
        kind: &AgentKind,
        site: &GateSite<'_>,
    ) -> Result<Option<Self>, Failure> {
        let is_empty = match rules {
            GateRules::Service(service) => service.asks_nothing()?,
            GateRules::Fixed(list) => list.is_empty(),
        };
        if is_empty {
            return Ok(None);
        }
        support::check(kind, &["any".to_owned()])?;
        support::check_settings(kind, site.level, site.workspace)?;
        let run_socket = RunSocket::open("gate", site.level, site.directory, site.self_exe)?;
        Ok(Some(Self {
            rules,
            program: run_socket.program(),
            socket: run_socket.socket(),
            run_socket,
            recorded: Mutex::new(BTreeSet::new()),
            said_no: Mutex::new(BTreeSet::new()),
            refused_score: AtomicU32::new(0),
            n_refused: AtomicU32::new(0),
        }))
    }

    /// Returns a run's score without the tools that did not run. Where the agent's tools are not
    /// scored, one that did nothing else did nothing.
    pub fn without_refused(&self, score: Option<u32>, n_tools: u32) -> Option<u32> {
        let refused = self.refused_score.load(Ordering::SeqCst);
        let n_refused = self.n_refused.load(Ordering::SeqCst);
        let did_nothing = n_refused > 0 && n_refused >= n_tools;
        match score {
            Some(score) => Some(score.saturating_sub(refused)),
            None => did_nothing.then_some(0),
        }
    }

    /// Answers questions until the run is over.
    pub fn serve(&self, stop: &StopSignal) {
        // Where nobody listens any more, the hook denies.
        self.run_socket
            .serve(stop, &|stream| self.attend(stream, stop));
    }

    fn attend(&self, stream: &UnixStream, stop: &StopSignal) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        let payload = read_to_end(stream)?;
        let refused = match question(&payload) {
            Some(question) => self.refusal(&question, stop),
            None => Some("Kapi could not read the tool call.".to_owned()),
        };
        let answer = match refused {
            None => format!("{ALLOW}\n"),
            Some(reason) => format!("{DENY}\n{reason}\n"),
        };
        let mut stream = stream;
        stream.write_all(answer.as_bytes())
    }

    /// Returns why a tool may not run, if it may not.
    fn refusal(&self, question: &ToolQuestion, stop: &StopSignal) -> Option<String> {
        let refused = match self.rules {
            GateRules::Service(service) => self.refusal_by(service, question, stop),
            GateRules::Fixed(list) => {
                let entry = matches(list, &question.tool, &question.fields);
                entry.map(|entry| {
                    format!("{entry:?} is not allowed here: do not try it in another way.")
                })
            }
        };
        if refused.is_some() {
            let score = score::of_tool(&question.tool);
            self.refused_score.fetch_add(score, Ordering::SeqCst);
            self.n_refused.fetch_add(1, Ordering::SeqCst);
        }
        refused
    }

    fn refusal_by(
        &self,
        service: &dyn RunService,
        question: &ToolQuestion,
        stop: &StopSignal,
    ) -> Option<String> {
        let list = match service.ask_before() {
            Ok(list) => list,
            Err(failure) => return Some(format!("Kapi failed to {}.", failure.message)),
        };
        let entry = matches(&list, &question.tool, &question.fields)?;
        if self.said_no().contains(entry) {
            return Some(user_denied(entry));
        }
        if let Some(person) = service.person() {
            let text = format!(
                "The agent wants to run: {}\nAllow {entry:?} for this goal?",
                question.shown
            );
            if (person.ask)(&text, &|| stop.is_raised()) {
                return service.allow(person, entry).err();
            }
            self.said_no().insert(entry.to_owned());
            self.record(service, entry, &question.shown);
            return Some(user_denied(entry));
        }
        self.record(service, entry, &question.shown);
        Some(service.needs_person(entry))
    }

    fn said_no(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.said_no.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a refused command once. What cannot be recorded is refused all the same.
    fn record(&self, service: &dyn RunService, entry: &str, shown: &str) {
        let key = (entry.to_owned(), shown.to_owned());
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.len() >= RECORDED_MAX || recorded.contains(&key) {
            return;
        }
        // One that was not recorded is tried again at the next question.
        if service.record_refused(entry, shown) {
            recorded.insert(key);
        }
    }
}

fn user_denied(entry: &str) -> String {
    format!("user denied {entry:?}: do not try it in another way; continue with something else.")
}

/// Reads a question to its end, which is where the other side stops writing.
fn read_to_end(stream: &UnixStream) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut payload = Vec::new();
    let mut piece = [0_u8; 16 * 1024];
    loop {
        let left = QUESTION_TIME.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut reader = stream;
        let n_read = reader.read(&mut piece)?;
        payload.extend_from_slice(piece.get(..n_read).unwrap_or_default());
        // One that is longer than any is read no further, and refused by whoever understands it.
        if n_read == 0 || payload.len() > QUESTION_BYTES_MAX {
            return Ok(payload);
        }
    }
}
