//! A view that is open: its state, and how those at work and whoever draws hear of each other.
//!
//! Knows no terminal.

use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fd::OwnedFd;

use crate::live_view::facts::SubjectFacts;
use crate::live_view::overview::Overview;
use crate::live_view::state::{Prompt, ViewState};
use crate::ui;

/// Where the view gets what stands on disk.
#[derive(Clone, Copy)]
pub(crate) struct ViewSource<'a> {
    /// Reads what is known of everything that is shown.
    pub(crate) subjects: &'a (dyn Fn() -> Vec<SubjectFacts> + Sync),
    /// Reads what is told besides, where everything alive is shown.
    pub(crate) overview: Option<&'a (dyn Fn() -> Overview + Sync)>,
}

/// A view that is open.
#[derive(Debug)]
pub(super) struct OpenView {
    pub(super) state: Mutex<ViewState>,
    /// Whether something on disk may have changed.
    pub(super) is_stale: AtomicBool,
    /// Whether it shall close.
    pub(super) is_closing: AtomicBool,
    /// What was replied to a question, and a word when there is a reply.
    pub(super) reply: Mutex<Option<bool>>,
    pub(super) replied: Condvar,
    pub(super) bell: OwnedFd,
}

impl OpenView {
    pub(super) fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever draws.
    pub(super) fn ring(&self) {
        // Only a counter that is full refuses, and then it has rung.
        rustix::io::write(&self.bell, &1_u64.to_ne_bytes()).ok();
    }

    /// Asks a question unless it is asked; not while a message is typed, whose letters would answer.
    pub(super) fn put_question(&self, question: &str) {
        let mut state = self.state();
        if state.prompt == Prompt::Keys {
            state.prompt = Prompt::Question {
                text: ui::harmless(question),
            };
            state.is_unseen = true;
        }
        drop(state);
        self.ring();
    }

    pub(super) fn reply(&self, answer: bool) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.replied.notify_all();
    }
}
