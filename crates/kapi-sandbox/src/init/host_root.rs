//! The host's root, which the launcher takes away once the leader stands on its own, and what of the host
//! `/proc` shows.
//!
//! Before the call returns the kernel waits until no processor looks at the old mounts any more, which
//! on a busy machine is the longest wait of a start. The leader goes on meanwhile, and runs nothing of the
//! payload's before it has heard that the host is gone. Until the leader has ended the launcher's half only calls
//! the kernel.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, write};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::completion::{Refusal, StepCompletion};
use super::process_view;
use crate::status::StepFailure;

/// The host's root, from before the leader leaves it until it is gone.
#[derive(Debug)]
pub(super) struct HostRoot {
    /// Counts 1 when the leader has left it.
    left: OwnedFd,
    gone: StepCompletion,
}

/// The calls that take it away.
const WATCH: u32 = 0;
const POLL: u32 = 1;
const UNMOUNT: u32 = 2;

impl HostRoot {
    /// Prepares to take it away. Call in the launcher.
    pub(super) fn new() -> Result<Self, StepFailure> {
        let left = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|errno| StepFailure::new("eventfd2", "the launcher", errno))?;
        Ok(Self {
            left,
            gone: StepCompletion::new(),
        })
    }

    /// Takes it away as soon as the leader has left it, if it ever does; the launcher's half.
    pub(super) fn take_away(&self, leader: Pid, nested_namespaces: bool) {
        match self.is_left(leader) {
            Ok(true) => {
                let gone = detach().map_err(Refusal::of(UNMOUNT));
                let gone = gone.and_then(|()| process_view::seal(nested_namespaces));
                self.gone.give(gone);
            }
            // The leader has ended.
            Ok(false) => {}
            Err(refusal) => self.gone.give(Err(refusal)),
        }
    }

    /// Waits until the leader has left the root or has ended, and tells whether it has left it.
    fn is_left(&self, leader: Pid) -> Result<bool, Refusal> {
        let leader = pidfd_open(leader, PidfdFlags::empty()).map_err(Refusal::of(WATCH))?;
        loop {
            let mut polled = [
                PollFd::new(&self.left, PollFlags::IN),
                PollFd::new(&leader, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Refusal { call: POLL, errno }),
            }
            let [left, _] = &polled;
            return Ok(left.revents().contains(PollFlags::IN));
        }
    }

    /// Tells the launcher that this process has left it; the leader's half.
    pub(super) fn leave(&self) -> Result<(), StepFailure> {
        let one = 1_u64.to_ne_bytes();
        let reported = write(&self.left, &one);
        reported
            .map(|_| ())
            .map_err(|errno| StepFailure::new("write", "the launcher's eventfd", errno))
    }

    /// Waits until nothing of it is left; the leader's half.
    pub(super) fn await_gone(&self) -> Result<(), StepFailure> {
        self.gone.hear()?.map_err(|refusal| match refusal.call {
            process_view::FIRST.. => process_view::named(refusal),
            WATCH => StepFailure::new("pidfd_open", "the leader", refusal.errno),
            POLL => StepFailure::new("poll", "the leader", refusal.errno),
            _ => unmount_failure(refusal.errno),
        })
    }
}

/// Takes the host's root away at once, in a process that has left it.
pub(super) fn take_own_away() -> Result<(), StepFailure> {
    detach().map_err(unmount_failure)
}

/// The same, and covers `/proc`.
pub(super) fn take_all_away() -> Result<(), StepFailure> {
    take_own_away()?;
    process_view::seal(false).map_err(process_view::named)
}

/// The old root lies on top of the new one, whose top directory this process is in.
fn detach() -> Result<(), Errno> {
    unmount(c".", UnmountFlags::DETACH)
}

fn unmount_failure(errno: Errno) -> StepFailure {
    StepFailure::new("umount2", "/", errno)
}
