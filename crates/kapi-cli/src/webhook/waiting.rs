//! Connections whose callers have not shown the secret yet: a bounded number of them.
//!
//! One more closes the oldest: whoever knows the secret shows it at once, so slow strangers cannot
//! keep the port from those who call. Knows nothing of what is said.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that may be open without the secret. Fewer than may be open at all, so that there is
/// always room for the one that closes another.
pub(crate) const STRANGERS_MAX: usize = 16;

/// The connections of strangers, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct ConnectionQueue {
    open: Mutex<OpenConnection>,
}

#[derive(Debug, Default)]
struct OpenConnection {
    next: u64,
    streams: VecDeque<(u64, TcpStream)>,
}

/// A connection among those of strangers, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stranger<'a> {
    waiting: &'a ConnectionQueue,
    number: u64,
}

impl ConnectionQueue {
    /// Takes a connection in, and closes the oldest if there are too many.
    pub(crate) fn enter(&self, stream: &TcpStream) -> io::Result<Stranger<'_>> {
        let stream = stream.try_clone()?;
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.streams.push_back((number, stream));
        if open.streams.len() > STRANGERS_MAX
            && let Some((_, oldest)) = open.streams.pop_front()
        {
            // One that is closed already is what was wanted.
            drop(oldest.shutdown(Shutdown::Both));
        }
        drop(open);
        Ok(Stranger {
            waiting: self,
            number,
        })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnection> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        let mut open = self.waiting.open();
        open.streams.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};

    use super::{ConnectionQueue, STRANGERS_MAX};

    #[test]
    fn one_more_closes_the_oldest_that_has_not_shown_the_secret() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = ConnectionQueue::default();
        let mut callers = Vec::new();
        let mut served = Vec::new();
        for _ in 0..=STRANGERS_MAX {
            callers.push(TcpStream::connect(address).unwrap());
            served.push(listener.accept().unwrap().0);
        }
        let mut strangers = Vec::new();
        for stream in served.iter().take(STRANGERS_MAX) {
            strangers.push(waiting.enter(stream).unwrap());
        }
        // The first shows it, so the second is the oldest stranger, and there is room for one more.
        drop(strangers.remove(0));
        strangers.push(waiting.enter(&served[STRANGERS_MAX]).unwrap());
        callers.push(TcpStream::connect(address).unwrap());
        served.push(listener.accept().unwrap().0);
        strangers.push(waiting.enter(&served[STRANGERS_MAX + 1]).unwrap());
        let mut end = [0_u8; 1];
        assert_eq!(callers[1].read(&mut end).unwrap(), 0, "it was closed");
        for idx in [0, 2] {
            callers[idx].set_nonblocking(true).unwrap();
            let kind = callers[idx].read(&mut end).unwrap_err().kind();
            assert_eq!(kind, std::io::ErrorKind::WouldBlock, "{idx} is open");
        }
    }
}
