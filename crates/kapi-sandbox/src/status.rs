//! What the launcher and its children tell the host side, one message a packet.
//!
//! Only code of ours ever holds the sending end: it closes when the payload is executed. Knows
//! nothing of what the messages lead to.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::counter::KernelCounter;

/// The largest message; a longer target is cut by [`StepFailure::new`].
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The largest target that is reported whole.
const TARGET_CHARS_MAX: usize = 1024;
/// How many messages one launcher may leave; a probe sends the most.
const MESSAGES_MAX: usize = 64;

/// How many descriptors one message carries at most.
pub(crate) const CARRIED_MAX: usize = 64;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LauncherMessage {
    /// The process whose end is the end of them all exists; its pidfd travels with this.
    Leader,
    /// The listeners of the order; they travel with this, in its order.
    Listening,
    /// A step failed and the payload did not run.
    Failed(StepFailure),
    /// A descendant of the payload could not be ended.
    Survived(StepFailure),
    /// What was counted of the payload and its descendants, before it is said how it ended.
    Counted(Vec<(KernelCounter, u64)>),
    /// The payload ended.
    Ended(PayloadEnd),
    /// A step of the probe was tried; `None` means that it works.
    Probed {
        /// Which step.
        step: String,
        /// What refused it.
        failure: Option<StepFailure>,
    },
}

/// A refused step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    /// The system call, with the argument that tells it from others.
    pub call: String,
    /// The path or thing that it was called on.
    pub target: String,
    /// The system's error number.
    pub errno: i32,
}

impl StepFailure {
    /// Names a refused call.
    pub(crate) fn new(call: &str, target: &str, errno: Errno) -> Self {
        Self {
            call: call.to_owned(),
            target: target.chars().take(TARGET_CHARS_MAX).collect(),
            errno: errno.raw_os_error(),
        }
    }
}

/// How a payload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PayloadEnd {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl PayloadEnd {
    /// Returns the code a shell would show.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

/// Makes the two ends: the reader's and the writer's.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
}

/// Sends one message, with the descriptors that it carries.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    status: &LauncherMessage,
    carried: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let line = serde_json::to_vec(status).map_err(|_| Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CARRIED_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if carried.len() > CARRIED_MAX {
        return Err(Errno::TOOBIG);
    }
    if !carried.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(carried));
        assert!(fits, "the buffer was measured for this many descriptors");
    }
    // The reader may be gone; that must be an error here and not a signal.
    sendmsg(
        socket,
        &[IoSlice::new(&line)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .map(|_| ())
}

/// Everything a launcher has said so far.
#[derive(Debug, Default)]
pub(crate) struct LauncherReport {
    /// The messages, in order.
    pub statuses: Vec<LauncherMessage>,
    /// The descriptor of the leading process, if it came.
    pub leader: Option<OwnedFd>,
    /// The listeners that came and were not taken yet.
    pub listeners: Vec<OwnedFd>,
}

/// A report that could not be taken.
#[derive(Debug)]
pub(crate) enum ReportError {
    /// The socket failed.
    Receive(Errno),
    /// A message is not one of ours.
    Decode(serde_json::Error),
}

impl LauncherReport {
    /// Takes what has arrived, without waiting.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<(), ReportError> {
        let mut buffer = vec![0_u8; MESSAGE_BYTES_MAX];
        while self.statuses.len() < MESSAGES_MAX {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CARRIED_MAX))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let got = match recvmsg(
                socket,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut control,
                flags,
            ) {
                Ok(got) => got.bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(ReportError::Receive(errno)),
            };
            let carried = control.drain().flat_map(descriptors).collect();
            if got == 0 {
                break;
            }
            let line = buffer.get(..got).unwrap_or_default();
            self.take(
                serde_json::from_slice(line).map_err(ReportError::Decode)?,
                carried,
            );
        }
        Ok(())
    }

    fn take(&mut self, status: LauncherMessage, mut carried: Vec<OwnedFd>) {
        match status {
            LauncherMessage::Leader => self.leader = carried.pop(),
            LauncherMessage::Listening => self.listeners = carried,
            LauncherMessage::Failed(_)
            | LauncherMessage::Survived(_)
            | LauncherMessage::Counted(_)
            | LauncherMessage::Ended(_)
            | LauncherMessage::Probed { .. } => {}
        }
        self.statuses.push(status);
    }
}

fn descriptors(message: RecvAncillaryMessage<'_>) -> Vec<OwnedFd> {
    match message {
        RecvAncillaryMessage::ScmRights(carried) => carried.collect(),
        _ => Vec::new(),
    }
}
