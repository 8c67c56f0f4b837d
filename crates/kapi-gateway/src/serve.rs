//! Accepting connections on a listener until it is told to stop.
//!
//! One scoped thread a connection, never more than a named number of them. Knows no protocol and
//! never learns who listens: the listener may have been made inside another network namespace.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

/// Virtual size of a connection's stack; only what is touched becomes memory.
const STACK_BYTES: usize = 1024 * 1024;

/// Pause after the system had no descriptor or memory left for a new connection.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(50);

/// Why accepting could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The eventfd behind a [`StopSignal`] was refused.
    #[error("make an eventfd")]
    Event(#[source] io::Error),
    /// The listener is not one, or it broke.
    #[error("accept a connection")]
    Accept(#[source] io::Error),
    /// Waiting for the listener was refused.
    #[error("wait for connections")]
    Wait(#[source] io::Error),
}

/// What a listener may use.
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Connections open at once; more wait in the listener's queue until one closes.
    pub connections_max: usize,
}

/// A stop sign shared by everything that serves one run.
///
/// Raising it wakes every listener and shuts down every watched socket, so that no thread stays
/// blocked. It is never lowered.
#[derive(Clone)]
pub struct StopSignal(Arc<StopState>);

struct StopState {
    raised: AtomicBool,
    event: OwnedFd,
    next_id: AtomicU64,
    watched: Mutex<BTreeMap<u64, Arc<dyn AsFd + Send + Sync>>>,
}

/// Keeps a socket under a [`StopSignal`] until it is dropped.
pub struct StopGuard {
    stop: StopSignal,
    id: u64,
}

impl StopSignal {
    /// Returns a stop sign that is not raised.
    pub fn new() -> Result<Self, ServeError> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| ServeError::Event(errno.into()))?;
        Ok(Self(Arc::new(StopState {
            raised: AtomicBool::new(false),
            event,
            next_id: AtomicU64::new(0),
            watched: Mutex::new(BTreeMap::new()),
        })))
    }

    /// Raises the sign: listeners return and watched sockets are shut down, now and later.
    pub fn raise(&self) {
        let watched = self.watched();
        self.0.raised.store(true, Ordering::SeqCst);
        signal(self.0.event.as_fd());
        for socket in watched.values() {
            shut_down(socket.as_fd());
        }
    }

    /// Returns whether the sign was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst)
    }

    /// Puts a socket under the sign; if it is raised already, the socket is shut down at once.
    #[must_use]
    pub fn watch<S: AsFd + Send + Sync + 'static>(&self, socket: &Arc<S>) -> StopGuard {
        let id = self.0.next_id.fetch_add(1, Ordering::SeqCst);
        let mut watched = self.watched();
        if self.is_raised() {
            shut_down(socket.as_fd());
        }
        let socket: Arc<dyn AsFd + Send + Sync> = Arc::<S>::clone(socket);
        watched.insert(id, socket);
        drop(watched);
        StopGuard {
            stop: self.clone(),
            id,
        }
    }

    /// Returns a descriptor that is readable from the moment the sign is raised.
    #[must_use]
    pub fn event(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<dyn AsFd + Send + Sync>>> {
        self.0
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        drop(self.stop.watched().remove(&self.id));
    }
}

/// Serves TCP connections until `stop` is raised and the last of them is closed.
///
/// Blocks the calling thread. Each accepted socket is watched by `stop`, so a handler that only
/// reads and writes its own connection ends by itself; sockets that it opens are its to watch.
pub fn serve(
    listener: &TcpListener,
    stop: &StopSignal,
    limits: ServeLimits,
    handle: &(dyn Fn(&TcpStream) + Sync),
) -> Result<(), ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Accept)?;
    let accept = || listener.accept().map(|(stream, _)| stream);
    let source = Source {
        listener: listener.as_fd(),
        accept: &accept,
    };
    accept_until_raised(&source, stop, limits, handle)
}

/// Serves connections of a Unix socket, as [`serve`] does.
pub fn serve_unix(
    listener: &UnixListener,
    stop: &StopSignal,
    limits: ServeLimits,
    handle: &(dyn Fn(&UnixStream) + Sync),
) -> Result<(), ServeError> {
    listener.set_nonblocking(true).map_err(ServeError::Accept)?;
    let accept = || listener.accept().map(|(stream, _)| stream);
    let source = Source {
        listener: listener.as_fd(),
        accept: &accept,
    };
    accept_until_raised(&source, stop, limits, handle)
}

/// A listener as a descriptor to wait for and a function that takes one connection from it.
struct Source<'a, S> {
    listener: BorrowedFd<'a>,
    accept: &'a (dyn Fn() -> io::Result<S> + Sync),
}

fn accept_until_raised<S: AsFd + Send + Sync + 'static>(
    source: &Source<'_, S>,
    stop: &StopSignal,
    limits: ServeLimits,
    handle: &(dyn Fn(&S) + Sync),
) -> Result<(), ServeError> {
    let closed = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| ServeError::Event(errno.into()))?;
    let n_open = AtomicUsize::new(0);
    thread::scope(|scope| {
        while !stop.is_raised() {
            let full = n_open.load(Ordering::SeqCst) >= limits.connections_max;
            let next = if full {
                closed.as_fd()
            } else {
                source.listener
            };
            wait_for_either(next, stop.event(), None)?;
            if full {
                drain(closed.as_fd());
                continue;
            }
            let Some(stream) = taken((source.accept)(), stop)? else {
                continue;
            };
            let (n_open, closed) = (&n_open, closed.as_fd());
            n_open.fetch_add(1, Ordering::SeqCst);
            let started = thread::Builder::new()
                .name("connection".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    let stream = Arc::new(stream);
                    let watched = stop.watch(&stream);
                    handle(&stream);
                    drop(watched);
                    drop(stream);
                    n_open.fetch_sub(1, Ordering::SeqCst);
                    signal(closed);
                });
            // Without a thread the connection was dropped, and with it closed.
            if started.is_err() {
                n_open.fetch_sub(1, Ordering::SeqCst);
                wait_for_either(stop.event(), stop.event(), Some(SHORTAGE_PAUSE))?;
            }
        }
        Ok(())
    })
}

