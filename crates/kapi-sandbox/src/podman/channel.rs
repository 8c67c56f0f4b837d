//! The messages between the relay in the container and the host side, one in each packet.
//!
//! Both ends are the same binary, so the shapes have no version. Only code of ours ever holds the
//! relay's end: it closes when the payload is executed. Knows nothing of what the messages lead to.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::init::seccomp::SeccompProfile;
use crate::order::{PayloadProgram, SystemText};
use crate::status::{PayloadEnd, StepFailure};

/// The largest message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The most descriptors that travel with one message.
pub(super) const DESCRIPTORS_MAX: usize = 32;
/// The largest order.
const ORDER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The order for the host stage, which becomes podman.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StartOrder {
    /// The podman program.
    pub path: SystemText,
    /// Its arguments.
    pub args: Vec<SystemText>,
    /// Its environment.
    pub env: Vec<(SystemText, SystemText)>,
    /// How many descriptors the payload gets.
    pub n_fds: usize,
}

/// The order for the relay in the container.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelayOrder {
    /// The program to run.
    pub payload: PayloadProgram,
    /// The addresses at which it listens for the host side.
    pub listeners: Vec<SocketAddr>,
    /// Limits of each process.
    pub limits: RelayLimits,
    /// Whether user namespaces may be made inside.
    pub nested_namespaces: bool,
}

impl RelayOrder {
    /// Returns the system calls that the payload may make.
    pub(super) fn profile(&self) -> SeccompProfile {
        if self.nested_namespaces {
            SeccompProfile::Nested
        } else {
            SeccompProfile::Strict
        }
    }
}

/// The limits that the relay sets by itself, where a control group does not or may not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RelayLimits {
    /// Bytes of memory; one process may map as much where no control group counts them together.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of the user.
    pub processes: Option<u64>,
}

impl RelayLimits {
    /// Leaves out what a control group counts for all processes together.
    pub(super) fn beside(self, observed: &RelayEnvironment) -> Self {
        Self {
            memory_bytes: self
                .memory_bytes
                .filter(|_| observed.memory_bytes.is_none()),
            ..self
        }
    }
}

/// A message of the relay.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RelayMessage {
    /// The relay runs; its pidfd travels with this.
    Up(RelayEnvironment),
    /// The listeners of the order travel with this, in order.
    Listeners,
    /// A step failed and the payload did not run.
    Failed(StepFailure),
    /// The payload ended.
    Ended(PayloadEnd, LimitCounts),
}

/// The isolation that the relay found around itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RelayEnvironment {
    /// Whether its user namespace maps anything but everybody to themselves.
    pub is_user_mapped: bool,
    /// Whether a system call filter is in force.
    pub is_filtered: bool,
    /// Bytes that the control group allows.
    pub memory_bytes: Option<u64>,
    /// Processes that the control group allows.
    pub processes: Option<u64>,
    /// Thousandths of a processor that the control group allows.
    pub cpu_millis: Option<u64>,
}

/// How often the control group refused something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LimitCounts {
    /// Processes that were killed because memory was used up.
    pub memory_kills: u64,
    /// Processes that were not made because there were too many.
    pub process_refusals: u64,
}

/// One received message.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    /// The message.
    pub message: RelayMessage,
    /// The descriptors that travelled with it.
    pub descriptors: Vec<OwnedFd>,
}

/// Sends one message with descriptors.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    message: &RelayMessage,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let line = serde_json::to_vec(message).map_err(|_| Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&line)], &mut control, flags).map(|_| ())
}

/// Takes the next message, waiting for it; `None` when the other end is gone.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
) -> Result<Option<ReceivedMessage>, Errno> {
    let mut buffer = vec![0_u8; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let got = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(socket, &mut parts, &mut control, flags) {
            Err(Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    if got == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let message =
        serde_json::from_slice(buffer.get(..got).unwrap_or_default()).map_err(|_| Errno::BADMSG)?;
    Ok(Some(ReceivedMessage {
        message,
        descriptors,
    }))
}

/// Writes an order to an anonymous file.
pub(super) fn write_order(order: &impl Serialize) -> Result<OwnedFd, Errno> {
    let bytes = serde_json::to_vec(order).map_err(|_| Errno::INVAL)?;
    let file = rustix::fs::memfd_create("kapi-order", MemfdFlags::CLOEXEC)?;
    let mut written = 0;
    while written < bytes.len() {
        let rest = bytes.get(written..).unwrap_or_default();
        let at = u64::try_from(written).map_err(|_| Errno::FBIG)?;
        written += rustix::io::pwrite(&file, rest, at)?;
    }
    Ok(file)
}

/// Reads an anonymous file from its start, wherever others have read to.
pub(super) fn read_all(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    while bytes.len() < ORDER_BYTES_MAX {
        let at = u64::try_from(bytes.len()).map_err(|_| Errno::FBIG)?;
        let n_read = rustix::io::pread(file, chunk.as_mut_slice(), at)?;
        if n_read == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(chunk.get(..n_read).unwrap_or_default());
    }
    Err(Errno::FBIG)
}

/// Reads an order.
pub(super) fn read_order<T: DeserializeOwned>(file: BorrowedFd<'_>) -> Result<T, Errno> {
    serde_json::from_slice(&read_all(file)?).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;

    use rustix::net::RecvFlags;

    use super::{
        LimitCounts, RelayEnvironment, RelayMessage, read_order, receive, send, write_order,
    };
    use crate::status::{PayloadEnd, pair};

    #[test]
    fn messages_arrive_one_by_one_with_what_they_carry() {
        let (host, relay) = pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let up = RelayMessage::Up(RelayEnvironment::default());
        send(relay.as_fd(), &up, &[]).unwrap();
        send(
            relay.as_fd(),
            &RelayMessage::Listeners,
            &[listener.as_fd(), listener.as_fd()],
        )
        .unwrap();
        let ended = RelayMessage::Ended(PayloadEnd::Signaled(9), LimitCounts::default());
        send(relay.as_fd(), &ended, &[]).unwrap();
        drop(relay);
        let mut seen = Vec::new();
        while let Some(got) = receive(host.as_fd(), RecvFlags::empty()).unwrap() {
            seen.push((format!("{:?}", got.message), got.descriptors.len()));
        }
        let counts: Vec<usize> = seen.iter().map(|(_, n)| *n).collect();
        assert_eq!(counts, [0, 2, 0], "{seen:?}");
        assert!(
            seen.iter().any(|(said, _)| said.contains("Signaled(9)")),
            "{seen:?}"
        );
    }

    #[test]
    fn an_order_can_be_read_by_two_one_after_the_other() {
        let file = write_order(&vec!["a", "b\n"]).unwrap();
        for _ in 0..2 {
            let words: Vec<String> = read_order(file.as_fd()).unwrap();
            assert_eq!(words, ["a", "b\n"]);
        }
    }
}
