//! One connection to one server: made, let in, and spoken over until it breaks.
//!
//! Every wait has an end. Nothing is tried twice here: whoever owns the link throws it away when
//! anything is wrong with it, and makes another.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde::{Deserialize, Serialize};

use crate::address::{Authentication, ServerAddress};
use crate::credentials::SignedCredentials;
use crate::error::LinkError;
use crate::wire::{self, DeliveredMessage, ServerMessage};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// The longest that making a connection takes.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Silence after which a server is asked whether it is there.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Who asks, and how.
pub(crate) struct ClientIdentity {
    pub(crate) proof: Authentication,
    pub(crate) needs_tls: bool,
    pub(crate) tls: Arc<ClientConfig>,
}

/// A connection, let in.
pub(crate) struct ServerLink {
    server: String,
    socket: LinkSocket,
    held: Vec<u8>,
    /// The most bytes that the server takes in one message.
    pub(crate) payload_bytes_max: usize,
}

/// Why a server did not let us in, or why it could not be reached.
#[derive(Debug)]
pub(crate) enum LinkFailure {
    /// Another try, or another server, may help.
    Link(LinkError),
    /// It will not.
    NotLetIn(String),
}

impl From<LinkError> for LinkFailure {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

enum LinkSocket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// What a server says of itself; it says more.
#[derive(Debug, Default, Deserialize)]
struct Info {
    #[serde(default)]
    max_payload: usize,
    #[serde(default)]
    tls_required: bool,
    #[serde(default)]
    nonce: String,
    #[serde(default)]
    headers: bool,
}

#[derive(Serialize)]
struct Connect<'a> {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    name: &'static str,
    lang: &'static str,
    version: &'static str,
    protocol: u8,
    headers: bool,
    no_responders: bool,
    echo: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sig: Option<String>,
}

impl ServerLink {
    /// Connects and is let in, by `deadline`.
    pub(crate) fn open(
        server: &ServerAddress,
        caller: &ClientIdentity,
        credentials: Option<&SignedCredentials>,
        deadline: Instant,
    ) -> Result<Self, LinkFailure> {
        let deadline = deadline.min(Instant::now() + CONNECT_MAX);
        let name = server.to_string();
        let stream = dial(server, deadline)?;
        let mut link = Self {
            server: name,
            socket: LinkSocket::Plain(stream),
            held: Vec::new(),
            payload_bytes_max: 0,
        };
        let info = link.read_info(deadline)?;
        if !info.headers {
            return Err(link.protocol("it does not know headers").into());
        }
        link.payload_bytes_max = info.max_payload;
        let is_tls = info.tls_required || caller.needs_tls;
        if is_tls {
            link = link.into_tls(&server.host, &caller.tls)?;
        }
        let mut connect = Connect {
            verbose: false,
            pedantic: false,
            tls_required: is_tls,
            name: "kapi",
            lang: "kapi",
            version: env!("CARGO_PKG_VERSION"),
            protocol: 1,
            headers: true,
            no_responders: true,
            echo: true,
            user: None,
            pass: None,
            auth_token: None,
            jwt: None,
            sig: None,
        };
        match &caller.proof {
            Authentication::None | Authentication::File(_) => {}
            Authentication::Token(token) => connect.auth_token = Some(token),
            Authentication::Password { user, password } => {
                connect.user = Some(user);
                connect.pass = Some(password);
            }
        }
        if let Some(credentials) = credentials {
            connect.jwt = Some(&credentials.statement);
            connect.sig = Some(credentials.sign(&info.nonce));
        }
        link.greet(&connect, deadline)?;
        Ok(link)
    }

    /// Returns the server's name.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Sends bytes of the protocol.
    pub(crate) fn write(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), LinkError> {
        let left = left(deadline);
        let sent = self
            .socket
            .tcp()
            .set_write_timeout(Some(left))
            .and_then(|()| {
                self.socket.write_all(bytes)?;
                self.socket.flush()
            });
        sent.map_err(|source| self.broken(source))
    }

