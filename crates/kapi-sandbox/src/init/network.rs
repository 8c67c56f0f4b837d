//! A network with nothing but its loopback, made by the launcher while the leader furnishes the root.
//!
//! The kernel takes as long for it as for a third of the root, and neither needs the other. Until the
//! leader has ended the launcher's half only calls the kernel. Knows nothing of who listens in it.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};

use super::completion::{Refusal, StepCompletion};
use super::namespace::enter_one;
use crate::status::StepFailure;
use crate::syscall::{raise_loopback, unshare};

/// A network that the launcher makes.
#[derive(Debug)]
pub(super) struct SandboxNetwork {
    /// The launcher, by which the leader finds its network.
    launcher: OwnedFd,
    made: StepCompletion,
}

/// The calls that make one.
const UNSHARE: u32 = 0;
const SOCKET: u32 = 1;
const RAISE: u32 = 2;

impl SandboxNetwork {
    /// Prepares one. Call in the launcher.
    pub(super) fn new() -> Result<Self, StepFailure> {
        let launcher = pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|errno| StepFailure::new("pidfd_open", "the launcher", errno))?;
        Ok(Self {
            launcher,
            made: StepCompletion::new(),
        })
    }

    /// Makes it and tells the leader; the launcher's half.
    pub(super) fn make(&self) {
        let left = unshare(UnshareFlags::NEWNET).map_err(Refusal::of(UNSHARE));
        self.made.give(left.and_then(|()| raise()));
    }

    /// Waits until it is made and moves this process into it; the leader's half.
    pub(super) fn follow(&self) -> Result<(), StepFailure> {
        self.made
            .hear()?
            .map_err(|refusal| failure(refusal.call, refusal.errno))?;
        move_into_thread_name_spaces(self.launcher.as_fd(), ThreadNameSpaceType::NETWORK)
            .map_err(|errno| StepFailure::new("setns(CLONE_NEWNET)", "the leader", errno))
    }
}

/// Makes a network and enters it, in a process that shares its memory with nobody.
pub(super) fn enter() -> Result<(), StepFailure> {
    enter_one(UnshareFlags::NEWNET, "CLONE_NEWNET")?;
    raise().map_err(|refusal| failure(refusal.call, refusal.errno))
}

/// Brings the loopback of this process's network up.
fn raise() -> Result<(), Refusal> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(Refusal::of(SOCKET))?;
    raise_loopback(socket.as_fd()).map_err(Refusal::of(RAISE))
}

fn failure(call: u32, errno: Errno) -> StepFailure {
    match call {
        UNSHARE => StepFailure::new("unshare(CLONE_NEWNET)", "the launcher", errno),
        SOCKET => StepFailure::new("socket", "lo", errno),
        _ => StepFailure::new("ioctl(SIOCSIFFLAGS)", "lo", errno),
    }
}
