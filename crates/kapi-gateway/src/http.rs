//! Heads and bodies of HTTP/1.1 messages, read within limits.
//!
//! Strict on purpose: what two readers could understand differently is refused, because the reader
//! behind us must see the same message that was decided about. Knows no hosts, rules or keys.

pub mod body;
pub mod farewell;
pub mod head;
pub mod reader;
pub mod timed;

use std::io;
use std::time::Duration;

/// What a head may use before it is refused.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// Bytes of the whole head with its empty line.
    pub bytes_max: usize,
    /// Header lines.
    pub headers_max: usize,
    /// Time from the first byte to the empty line, however often a byte arrives.
    pub time_max: Duration,
}

/// Why a message could not be read or passed on.
#[derive(Debug, thiserror::Error)]
pub enum HttpMessageError {
    /// The peer closed before the message was complete.
    #[error("read the message: the peer closed in the middle of {part}")]
    Closed {
        /// Which part was being read.
        part: &'static str,
    },
    /// The peer was too slow.
    #[error("read the message: the peer was too slow in {part}")]
    Slow {
        /// Which part was being read.
        part: &'static str,
    },
    /// The head is longer than allowed.
    #[error("read the message: its head is longer than {bytes_max} bytes")]
    HeadTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The head has more lines than allowed.
    #[error("read the message: its head has more than {headers_max} header lines")]
    TooManyHeaders {
        /// The limit.
        headers_max: usize,
    },
    /// The body is longer than allowed.
    #[error("read the message: its body is longer than {bytes_max} bytes")]
    BodyTooLong {
        /// The limit.
        bytes_max: u64,
    },
    /// The message is not HTTP/1.1 as everybody reads it.
    #[error("read the message: {problem}")]
    Malformed {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The system refused to read.
    #[error("read the message")]
    Read(#[source] io::Error),
    /// The receiver did not take the message in time, or closed.
    #[error("pass the message on")]
    Write(#[source] io::Error),
}

impl HttpMessageError {
    /// Returns the status that tells a client of its mistake; none where nobody listens any more.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Slow { .. } => Some(408),
            Self::HeadTooLong { .. } | Self::TooManyHeaders { .. } => Some(431),
            Self::BodyTooLong { .. } => Some(413),
            Self::Malformed { .. } => Some(400),
            Self::Closed { .. } | Self::Read(_) | Self::Write(_) => None,
        }
    }

    /// Sorts a failed read of `part`: a timeout is the peer's slowness, not the system's refusal.
    fn of_read(error: io::Error, part: &'static str) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Slow { part },
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Self::Closed { part },
            _ => Self::Read(error),
        }
    }
}