/// Sorts what accepting gave: a connection, nothing this time, or a listener that is broken.
fn taken<S>(accepted: io::Result<S>, stop: &StopSignal) -> Result<Option<S>, ServeError> {
    let error = match accepted {
        Ok(stream) => return Ok(Some(stream)),
        Err(error) => error,
    };
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(
            rustix::io::Errno::MFILE
            | rustix::io::Errno::NFILE
            | rustix::io::Errno::NOBUFS
            | rustix::io::Errno::NOMEM,
        ) => {
            wait_for_either(stop.event(), stop.event(), Some(SHORTAGE_PAUSE))?;
            Ok(None)
        }
        Some(
            rustix::io::Errno::BADF
            | rustix::io::Errno::INVAL
            | rustix::io::Errno::NOTSOCK
            | rustix::io::Errno::OPNOTSUPP,
        ) => Err(ServeError::Accept(error)),
        // The peer gave up, or another process that holds the listener took the connection.
        _ => Ok(None),
    }
}

fn wait_for_either(
    one: BorrowedFd<'_>,
    other: BorrowedFd<'_>,
    timeout: Option<Duration>,
) -> Result<(), ServeError> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let mut fds = [
        PollFd::from_borrowed_fd(one, PollFlags::IN),
        PollFd::from_borrowed_fd(other, PollFlags::IN),
    ];
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(ServeError::Wait(errno.into())),
    }
}

/// Makes an eventfd readable. Its counter cannot overflow: it is drained or counts connections.
fn signal(event: BorrowedFd<'_>) {
    let written = rustix::io::write(event, &1_u64.to_ne_bytes());
    assert!(
        matches!(written, Ok(8) | Err(rustix::io::Errno::AGAIN)),
        "an eventfd takes eight bytes or is full, which is readable too"
    );
}

fn drain(event: BorrowedFd<'_>) {
    let mut count = [0_u8; 8];
    let read = rustix::io::read(event, &mut count);
    assert!(
        matches!(read, Ok(8) | Err(rustix::io::Errno::AGAIN)),
        "an eventfd gives eight bytes or is empty"
    );
}

#[expect(
    clippy::let_underscore_must_use,
    reason = "a socket that is not connected any more has nothing left to shut down"
)]
fn shut_down(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::{ServeError, ServeLimits, StopSignal, serve, serve_unix};

    const LIMITS: ServeLimits = ServeLimits { connections_max: 3 };

    fn echo(mut stream: &UnixStream) {
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
    }

    #[test]
    fn a_unix_socket_is_served_alike() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a listener");
        let stop = StopSignal::new().expect("a stop sign");
        thread::scope(|scope| {
            let served = scope.spawn(|| serve_unix(&listener, &stop, LIMITS, &echo));
            let mut client = UnixStream::connect(&path).expect("connect");
            client.write_all(b"x").expect("send");
            let mut byte = [0];
            client.read_exact(&mut byte).expect("an echo");
            stop.raise();
            assert!(served.join().expect("no panic").is_ok());
            assert_eq!(client.read(&mut byte).ok(), Some(0));
        });
    }

    #[test]
    fn a_listener_that_broke_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let stop = StopSignal::new().expect("a stop sign");
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).expect("shut down");
        let served = serve(&listener, &stop, LIMITS, &|_| {});
        assert!(matches!(served, Err(ServeError::Accept(_))), "{served:?}");
    }

    #[test]
    fn a_socket_that_comes_after_the_stop_is_shut_down_at_once() {
        let (one, mut other) = UnixStream::pair().expect("a pair");
        let one = Arc::new(one);
        let stop = StopSignal::new().expect("a stop sign");
        stop.raise();
        let watched = stop.watch(&one);
        assert_eq!(other.read(&mut [0]).ok(), Some(0));
        drop(watched);
        assert_eq!(Arc::strong_count(&one), 1, "nothing keeps the socket open");
    }

    #[test]
    fn no_more_connections_are_open_than_allowed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let stop = StopSignal::new().expect("a stop sign");
        let (began, has_begun) = channel();
        thread::scope(|scope| {
            let handle = |mut stream: &TcpStream| {
                began.clone().send(()).expect("a test");
                assert!(stream.read(&mut [0]).is_ok());
            };
            let (stop, listener) = (&stop, &listener);
            let served = scope.spawn(move || serve(listener, stop, LIMITS, &handle));
            let connect = |_| TcpStream::connect(address).expect("connect");
            let mut clients: Vec<TcpStream> = (0..5).map(connect).collect();
            for _ in 0..3 {
                has_begun.recv().expect("a connection");
            }
            assert!(has_begun.try_recv().is_err(), "two wait");
            drop(clients.drain(..1));
            has_begun.recv().expect("the fourth");
            stop.raise();
            assert!(served.join().expect("no panic").is_ok());
        });
    }
}
