//! One connection to a provider: a socket with time limits, in plain text or under TLS.
//!
//! The socket comes from elsewhere; the handshake is here, and that every wait has an end. It does
//! not know what is sent.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::egress::dial;
use crate::egress::host::TargetHost;
use crate::http::timed::TimedSocket;
use crate::model::route::{BaseUrl, Scheme};
use crate::serve::StopSignal;

/// Why no connection could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The provider cannot be reached.
    #[error(transparent)]
    Dial(#[from] dial::DialError),
    /// The host cannot be named in a certificate.
    #[error("name {host} in a TLS handshake")]
    Name {
        /// The host.
        host: String,
        /// What is wrong with it.
        #[source]
        source: InvalidDnsNameError,
    },
    /// TLS refused its parameters.
    #[error("start TLS with {host}")]
    Tls {
        /// The host.
        host: String,
        /// What the library said.
        #[source]
        source: rustls::Error,
    },
    /// The handshake failed; an unknown certificate is one reason.
    #[error("agree on TLS with {host}")]
    Handshake {
        /// The host.
        host: String,
        /// What the library or the system said.
        #[source]
        source: io::Error,
    },
}

/// How long a connection may be waited for; every clone changes the same limits, also while
/// somebody else reads.
#[derive(Debug, Clone)]
pub(crate) struct WirePatience(Arc<Mutex<WireLimits>>);

#[derive(Debug, Clone, Copy)]
struct WireLimits {
    silence_max: Duration,
    deadline: Option<Instant>,
}

impl WirePatience {
    fn new(silence_max: Duration, deadline: Option<Instant>) -> Self {
        Self(Arc::new(Mutex::new(WireLimits {
            silence_max,
            deadline,
        })))
    }

    /// Sets how long each later wait may be, and when the last of them must end.
    pub(crate) fn set(&self, silence_max: Duration, deadline: Option<Instant>) {
        *self.limits() = WireLimits {
            silence_max,
            deadline,
        };
    }

    fn limits(&self) -> MutexGuard<'_, WireLimits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket whose time limits can be changed between two waits.
#[derive(Debug)]
struct WireSocket {
    stream: Arc<TcpStream>,
    patience: WirePatience,
}

impl WireSocket {
    fn timed(&self) -> TimedSocket<'_> {
        let limits = *self.patience.limits();
        let mut timed = TimedSocket::new(&*self.stream, limits.silence_max);
        timed.set_deadline(limits.deadline);
        timed
    }
}

impl Read for WireSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.timed().read(buffer)
    }
}

impl Write for WireSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.timed().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection to a provider.
#[derive(Debug)]
pub(crate) struct Wire(WireLayer);

#[derive(Debug)]
enum WireLayer {
    Plain(WireSocket),
    Tls(Box<StreamOwned<ClientConnection, WireSocket>>),
}

impl Wire {
    /// Takes a socket, and speaks TLS over it if the scheme says so, until `deadline`.
    pub(crate) fn open(
        stream: TcpStream,
        base_url: &BaseUrl,
        tls: &Arc<ClientConfig>,
        deadline: Instant,
        stop: &StopSignal,
    ) -> Result<Self, ConnectError> {
        let stream = Arc::new(stream);
        let left = deadline.saturating_duration_since(Instant::now());
        let mut socket = WireSocket {
            stream: Arc::clone(&stream),
            patience: WirePatience::new(left, Some(deadline)),
        };
        if base_url.scheme == Scheme::Http {
            return Ok(Self(WireLayer::Plain(socket)));
        }
        let host = &base_url.endpoint.host;
        let _watched = stop.watch(&stream);
        let mut session = client(host, tls)?;
        while session.is_handshaking() {
            let failed = |source| ConnectError::Handshake {
                host: host.to_string(),
                source,
            };
            session.complete_io(&mut socket).map_err(failed)?;
        }
        let stream = StreamOwned::new(session, socket);
        Ok(Self(WireLayer::Tls(Box::new(stream))))
    }

    /// Returns the socket below, to be watched.
    pub(crate) fn socket(&self) -> &Arc<TcpStream> {
        match &self.0 {
            WireLayer::Plain(socket) => &socket.stream,
            WireLayer::Tls(stream) => &stream.sock.stream,
        }
    }

    /// Returns the limits of every wait for it.
    pub(crate) fn patience(&self) -> &WirePatience {
        match &self.0 {
            WireLayer::Plain(socket) => &socket.patience,
            WireLayer::Tls(stream) => &stream.sock.patience,
        }
    }

    /// Tells whether an idle connection is still open and has nothing to say.
    pub(crate) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut byte = [0_u8; 1];
        rustix::net::recv(&**self.socket(), &mut byte, flags).err() == Some(Errno::AGAIN)
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            WireLayer::Plain(socket) => socket.read(buffer),
            WireLayer::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            WireLayer::Plain(socket) => socket.write(bytes),
            WireLayer::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            WireLayer::Plain(socket) => socket.flush(),
            WireLayer::Tls(stream) => stream.flush(),
        }
    }
}

fn client(host: &TargetHost, tls: &Arc<ClientConfig>) -> Result<ClientConnection, ConnectError> {
    let name = match host {
        TargetHost::Address(address) => ServerName::from(*address),
        TargetHost::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|source| ConnectError::Name {
                host: name.clone(),
                source,
            })?
        }
    };
    ClientConnection::new(Arc::clone(tls), name).map_err(|source| ConnectError::Tls {
        host: host.to_string(),
        source,
    })
}
