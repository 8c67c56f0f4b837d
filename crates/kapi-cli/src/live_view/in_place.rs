//! A command that has the terminal in place of the view, while work goes on: what it says comes out at
//! once, and what the work says is kept for the view.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use crate::commands::inbox;
use crate::context::Context;
use crate::live_view::terminal;

/// The thread of the command; one process has one terminal.
static HERE: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Tells whether this thread has the terminal in place of a view.
pub(super) fn is_here() -> bool {
    *HERE.lock().unwrap_or_else(PoisonError::into_inner) == Some(thread::current().id())
}

/// Puts what waits to the person, until they want the view again.
pub(super) fn inbox(context: &Context) {
    terminal::restore();
    let _here = HereGuard::new();
    if let Err(error) = inbox::run(context, &inbox::Args::asking()) {
        context.ui.say(&format!("error: {error}"));
    }
    context.ui.ask("Press Enter to go back. ");
}

/// Gives the terminal back to the view, even where the command panics.
struct HereGuard;

impl HereGuard {
    fn new() -> Self {
        set(Some(thread::current().id()));
        Self
    }
}

impl Drop for HereGuard {
    fn drop(&mut self) {
        set(None);
    }
}

fn set(here: Option<ThreadId>) {
    *HERE.lock().unwrap_or_else(PoisonError::into_inner) = here;
}
