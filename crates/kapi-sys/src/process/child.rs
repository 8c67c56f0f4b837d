//! A running child: watched by pidfd, ended as a group, reaped exactly once.
//!
//! The pid stays ours until it is reaped, so a kill sent before that can hit nobody else.
//! Knows nothing of output, limits or why the child has to end.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};

use super::proc_table::FamilyMember;
use super::{ProcessEnd, proc_table};

/// The longest a child that is over or killed may take to end before it is reported as stuck.
const END_AFTER_KILL_MAX: Duration = Duration::from_secs(10);
/// How often descendants are looked for that were born while the others were being stopped.
const STOPS_MAX: usize = 16;

/// A child of ours that has not been reaped. Dropping it kills and reaps it.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    is_reaped: bool,
}

impl Child {
    /// Takes charge of a child just forked. If that fails the child is ended.
    pub(super) fn adopt(pid: Pid) -> io::Result<Self> {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self {
                pid,
                pidfd,
                is_reaped: false,
            }),
            Err(error) => {
                rustix::process::kill_process(pid, Signal::KILL)?;
                waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)?;
                Err(error.into())
            }
        }
    }

    /// Returns the descriptor that becomes readable when the child has ended.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Kills the child and its process group.
    pub(super) fn kill_group(&self) -> io::Result<()> {
        assert!(
            !self.is_reaped,
            "a reaped child's pid may belong to somebody else"
        );
        ignore_missing(kill_process_group(self.pid, Signal::KILL))?;
        ignore_missing(pidfd_send_signal(&self.pidfd, Signal::KILL))
    }

    /// Kills the group, and what has left the group but still descends from the child.
    ///
    /// All of them are stopped first, so that none forks while its descendants are collected.
    pub(super) fn kill_tree(&self) -> io::Result<()> {
        assert!(
            !self.is_reaped,
            "a reaped child's pid may belong to somebody else"
        );
        ignore_missing(kill_process_group(self.pid, Signal::STOP))?;
        let family = self.stopped_family();
        self.kill_group()?;
        signal_each(&family, Signal::KILL)
    }

    /// Stops the descendants and returns them.
    ///
    /// One that is stopped forks no more, but may have done so just before: the table is read until it
    /// shows nobody who is not stopped. Whoever forked and ended meanwhile left a child that is found
    /// where the leader takes up orphans.
    fn stopped_family(&self) -> Vec<FamilyMember> {
        let mut stopped: Vec<FamilyMember> = Vec::new();
        for _ in 0..STOPS_MAX {
            let mut new = proc_table::family(self.pid);
            new.retain(|found| !stopped.iter().any(|one| one.is(found)));
            if new.is_empty() {
                break;
            }
            // One that cannot be stopped is killed all the same, and a failure of that is told.
            drop(signal_each(&new, Signal::STOP));
            stopped.extend(new);
        }
        stopped
    }

    /// Kills what left the group but stayed in the child's session, after the child has ended.
    pub(super) fn kill_session(&self) -> io::Result<()> {
        assert!(
            !self.is_reaped,
            "a reaped child's pid may belong to somebody else"
        );
        signal_each(&proc_table::family(self.pid), Signal::KILL)
    }

    /// Waits for the child's end, which is known or has been forced, and reaps it.
    pub(super) fn reap(&mut self) -> io::Result<ProcessEnd> {
        self.await_end()?;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)?;
        self.is_reaped = true;
        let status = status.ok_or_else(|| io::Error::other("no status for an ended child"))?;
        end_of(status)
    }

    /// Tells whether it has ended.
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        loop {
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timespec(Duration::ZERO))) {
                Ok(n_ready) => return Ok(n_ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for its end, which is known, has been forced, or was announced by itself.
    pub(super) fn await_end(&self) -> io::Result<()> {
        let until = Instant::now() + END_AFTER_KILL_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) if left.is_zero() => {
                    let message = "the process that is over does not end";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        // A failure here has nowhere to go: the error or panic that brought us here is on its way.
        drop(self.kill_tree());
        drop(self.reap());
    }
}

/// Converts a duration for the system, capping what it cannot express.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn end_of(status: WaitIdStatus) -> io::Result<ProcessEnd> {
    let signal = status.terminating_signal().map(ProcessEnd::Signaled);
    let exit = status.exit_status().map(ProcessEnd::Exited);
    exit.or(signal)
        .ok_or_else(|| io::Error::other("a status that is neither exit nor signal"))
}

/// Sends a signal to every process, also after one could not be sent, and returns the first failure.
fn signal_each(family: &[FamilyMember], signal: Signal) -> io::Result<()> {
    let mut result = Ok(());
    for member in family {
        result = result.and(ignore_missing(pidfd_send_signal(&member.pidfd, signal)));
    }
    result
}

/// Treats "no such process" as success: it has ended already, which is what was wanted.
fn ignore_missing(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
