//! Bytes carried both ways between two sockets until both are done.
//!
//! One thread, one buffer a direction, no blocking call but the wait for readiness. Passes on a
//! half-close. Looks at nothing it carries.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::http::timed::ready;
use crate::serve::StopSignal;

/// Bytes read at first; a quiet connection needs no more.
const SMALL: usize = 8 * 1024;

/// Bytes read once a read has filled the small buffer.
const LARGE: usize = 256 * 1024;

/// Reads of one direction before the other has its turn.
const ROUNDS_MAX: usize = 8;

/// Bytes that are left to a whole run.
#[derive(Debug)]
pub struct ByteAllowance(AtomicU64);

/// What ends a relay.
#[derive(Debug, Clone, Copy)]
pub struct TunnelLimits<'a> {
    /// The longest silence in both directions.
    pub idle_max: Duration,
    /// The last moment of the relay.
    pub deadline: Instant,
    /// The bytes that the whole run may still move.
    pub allowance: &'a ByteAllowance,
}

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayEnd {
    /// Both sides said that they were done.
    Closed,
    /// One side broke off.
    Reset,
    /// Nothing moved for too long.
    Idle,
    /// It lived too long.
    Late,
    /// The run has no bytes left.
    Spent,
    /// The run is ending.
    Stopped,
}

impl RelayEnd {
    /// Returns why it was cut, where it did not end by its own sides.
    #[must_use]
    pub fn cut(self) -> Option<&'static str> {
        match self {
            Self::Closed | Self::Reset => None,
            Self::Idle => Some("nothing moved for too long"),
            Self::Late => Some("it was open for too long"),
            Self::Spent => Some("the run has moved as many bytes as it may"),
            Self::Stopped => Some("the run ended"),
        }
    }
}

/// What a relay carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayOutcome {
    /// Bytes from the first socket to the second.
    pub bytes_up: u64,
    /// Bytes from the second socket to the first.
    pub bytes_down: u64,
    /// How it ended.
    pub end: RelayEnd,
}

impl ByteAllowance {
    /// Returns an allowance of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Takes `bytes` and returns whether there were so many; what is refused is not taken.
    pub fn take(&self, bytes: u64) -> bool {
        self.0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }
}

/// Carries bytes between `client` and `target`, beginning with `ahead`, which the client sent before.
///
/// Both sockets should be watched by `stop`, which also ends the wait here.
pub fn relay(
    client: &TcpStream,
    target: &TcpStream,
    ahead: &[u8],
    limits: TunnelLimits<'_>,
    stop: &StopSignal,
) -> RelayOutcome {
    let mut tunnel = Tunnel {
        client,
        target,
        up: Direction::new(ahead),
        down: Direction::new(&[]),
    };
    let end = if limits.allowance.take(ahead.len() as u64) {
        carry(&mut tunnel, limits, stop)
    } else {
        RelayEnd::Spent
    };
    RelayOutcome {
        bytes_up: tunnel.up.n_sent,
        bytes_down: tunnel.down.n_sent,
        end,
    }
}

/// Two sockets and the bytes on their way between them.
struct Tunnel<'a> {
    client: &'a TcpStream,
    target: &'a TcpStream,
    up: Direction,
    down: Direction,
}

fn carry(tunnel: &mut Tunnel<'_>, limits: TunnelLimits<'_>, stop: &StopSignal) -> RelayEnd {
    let Tunnel {
        client,
        target,
        up,
        down,
    } = tunnel;
    let mut moved_at = Instant::now();
    loop {
        let before = (up.progress(), down.progress());
        for (direction, from, to) in [(&mut *up, &*client, &*target), (&mut *down, target, client)]
        {
            if let Err(end) = direction.step(from, to, limits.allowance) {
                return end;
            }
        }
        if up.shut && down.shut {
            return RelayEnd::Closed;
        }
        let now = Instant::now();
        let moved = before != (up.progress(), down.progress());
        if moved {
            moved_at = now;
        }
        let idle_left = (moved_at + limits.idle_max).saturating_duration_since(now);
        let left = limits.deadline.saturating_duration_since(now);
        let mut fds = [
            awaited(client, up, down, stop),
            awaited(target, down, up, stop),
            PollFd::from_borrowed_fd(stop.event(), PollFlags::IN),
        ];
        match ready(&mut fds, idle_left.min(left)) {
            Err(_) => return RelayEnd::Reset,
            Ok(_) if stop.is_raised() => return RelayEnd::Stopped,
            Ok(false) if left <= idle_left => return RelayEnd::Late,
            Ok(false) => return RelayEnd::Idle,
            Ok(true) => {}
        }
        let gone = PollFlags::ERR | PollFlags::HUP;
        let useful = PollFlags::IN | PollFlags::OUT;
        let broken =
            |fd: &PollFd<'_>| fd.revents().intersects(gone) && !fd.revents().intersects(useful);
        if fds.iter().any(broken) {
            return RelayEnd::Reset;
        }
    }
}