    /// Waits for the next message; `None` at the deadline. Answers the server's own questions,
    /// and finds out when nobody is at the other end any more.
    pub(crate) fn next(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<DeliveredMessage>, LinkError> {
        let mut asked = false;
        loop {
            let quiet = Instant::now() + SILENCE_MAX;
            match self.said(deadline.min(quiet))? {
                Some(ServerMessage::Message(message)) => return Ok(Some(message)),
                Some(ServerMessage::Ping) => self.write(b"PONG\r\n", quiet)?,
                Some(ServerMessage::Pong | ServerMessage::Ok | ServerMessage::Info(_)) => {
                    asked = false;
                }
                Some(ServerMessage::Error(said)) => {
                    // A refused subject is an answer that never comes; the rest ends the link.
                    let server = self.server.clone();
                    return Err(LinkError::Said { server, said });
                }
                None if Instant::now() >= deadline => return Ok(None),
                None if asked => {
                    let server = self.server.clone();
                    return Err(LinkError::Silent { server });
                }
                None => {
                    self.write(b"PING\r\n", quiet)?;
                    asked = true;
                }
            }
        }
    }

    /// Asks the server whether everything sent so far has arrived, and waits for its word.
    pub(crate) fn flush(&mut self, deadline: Instant) -> Result<(), LinkError> {
        self.write(b"PING\r\n", deadline)?;
        loop {
            match self.said(deadline)? {
                Some(ServerMessage::Pong) => return Ok(()),
                Some(ServerMessage::Ping) => self.write(b"PONG\r\n", deadline)?,
                Some(ServerMessage::Error(said)) => {
                    let server = self.server.clone();
                    return Err(LinkError::Said { server, said });
                }
                Some(ServerMessage::Message(_) | ServerMessage::Ok | ServerMessage::Info(_)) => {}
                None => {
                    let server = self.server.clone();
                    return Err(LinkError::Silent { server });
                }
            }
        }
    }

    fn greet(&mut self, connect: &Connect<'_>, deadline: Instant) -> Result<(), LinkFailure> {
        let json = serde_json::to_string(connect)
            .map_err(|_| self.protocol("the greeting cannot be written"))?;
        let greeting = format!("CONNECT {json}\r\n");
        self.write(greeting.as_bytes(), deadline)?;
        match self.flush(deadline) {
            Ok(()) => Ok(()),
            Err(LinkError::Said { said, .. }) if is_about_us(&said) => {
                Err(LinkFailure::NotLetIn(said))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_info(&mut self, deadline: Instant) -> Result<Info, LinkFailure> {
        match self.said(deadline)? {
            Some(ServerMessage::Info(json)) => serde_json::from_slice(&json)
                .map_err(|_| self.protocol("it does not describe itself").into()),
            Some(ServerMessage::Error(said)) => {
                let server = self.server.clone();
                Err(LinkError::Said { server, said }.into())
            }
            Some(
                ServerMessage::Message(_)
                | ServerMessage::Ping
                | ServerMessage::Pong
                | ServerMessage::Ok,
            ) => Err(self
                .protocol("it does not begin with its description")
                .into()),
            None => {
                let server = self.server.clone();
                Err(LinkError::Silent { server }.into())
            }
        }
    }

    fn into_tls(self, host: &str, config: &Arc<ClientConfig>) -> Result<Self, LinkError> {
        let server = self.server;
        let failed = |what: String| LinkError::Tls {
            server: server.clone(),
            what,
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(e.to_string()))?;
        let session = ClientConnection::new(Arc::clone(config), name);
        let session = session.map_err(|error| failed(error.to_string()))?;
        let LinkSocket::Plain(tcp) = self.socket else {
            return Err(failed("it is already in use".to_owned()));
        };
        let mut stream = StreamOwned::new(session, tcp);
        while stream.conn.is_handshaking() {
            let StreamOwned { conn, sock } = &mut stream;
            conn.complete_io(sock).map_err(|e| failed(e.to_string()))?;
        }
        Ok(Self {
            socket: LinkSocket::Tls(Box::new(stream)),
            server,
            held: Vec::new(),
            payload_bytes_max: self.payload_bytes_max,
        })
    }

    /// Returns what the server says next; `None` when it says nothing until the deadline.
    fn said(&mut self, deadline: Instant) -> Result<Option<ServerMessage>, LinkError> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match wire::take(&mut self.held) {
                Ok(Some(said)) => return Ok(Some(said)),
                Ok(None) => {}
                Err(what) => return Err(self.protocol(what)),
            }
            let wait = left(deadline);
            let read = self.socket.tcp().set_read_timeout(Some(wait));
            match read.and_then(|()| self.socket.read(&mut buffer)) {
                Ok(0) => {
                    let server = self.server.clone();
                    return Err(LinkError::Closed { server });
                }
                Ok(n) => self
                    .held
                    .extend_from_slice(buffer.get(..n).unwrap_or_default()),
                Err(error) if !is_passing(&error) => return Err(self.broken(error)),
                Err(_) if Instant::now() >= deadline => return Ok(None),
                Err(_) => {}
            }
        }
    }

    fn broken(&self, source: io::Error) -> LinkError {
        LinkError::Io {
            server: self.server.clone(),
            source,
        }
    }

    fn protocol(&self, what: &'static str) -> LinkError {
        LinkError::Protocol {
            server: self.server.clone(),
            what,
        }
    }
}

impl LinkSocket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(stream) => &stream.sock,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

fn dial(server: &ServerAddress, deadline: Instant) -> Result<TcpStream, LinkError> {
    let name = server.to_string();
    let resolved = (server.host.as_str(), server.port).to_socket_addrs();
    let addresses = resolved.map_err(|source| LinkError::Resolve {
        server: name.clone(),
        source,
    })?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        let dialled = TcpStream::connect_timeout(&address, left(deadline)).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(left(deadline)))?;
            stream.set_write_timeout(Some(left(deadline)))?;
            Ok(stream)
        });
        match dialled {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(LinkError::Io {
        server: name,
        source: last,
    })
}

/// A wait of no time at all would be a wait without end.
fn left(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

/// Tells whether nothing is wrong but that nothing came.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Tells whether the server does not like who we are, which no second try changes.
fn is_about_us(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    said.contains("authorization") || said.contains("authentication")
}
