//! Standard input that ends when the process is told to stop.
//!
//! A reader in a system call would not notice a signal that another thread took.

use std::io::{self, Read};
use std::time::Duration;

use kapi_sys::signal::Interrupts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;
use rustix::io::Errno;

/// How often it is looked whether the process is told to stop.
const LOOK: Duration = Duration::from_millis(500);

/// Standard input, until an interrupt.
pub(crate) struct Input<'a> {
    interrupts: &'a Interrupts,
}

impl<'a> Input<'a> {
    /// Reads until the input ends or the interrupts are raised.
    pub(crate) const fn new(interrupts: &'a Interrupts) -> Self {
        Self { interrupts }
    }

    fn is_readable() -> io::Result<bool> {
        let limit = Timespec::try_from(LOOK).map_err(io::Error::other)?;
        let stdin = rustix::stdio::stdin();
        let stdin = stdin.as_fd();
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&limit)) {
            Ok(n_ready) => Ok(n_ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.interrupts.is_raised() {
            if Self::is_readable()? {
                return Ok(rustix::io::read(rustix::stdio::stdin(), buffer)?);
            }
        }
        Ok(0)
    }
}