/// Returns what to wait for at the socket that `outward` reads and `inward` writes.
///
/// A socket that is neither read nor written now is watched for breaking only, or, once both its
/// sides are done and that would be reported for ever, not at all: the stop sign takes its place.
fn awaited<'a>(
    socket: &'a TcpStream,
    outward: &Direction,
    inward: &Direction,
    stop: &'a StopSignal,
) -> PollFd<'a> {
    let mut flags = PollFlags::empty();
    if outward.open && outward.is_empty() {
        flags |= PollFlags::IN;
    }
    if !inward.is_empty() {
        flags |= PollFlags::OUT;
    }
    if flags.is_empty() && inward.shut {
        PollFd::from_borrowed_fd(stop.event(), PollFlags::IN)
    } else {
        PollFd::from_borrowed_fd(socket.as_fd(), flags)
    }
}

/// One way of a relay.
struct Direction {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// The source has not said that it is done.
    open: bool,
    /// The destination was told that it is.
    shut: bool,
    n_sent: u64,
}

impl Direction {
    fn new(ahead: &[u8]) -> Self {
        let mut buffer = ahead.to_vec();
        buffer.resize(ahead.len().max(SMALL), 0);
        Self {
            buffer,
            begin: 0,
            end: ahead.len(),
            open: true,
            shut: false,
            n_sent: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Returns a value that differs whenever something has moved.
    fn progress(&self) -> (u64, usize, bool, bool) {
        (self.n_sent, self.end - self.begin, self.open, self.shut)
    }

    /// Moves what can be moved without waiting, a few buffers at most.
    fn step(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        allowance: &ByteAllowance,
    ) -> Result<(), RelayEnd> {
        for _ in 0..ROUNDS_MAX {
            if self.is_empty() && self.open && !self.read(from, allowance)? {
                return Ok(());
            }
            if !self.is_empty() && !self.write(to)? {
                return Ok(());
            }
            if self.is_empty() && !self.open {
                return self.pass_end_on(to);
            }
        }
        Ok(())
    }

    fn pass_end_on(&mut self, to: &TcpStream) -> Result<(), RelayEnd> {
        if self.shut {
            return Ok(());
        }
        self.shut = true;
        to.shutdown(Shutdown::Write).map_err(|_| RelayEnd::Reset)
    }

    /// Reads once and returns whether anything, or the end, was there.
    fn read(&mut self, from: &TcpStream, allowance: &ByteAllowance) -> Result<bool, RelayEnd> {
        if self.end == self.buffer.len() && self.end < LARGE {
            self.buffer = vec![0; LARGE];
        }
        (self.begin, self.end) = (0, 0);
        match rustix::net::recv(from, self.buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.open = false,
            Ok((_, n_bytes)) if allowance.take(n_bytes as u64) => self.end = n_bytes,
            Ok(_) => return Err(RelayEnd::Spent),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(_) => return Err(RelayEnd::Reset),
        }
        Ok(true)
    }

    /// Writes once and returns whether everything was taken.
    fn write(&mut self, to: &TcpStream) -> Result<bool, RelayEnd> {
        let bytes = self.buffer.get(self.begin..self.end).unwrap_or_default();
        match rustix::net::send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(n_bytes) => {
                self.begin += n_bytes;
                self.n_sent += n_bytes as u64;
                Ok(self.is_empty())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(_) => Err(RelayEnd::Reset),
        }
    }
}
