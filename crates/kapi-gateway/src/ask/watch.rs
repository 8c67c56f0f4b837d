//! Holds a conversation to its deadline, and ends it when nobody wants it any more.
//!
//! The conversation runs in a thread of its own that is joined before this returns.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use kapi_sys::cancel::Cancel;

use crate::ask::UsageTally;
use crate::ask::error::AskError;
use crate::ask::line::AskConnection;
use crate::ask::server::ModelEndpoint;
use crate::http::timed::moment_after;
use crate::serve::StopSignal;

/// How often it is asked whether the answer is still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a conversation with a server for at most `deadline`.
pub(crate) fn within<T: Send>(
    server: &ModelEndpoint,
    deadline: Duration,
    cancel: &Cancel,
    converse: impl FnOnce(&AskConnection<'_>, &mut UsageTally) -> Result<T, AskError> + Send,
) -> (Result<T, AskError>, UsageTally) {
    let host = server.upstream().base_url.authority();
    if cancel.is_raised() {
        return (Err(AskError::Cancelled { host }), UsageTally::default());
    }
    let stop = match StopSignal::new() {
        Ok(stop) => stop,
        Err(error) => {
            let source = error.into();
            return (
                Err(AskError::Prepare { host, source }),
                UsageTally::default(),
            );
        }
    };
    let end = moment_after(deadline);
    let (sender, receiver) = sync_channel::<()>(0);
    thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            let mut tally = UsageTally::default();
            let line = AskConnection::new(server, deadline, stop);
            let outcome = line.and_then(|line| converse(&line, &mut tally));
            // Wakes the one who waits; what was said comes with the thread's end.
            drop(sender);
            (outcome, tally)
        });
        let mut why = None;
        while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(LOOK) {
            if why.is_some() {
                continue;
            }
            why = reason_to_stop(&host, deadline, end, cancel);
            if why.is_some() {
                stop.raise();
            }
        }
        let (outcome, tally) = match worker.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // An answer that came in the last moment is an answer.
        match (outcome, why) {
            (Err(_), Some(why)) => (Err(why), tally),
            (outcome, _) => (outcome, tally),
        }
    })
}

fn reason_to_stop(
    host: &str,
    deadline: Duration,
    end: Instant,
    cancel: &Cancel,
) -> Option<AskError> {
    let host = host.to_owned();
    if cancel.is_raised() {
        return Some(AskError::Cancelled { host });
    }
    let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    (Instant::now() >= end).then_some(AskError::TimedOut { host, deadline_ms })
}
