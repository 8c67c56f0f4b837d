//! What the threads of one connection share: the way out, the calls that wait, the questions that are
//! open.
//!
//! One thread reads; whoever waits is told by it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{CallCancel, Question, QuestionReply};
use crate::message;
use crate::protocol::ClientTerms;

/// The most calls that wait at once.
const WAITING_MAX: usize = 32;
/// The longest a person is waited for.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// One connection.
pub(crate) struct Connection<'o> {
    output: Mutex<Outlet<'o>>,
    waiting: Mutex<WaitingCalls>,
}

struct Outlet<'o> {
    stream: &'o mut (dyn Write + Send),
    /// What went wrong first; nothing is written afterwards.
    error: Option<io::Error>,
}

#[derive(Default)]
struct WaitingCalls {
    /// By the id of the request, as text.
    calls: BTreeMap<String, Arc<CallCancel>>,
    /// By the id of our request; each with the id of the call it is for.
    questions: BTreeMap<String, OpenQuestion>,
    n_asked: u64,
    has_ended: bool,
}

struct OpenQuestion {
    call: String,
    answer: SyncSender<Value>,
}

impl<'o> Connection<'o> {
    pub(crate) fn new(stream: &'o mut (dyn Write + Send)) -> Self {
        Self {
            output: Mutex::new(Outlet {
                stream,
                error: None,
            }),
            waiting: Mutex::default(),
        }
    }

    /// Writes a message; [`Self::check`] says whether that went well.
    pub(crate) fn write(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.error.is_none() {
            let stream = &mut output.stream;
            let written = stream.write_all(line.as_bytes());
            output.error = written.and_then(|()| output.stream.flush()).err();
        }
    }

    /// Returns what went wrong with writing, once.
    pub(crate) fn check(&self) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.error.take().map_or(Ok(()), Err)
    }

    /// Notes that a call waits; `None` where too many do.
    pub(crate) fn begin(&self, id: &Value) -> Option<Arc<CallCancel>> {
        let mut waiting = self.waiting();
        if waiting.calls.len() >= WAITING_MAX {
            return None;
        }
        let cancel = Arc::new(CallCancel::default());
        if waiting.has_ended {
            cancel.cancel();
        }
        waiting.calls.insert(id.to_string(), Arc::clone(&cancel));
        Some(cancel)
    }

    /// Notes that a call is over.
    pub(crate) fn end(&self, id: &Value) {
        self.waiting().calls.remove(&id.to_string());
    }

    /// Gives up a call, and the question that it asks.
    pub(crate) fn cancel(&self, id: &Value) {
        let mut waiting = self.waiting();
        let id = id.to_string();
        if let Some(cancel) = waiting.calls.get(&id) {
            cancel.cancel();
        }
        waiting.questions.retain(|_, question| question.call != id);
    }

    /// Gives up every call: the client is gone.
    pub(crate) fn hang_up(&self) {
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        waiting.calls.values().for_each(|cancel| cancel.cancel());
        waiting.questions.clear();
    }

    /// Asks the client's person for a call, and waits for what they say.
    pub(crate) fn ask(
        &self,
        call: &Value,
        question: &Question,
        terms: ClientTerms,
    ) -> QuestionReply {
        let (answer, answers) = sync_channel(1);
        let id = {
            let mut waiting = self.waiting();
            if waiting.has_ended {
                return QuestionReply::Cancelled;
            }
            waiting.n_asked += 1;
            let id = format!("kapi-{}", waiting.n_asked);
            let open = OpenQuestion {
                call: call.to_string(),
                answer,
            };
            waiting.questions.insert(id.clone(), open);
            id
        };
        let params = form(question, terms);
        self.write(&message::request(&id, "elicitation/create", &params));
        let result = answers.recv_timeout(PATIENCE);
        self.waiting().questions.remove(&id);
        match result {
            Ok(result) => QuestionReply::read(&result),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                QuestionReply::Cancelled
            }
        }
    }

    /// Hands an answer of the client to whoever asked.
    pub(crate) fn answered(&self, id: &Value, result: Value) {
        let question = id
            .as_str()
            .and_then(|id| self.waiting().questions.remove(id));
        if let Some(question) = question {
            // Whoever asked may have given up meanwhile.
            drop(question.answer.try_send(result));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a question as the protocol has it.
pub(crate) fn form(question: &Question, terms: ClientTerms) -> Value {
    let mut params = json!({"message": question.text, "requestedSchema": question.schema});
    if terms.names_mode {
        params["mode"] = json!("form");
    }
    params
}
