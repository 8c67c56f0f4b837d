//! Listening while an agent runs: threads that end with it.
//!
//! Knows nothing of the agent; whoever runs it does so inside.

use std::thread;

use kapi_sys::cancel::Cancel;

use super::StatusError;
use super::listener::{HookListener, HookTotals};
use super::progress_file::ProgressFile;
use super::writer::StatusWriter;

/// Where a run's status comes from while its agent works.
#[derive(Debug, Clone, Copy)]
pub enum StatusSource<'a> {
    /// The agent's hooks.
    Hooks(&'a HookListener),
    /// The agent's progress file.
    File(&'a ProgressFile),
    /// Both.
    Both(&'a HookListener, &'a ProgressFile),
}

/// What was heard during a run, and whether the status could be kept.
#[derive(Debug)]
pub struct WatchResult<T> {
    /// What the run itself returned.
    pub value: T,
    /// What hooks reported; an error ended the listening and not the run.
    pub hooks: Result<HookTotals, StatusError>,
    /// Whether the progress file could be followed.
    pub file: Result<(), StatusError>,
}

/// Performs `run` and keeps the status up to date meanwhile.
///
/// Everything that was reported before `run` returned has reached the writer when this returns.
pub fn during<T>(
    writer: &StatusWriter<'_>,
    source: StatusSource<'_>,
    run: impl FnOnce() -> T,
) -> WatchResult<T> {
    let stop = Cancel::new();
    let (listener, file) = match source {
        StatusSource::Hooks(listener) => (Some(listener), None),
        StatusSource::File(file) => (None, Some(file)),
        StatusSource::Both(listener, file) => (Some(listener), Some(file)),
    };
    thread::scope(|scope| {
        let hooks = listener.map(|listener| scope.spawn(|| listener.serve(writer, &stop)));
        let polls = file.map(|file| scope.spawn(|| file.watch(writer, &stop)));
        let ending = WatchEnd {
            stop: &stop,
            listener,
            poller: polls.as_ref().map(|polls| polls.thread().clone()),
        };
        let value = run();
        drop(ending);
        WatchResult {
            value,
            hooks: hooks.map_or(Ok(HookTotals::default()), joined),
            file: polls.map_or(Ok(()), joined),
        }
    })
}

/// Stops the threads when it is dropped: also when the run panics, or the scope would wait for
/// them for ever.
struct WatchEnd<'a> {
    stop: &'a Cancel,
    listener: Option<&'a HookListener>,
    poller: Option<thread::Thread>,
}

impl Drop for WatchEnd<'_> {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(listener) = self.listener {
            listener.wake();
        }
        if let Some(poller) = &self.poller {
            poller.unpark();
        }
    }
}

fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    match handle.join() {
        Ok(value) => value,
        // A defect in there is a defect here.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
