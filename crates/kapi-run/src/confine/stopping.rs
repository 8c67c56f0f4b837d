//! Telling a program in its sandbox that it is no longer wanted, before it is ended.
//!
//! It is given a channel that hangs up, whatever the isolation. What it does then is its own affair.

use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use kapi_sys::cancel::Cancel;

/// How often is looked whether the program is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a program was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopNotice {
    /// It was not: it ended by itself.
    None,
    /// It was.
    Told,
}

/// Runs a program with a channel that hangs up when `cancel` is raised, and with a flag of its own that
/// is raised only when it has not ended within `grace` of that.
pub(super) fn run_told<T>(
    grace: Duration,
    cancel: &Cancel,
    run: impl FnOnce(OwnedFd, &Cancel) -> T,
) -> io::Result<(T, StopNotice)> {
    let (reader, writer) = io::pipe()?;
    let ended = Cancel::new();
    let (running, is_running) = sync_channel::<()>(0);
    Ok(thread::scope(|scope| {
        let teller = scope.spawn(|| {
            tell(
                writer,
                grace,
                cancel,
                &RunningProgram {
                    is_running,
                    ended: &ended,
                },
            )
        });
        let ran = run(OwnedFd::from(reader), &ended);
        drop(running);
        let told = teller.join();
        (
            ran,
            told.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    }))
}

/// What is known of the program that is told.
struct RunningProgram<'a> {
    /// Hangs up when it has ended; nothing comes here.
    is_running: Receiver<()>,
    /// What ends it.
    ended: &'a Cancel,
}

fn tell(
    writer: PipeWriter,
    grace: Duration,
    cancel: &Cancel,
    program: &RunningProgram<'_>,
) -> StopNotice {
    let has_ended = |within| {
        let waited = program.is_running.recv_timeout(within);
        waited != Err(RecvTimeoutError::Timeout)
    };
    while !cancel.is_raised() {
        if has_ended(LOOK) {
            return StopNotice::None;
        }
    }
    drop(writer);
    if !has_ended(grace) {
        program.ended.raise();
    }
    StopNotice::Told
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::time::Duration;

    use kapi_sys::cancel::Cancel;

    use super::{StopNotice, run_told};

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn one_that_ends_by_itself_is_told_nothing() {
        let ran = run_told(LONG, &Cancel::new(), |_channel, ended| ended.is_raised());
        assert_eq!(ran.unwrap(), (false, StopNotice::None));
    }

    #[test]
    fn one_that_is_no_longer_wanted_hears_it_and_may_end_by_itself() {
        let cancel = Cancel::new();
        let ran = run_told(LONG, &cancel, |channel, ended| {
            cancel.raise();
            let n_read = File::from(channel).read(&mut [0]).unwrap();
            (n_read, ended.is_raised())
        });
        assert_eq!(ran.unwrap(), ((0, false), StopNotice::Told));
    }

    #[test]
    fn one_that_does_not_end_in_time_is_ended() {
        let cancel = Cancel::new();
        cancel.raise();
        let ran = run_told(Duration::ZERO, &cancel, |_channel, ended| {
            while !ended.is_raised() {
                std::thread::yield_now();
            }
        });
        assert_eq!(ran.unwrap(), ((), StopNotice::Told));
    }
}
