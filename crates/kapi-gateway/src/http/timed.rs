//! A socket whose every wait has an end.
//!
//! Never blocks in the kernel's read or write: it tries, and then waits for readiness as long as it
//! may. Works on blocking and non-blocking sockets alike; a shutdown from elsewhere wakes it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// A socket read and written with time limits; each wait that runs out is `TimedOut`.
#[derive(Debug)]
pub struct TimedSocket<'a> {
    socket: BorrowedFd<'a>,
    idle_max: Duration,
    deadline: Option<Instant>,
}

impl<'a> TimedSocket<'a> {
    /// Returns `socket` with at most `idle_max` of silence in each read or write.
    #[must_use]
    pub fn new(socket: &'a impl AsFd, idle_max: Duration) -> Self {
        Self {
            socket: socket.as_fd(),
            idle_max,
            deadline: None,
        }
    }

    /// Sets how long a single read or write may be silent.
    pub fn set_idle_max(&mut self, idle_max: Duration) {
        self.idle_max = idle_max;
    }

    /// Sets a moment past which it never waits, or takes it away.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let left = self.deadline.map_or(self.idle_max, |deadline| {
            deadline
                .saturating_duration_since(Instant::now())
                .min(self.idle_max)
        });
        if ready(&mut [PollFd::from_borrowed_fd(self.socket, flags)], left)? {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

impl io::Read for TimedSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, n_bytes)) => return Ok(n_bytes),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl io::Write for TimedSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            match rustix::net::send(self.socket, bytes, flags) {
                Ok(n_bytes) => return Ok(n_bytes),
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the moment after `duration`, or a year from now if that is sooner.
///
/// A clock that counts nanoseconds overflows long before a duration does.
pub(crate) fn moment_after(duration: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + duration.min(YEAR)
}

/// Waits until one of `fds` is ready or `timeout` is over, and returns whether one is.
pub(crate) fn ready(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    let end = moment_after(timeout);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(fds, Some(&timeout)) {
            Ok(n_ready) => return Ok(n_ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
