//! One session of an editor: its directory, and the goal that its prompts are about.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use kapi_core::id::GoalId;

/// A session.
#[derive(Debug)]
pub(super) struct EditorSession {
    id: String,
    cwd: PathBuf,
    goal: Mutex<Option<GoalId>>,
    is_at_work: AtomicBool,
    is_cancelled: AtomicBool,
}

impl EditorSession {
    /// Begins a session without a goal.
    pub(super) const fn new(id: String, cwd: PathBuf) -> Self {
        Self {
            id,
            cwd,
            goal: Mutex::new(None),
            is_at_work: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Returns its name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns its directory.
    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns its goal.
    pub(super) fn goal(&self) -> Option<GoalId> {
        let goal = self.goal.lock().unwrap_or_else(PoisonError::into_inner);
        goal.clone()
    }

    /// Makes a goal the session's.
    pub(super) fn attach(&self, id: &GoalId) {
        let mut goal = self.goal.lock().unwrap_or_else(PoisonError::into_inner);
        *goal = Some(id.clone());
    }

    /// Begins a prompt, unless one is under way.
    pub(super) fn begin(&self) -> bool {
        let is_free = !self.is_at_work.swap(true, Ordering::SeqCst);
        if is_free {
            self.is_cancelled.store(false, Ordering::SeqCst);
        }
        is_free
    }

    /// Ends the prompt.
    pub(super) fn end(&self) {
        self.is_at_work.store(false, Ordering::SeqCst);
    }

    /// Has the prompt that is under way stop.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
    }

    /// Tells whether it was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }
}
