//! What the call of a tool comes to: an answer, a wait, or a question to the person.
//!
//! Knows no message: how a client is told of progress and how its person is asked is the server's
//! affair.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::message;

/// The rest of a call, which takes as long as something else does.
pub type Wait<'a> = Box<dyn FnOnce(&CallLink<'_>) -> Value + Send + 'a>;

/// What a call comes to.
pub enum CallOutcome<'a> {
    /// Its answer, which says itself whether it is a refusal.
    Answered(Value),
    /// It waits for something; what it returns is the answer.
    Waiting(Wait<'a>),
    /// The person is to say something first.
    Asking(Question),
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the person reads.
    pub text: String,
    /// What they may answer: a flat object, in JSON Schema.
    pub schema: Value,
    /// What the question is about, for whoever settles it.
    pub about: String,
    /// The answer of the call where nobody can be asked.
    pub unanswered: Value,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReply {
    /// This.
    Accepted(Value),
    /// They do not want it.
    Declined,
    /// They did not say.
    Cancelled,
}

/// Tells a waiting call that it is over.
#[derive(Debug, Default)]
pub struct CallCancel {
    is_cancelled: Mutex<bool>,
    changed: Condvar,
}

/// A waiting call's end of the connection.
pub struct CallLink<'c> {
    cancel: &'c CallCancel,
    progress: Option<&'c Value>,
    write: &'c (dyn Fn(&Value) + Sync),
}

impl CallOutcome<'_> {
    /// Returns the answer where there is no client to ask or to tell of progress.
    #[must_use]
    pub fn finish(self) -> Value {
        match self {
            Self::Answered(answer) => answer,
            Self::Asking(question) => question.unanswered,
            Self::Waiting(wait) => wait(&CallLink {
                cancel: &CallCancel::default(),
                progress: None,
                write: &|_| {},
            }),
        }
    }
}

impl QuestionReply {
    /// Reads what a client answers for its person; anything else is no answer.
    #[must_use]
    pub fn read(result: &Value) -> Self {
        match result.get("action").and_then(Value::as_str) {
            Some("accept") => {
                Self::Accepted(result.get("content").cloned().unwrap_or_else(|| json!({})))
            }
            Some("decline") => Self::Declined,
            Some(_) | None => Self::Cancelled,
        }
    }
}

impl CallCancel {
    /// Ends the call.
    pub fn cancel(&self) {
        *self
            .is_cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Tells whether the call is over.
    pub fn is_cancelled(&self) -> bool {
        *self
            .is_cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits this long, or until the call is over; tells whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut is_cancelled = self
            .is_cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while !*is_cancelled {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(is_cancelled, left);
            is_cancelled = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl<'c> CallLink<'c> {
    /// Returns the end of a call; `progress` is the client's name for it, if it wants to be told.
    pub fn new(
        cancel: &'c CallCancel,
        progress: Option<&'c Value>,
        write: &'c (dyn Fn(&Value) + Sync),
    ) -> Self {
        Self {
            cancel,
            progress,
            write,
        }
    }

    /// Waits this long, or until the client gives the call up; tells whether it did.
    pub fn wait(&self, time: Duration) -> bool {
        self.cancel.wait(time)
    }

    /// Tells the client how far the call is, of how much; `done` must grow from one time to the next.
    pub fn report(&self, done: u64, total: u64, text: &str) {
        if let Some(token) = self.progress.filter(|_| !self.cancel.is_cancelled()) {
            let params = json!({
                "progressToken": token, "progress": done, "total": total, "message": text,
            });
            (self.write)(&message::notification("notifications/progress", &params));
        }
    }
}
