//! The editor, as this process sees it: the way out, and the questions that its person has open.
//!
//! Standard output is the protocol's alone: whatever else a command prints goes to standard error, which
//! editors keep as a log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapi_mcp::message;
use serde_json::{Value, json};

use crate::error::Error;

/// How often is looked whether a question is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// One editor.
#[derive(Debug)]
pub(super) struct Editor {
    output: Mutex<File>,
    questions: Mutex<OpenQuestions>,
}

/// What the person has not answered.
#[derive(Debug, Default)]
struct OpenQuestions {
    n_asked: u64,
    open: BTreeMap<String, SyncSender<Value>>,
    has_ended: bool,
}

impl Editor {
    /// Takes standard output over.
    pub(super) fn on_standard_output() -> Result<Self, Error> {
        let failed = |error: rustix::io::Errno| Error::failed(&std::io::Error::from(error));
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(failed)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(failed)?;
        Ok(Self {
            output: Mutex::new(File::from(output)),
            questions: Mutex::default(),
        })
    }

    /// Sends a message. An editor that has gone hears nothing more, and its input ends.
    pub(super) fn send(&self, message: &Value) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let line = format!("{message}\n");
        drop(output.write_all(line.as_bytes()));
    }

    /// Tells something about a session.
    pub(super) fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(&message::notification("session/update", &params));
    }

    /// Asks the person, and returns the answer; nothing when the editor has gone or the question is
    /// not wanted any more.
    pub(super) fn ask(
        &self,
        method: &str,
        params: &Value,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<Value> {
        let (sender, receiver) = sync_channel(1);
        let id = {
            let mut questions = self.questions();
            if questions.has_ended {
                return None;
            }
            questions.n_asked += 1;
            let id = format!("kapi-{}", questions.n_asked);
            questions.open.insert(id.clone(), sender);
            id
        };
        self.send(&message::request(&id, method, params));
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if is_wanted() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.questions().open.remove(&id);
                    return None;
                }
            }
        }
    }

    /// Passes an answer of the person's on.
    pub(super) fn answered(&self, id: &Value, result: Value) {
        let waiting = id.as_str().and_then(|id| self.questions().open.remove(id));
        if let Some(waiting) = waiting {
            // Whoever asked may have given up meanwhile.
            waiting.send(result).ok();
        }
    }

    /// Gives up every question: the editor has gone.
    pub(super) fn hang_up(&self) {
        let mut questions = self.questions();
        questions.has_ended = true;
        questions.open.clear();
    }

    fn questions(&self) -> MutexGuard<'_, OpenQuestions> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
