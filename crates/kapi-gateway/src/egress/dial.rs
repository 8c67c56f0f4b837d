//! Looking a host up, judging every answer, and connecting to one that was judged.
//!
//! A name is looked up once and the judged address is dialled, so an answer that changes afterwards
//! changes nothing. A host that needs a proxy asks it for the judged address as well, and for a name
//! only where the rule covers whatever the name may mean. Does not decide whether the name is allowed.

mod tunnel;

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::address::{AddressClass, AddressReach, classify};
use super::host::{HostEndpoint, TargetHost};
use super::host_proxy::{HostProxy, ParentProxy};
use crate::http::timed::ready;
use crate::serve::StopSignal;

/// Lookups under way at once; a resolver that hangs cannot gather more threads than this.
const LOOKUPS_MAX: usize = 64;

/// Addresses of one host that are tried in turn.
const ADDRESSES_MAX: usize = 4;

/// Looks up a host's addresses with the port that was asked for.
pub type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Makes connections from the host.
#[derive(Clone)]
pub struct Dialer {
    resolve: Resolve,
    lookup_time_max: Duration,
    connect_time_max: Duration,
    n_lookups: Arc<AtomicUsize>,
    host_proxy: Option<HostProxy>,
}

/// Why no connection was made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The resolver found nothing.
    #[error("look up {host}")]
    Lookup {
        /// The host.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The resolver took too long, or too many lookups hang.
    #[error("look up {host} in time")]
    SlowLookup {
        /// The host.
        host: String,
    },
    /// The resolver answered with nothing.
    #[error("find an address of {host}")]
    NoAddress {
        /// The host.
        host: String,
    },
    /// Every address is one that the rule does not reach. A rule's no, not the world's.
    #[error("reach {endpoint}: its address {address} is {class}")]
    Forbidden {
        /// What was asked for.
        endpoint: HostEndpoint,
        /// One of its addresses.
        address: IpAddr,
        /// What that address is for.
        class: AddressClass,
    },
    /// The last address that was tried refused.
    #[error("connect to {address}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The last address that was tried did not answer.
    #[error("connect to {address} in time")]
    SlowConnect {
        /// The address.
        address: SocketAddr,
    },
    /// The proxy that this host needs did not make the connection.
    #[error("connect to {endpoint} through the proxy {proxy} of this host: {why}")]
    Refused {
        /// What was asked for.
        endpoint: String,
        /// The proxy.
        proxy: HostEndpoint,
        /// What it said.
        why: String,
    },
    /// The run is ending.
    #[error("connect before the run ended")]
    Stopped,
    /// The system has nothing left to connect with.
    #[error("prepare a connection")]
    System(#[source] io::Error),
}

/// Returns the resolver of this machine.
#[must_use]
pub fn system_resolve() -> Resolve {
    Arc::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
}

impl fmt::Debug for Dialer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Dialer")
            .field("lookup_time_max", &self.lookup_time_max)
            .field("connect_time_max", &self.connect_time_max)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Returns a dialer with the most time for a lookup and for each connection.
    #[must_use]
    pub fn new(resolve: Resolve, lookup_time_max: Duration, connect_time_max: Duration) -> Self {
        Self {
            resolve,
            lookup_time_max,
            connect_time_max,
            n_lookups: Arc::new(AtomicUsize::new(0)),
            host_proxy: None,
        }
    }

    /// Goes out through the proxies that this host needs.
    #[must_use]
    pub fn through(mut self, host_proxy: Option<HostProxy>) -> Self {
        self.host_proxy = host_proxy;
        self
    }

    /// Connects to an endpoint whose addresses `reach` covers; `stop` ends every wait.
    ///
    /// The socket is non-blocking and not watched by `stop` yet.
    pub fn dial(
        &self,
        endpoint: &HostEndpoint,
        reach: AddressReach,
        stop: &StopSignal,
    ) -> Result<TcpStream, DialError> {
        let way = self
            .host_proxy
            .as_ref()
            .and_then(|proxy| proxy.way(endpoint));
        if let Some(way) = way {
            return self.dial_through(way, endpoint, reach, stop);
        }
        let found = self.addresses(endpoint, stop)?;
        let covered = |address: &&SocketAddr| reach.covers(classify(address.ip()));
        let addresses: Vec<SocketAddr> = found.iter().filter(covered).copied().collect();
        let mut error = match found.first() {
            None => DialError::NoAddress {
                host: endpoint.host.to_string(),
            },
            Some(first) => DialError::Forbidden {
                endpoint: endpoint.clone(),
                address: first.ip(),
                class: classify(first.ip()),
            },
        };
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            match self.connect(address, stop) {
                Ok(stream) => return Ok(stream),
                Err(DialError::Stopped) => return Err(DialError::Stopped),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// Asks a proxy for the endpoint: by an address that was judged, or by name where the rule covers
    /// private addresses too and so nothing is left to judge.
    fn dial_through(
        &self,
        way: &ParentProxy,
        endpoint: &HostEndpoint,
        reach: AddressReach,
        stop: &StopSignal,
    ) -> Result<TcpStream, DialError> {
        let asked = if reach >= AddressReach::PrivateByName {
            endpoint.to_string()
        } else {
            let found = self.addresses(endpoint, stop)?;
            let Some(first) = found.first() else {
                return Err(DialError::NoAddress {
                    host: endpoint.host.to_string(),
                });
            };
            let mut judged = found.iter();
            let covered = judged.find(|address| reach.covers(classify(address.ip())));
            let covered = covered.ok_or_else(|| DialError::Forbidden {
                endpoint: endpoint.clone(),
                address: first.ip(),
                class: classify(first.ip()),
            })?;
            covered.to_string()
        };
        let mut error = DialError::NoAddress {
            host: way.endpoint.host.to_string(),
        };
        // The person named the proxy, wherever it is.
        for address in self
            .addresses(&way.endpoint, stop)?
            .into_iter()
            .take(ADDRESSES_MAX)
        {
            let opened = self.connect(address, stop);
            let tunnel = opened.and_then(|stream| {
                tunnel::ask(&stream, way, &asked, self.connect_time_max).map(|()| stream)
            });
            match tunnel {
                Ok(stream) => return Ok(stream),
                Err(stopped @ (DialError::Stopped | DialError::Refused { .. })) => {
                    return Err(stopped);
                }
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// Connects to one address.
    pub fn connect(&self, address: SocketAddr, stop: &StopSignal) -> Result<TcpStream, DialError> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)
            .map_err(|errno| DialError::System(errno.into()))?;
        let refused = |errno: Errno| DialError::Connect {
            address,
            source: errno.into(),
        };
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                let mut fds = [
                    PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT),
                    PollFd::from_borrowed_fd(stop.event(), PollFlags::IN),
                ];
                let in_time = ready(&mut fds, self.connect_time_max).map_err(DialError::System)?;
                if stop.is_raised() {
                    return Err(DialError::Stopped);
                }
                if !in_time {
                    return Err(DialError::SlowConnect { address });
                }
                rustix::net::sockopt::socket_error(&socket)
                    .and_then(|outcome| outcome)
                    .map_err(refused)?;
            }
            Err(errno) => return Err(refused(errno)),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).map_err(DialError::System)?;
        Ok(stream)
    }

    fn addresses(
        &self,
        endpoint: &HostEndpoint,
        stop: &StopSignal,
    ) -> Result<Vec<SocketAddr>, DialError> {
        match &endpoint.host {
            TargetHost::Address(address) => Ok(vec![SocketAddr::new(*address, endpoint.port)]),
            TargetHost::Name(name) => self.look_up(name, endpoint.port, stop),
        }
    }

    /// Asks the resolver on a thread of its own, which is left behind when it takes too long: the
    /// system's resolver cannot be interrupted, and it gives up by itself.
    fn look_up(
        &self,
        host: &str,
        port: u16,
        stop: &StopSignal,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let slow = || DialError::SlowLookup {
            host: host.to_owned(),
        };
        let lookup = Arc::new(Lookup::new()?);
        if self.n_lookups.fetch_add(1, Ordering::SeqCst) >= LOOKUPS_MAX {
            self.n_lookups.fetch_sub(1, Ordering::SeqCst);
            return Err(slow());
        }
        let name = host.to_owned();
        let (resolve, theirs) = (Arc::clone(&self.resolve), Arc::clone(&lookup));
        let n_lookups = Arc::clone(&self.n_lookups);
        let started = thread::Builder::new()
            .name("lookup".to_owned())
            .spawn(move || {
                theirs.finish(resolve(&name, port));
                n_lookups.fetch_sub(1, Ordering::SeqCst);
            });
        if let Err(error) = started {
            self.n_lookups.fetch_sub(1, Ordering::SeqCst);
            return Err(DialError::System(error));
        }
        let mut fds = [
            PollFd::from_borrowed_fd(lookup.done.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stop.event(), PollFlags::IN),
        ];
        ready(&mut fds, self.lookup_time_max).map_err(DialError::System)?;
        if stop.is_raised() {
            return Err(DialError::Stopped);
        }
        let answer = lookup
            .answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let answer = answer.ok_or_else(slow)?;
        answer.map_err(|source| DialError::Lookup {
            host: host.to_owned(),
            source,
        })
    }
}

/// A resolver's answer and a descriptor that is readable once it is there.
struct Lookup {
    done: OwnedFd,
    answer: Mutex<Option<io::Result<Vec<SocketAddr>>>>,
}

impl Lookup {
    fn new() -> Result<Self, DialError> {
        let done = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| DialError::System(errno.into()))?;
        Ok(Self {
            done,
            answer: Mutex::new(None),
        })
    }

    fn finish(&self, answer: io::Result<Vec<SocketAddr>>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        let written = rustix::io::write(&self.done, &1_u64.to_ne_bytes());
        assert!(written.is_ok(), "an empty eventfd takes eight bytes");
    }
}
