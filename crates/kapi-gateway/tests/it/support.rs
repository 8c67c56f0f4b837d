//! A proxy, targets behind it and clients in front of it, all on loopback.
//!
//! Everything started here ends when it is dropped. Every wait has an end that fails the test.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kapi_gateway::egress::EgressLimits;
use kapi_gateway::egress::dial::Resolve;
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::egress::log::{ConnectionRecord, ConnectionVerdict};
use kapi_gateway::egress::policy::{EgressMode, EgressPolicy};
use kapi_gateway::egress::proxy::{Proxy, ProxyConfig};
use kapi_gateway::egress::rule::EgressRule;
use kapi_gateway::serve::{ServeLimits, StopSignal, serve};
use kapi_sys::clock::SystemClock;

/// Longest wait for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A thread that ends with its stop sign.
pub(crate) struct Background {
    pub(crate) stop: StopSignal,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(run: impl FnOnce(&StopSignal) + Send + 'static) -> Self {
        let stop = StopSignal::new().expect("a stop sign");
        let theirs = stop.clone();
        let thread = Some(thread::spawn(move || run(&theirs)));
        Self { stop, thread }
    }

    /// Raises the sign and waits until the thread has ended.
    pub(crate) fn end(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || thread::panicking(),
                "a background thread panicked"
            );
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

/// A server that a test reaches through the proxy.
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    _background: Background,
}

impl Target {
    /// Starts a server that runs `handle` on each connection.
    pub(crate) fn start(handle: impl Fn(&TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let n_connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_connections);
        let background = Background::start(move |stop| {
            let limits = ServeLimits {
                connections_max: 512,
            };
            let handle = |stream: &TcpStream| {
                counted.fetch_add(1, Ordering::SeqCst);
                handle(stream);
            };
            serve(&listener, stop, limits, &handle).expect("serve the target");
        });
        Self {
            address,
            n_connections,
            _background: background,
        }
    }

    /// Starts a server that sends back what it gets, and closes when the client has.
    pub(crate) fn echo() -> Self {
        Self::start(|mut stream| {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer)
                && stream.write_all(&buffer[..length]).is_ok()
            {}
        })
    }

    /// Starts a server that reads one request as far as its empty line and `body_length` bytes, tells
    /// it to the returned receiver, answers with `answer`, and closes.
    pub(crate) fn answering(body_length: usize, answer: &'static [u8]) -> (Self, Receiver<String>) {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let target = Self::start(move |mut stream| {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                request.push(byte[0]);
            }
            let mut body = vec![0; body_length];
            let whole = stream.read_exact(&mut body).is_ok();
            request.extend_from_slice(&body);
            if !whole || request.len() == body_length {
                return;
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            sender
                .lock()
                .expect("a lock")
                .send(request)
                .expect("a test");
            let sent = stream.write_all(answer);
            assert!(sent.is_ok() || answer.is_empty());
        });
        (target, receiver)
    }

    pub(crate) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::SeqCst)
    }
}

/// What a proxy under test is told.
pub(crate) struct Setup {
    pub(crate) mode: EgressMode,
    pub(crate) rules: Vec<String>,
    names: BTreeMap<String, Vec<SocketAddr>>,
    resolve: Option<Resolve>,
    host_proxy: Option<HostProxy>,
    pub(crate) limits: EgressLimits,
}

impl Setup {
    pub(crate) fn filtered(rules: &[&str]) -> Self {
        Self {
            mode: EgressMode::Filtered,
            rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
            names: BTreeMap::new(),
            resolve: None,
            host_proxy: None,
            limits: EgressLimits::usual(),
        }
    }

    /// Lets the resolver answer for a name.
    pub(crate) fn name(mut self, name: &str, addresses: &[SocketAddr]) -> Self {
        self.names.insert(name.to_owned(), addresses.to_vec());
        self
    }

    /// Uses another resolver.
    pub(crate) fn resolve(mut self, resolve: Resolve) -> Self {
        self.resolve = Some(resolve);
        self
    }

    /// Lets the machine need a proxy to get out.
    pub(crate) fn through(mut self, variables: &[(&str, &str)]) -> Self {
        let pairs = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        self.host_proxy = HostProxy::of(&pairs.collect()).expect("a proxy");
        self
    }

    /// Changes the limits.
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut EgressLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn start(self) -> Gate {
        Gate::start(self)
    }
}

/// A running proxy.
pub(crate) struct Gate {
    /// Ends before the receiver of its records is gone.
    pub(crate) background: Background,
    pub(crate) address: SocketAddr,
    pub(crate) records: Receiver<ConnectionRecord>,
    lookups: Arc<Mutex<Vec<String>>>,
}

impl Gate {
    fn start(setup: Setup) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let lookups = Arc::new(Mutex::new(Vec::new()));
        let (names, seen) = (setup.names, Arc::clone(&lookups));
        let by_name: Resolve = Arc::new(move |name, port| {
            seen.lock().expect("a lock").push(format!("{name}:{port}"));
            let found = names.get(name).cloned();
            found.ok_or_else(|| io::Error::other("no such name"))
        });
        let rules = setup.rules.iter();
        let config = ProxyConfig {
            policy: EgressPolicy {
                mode: setup.mode,
                rules: rules
                    .map(|text| EgressRule::parse(text).expect(text))
                    .collect(),
            },
            resolve: setup.resolve.unwrap_or(by_name),
            limits: setup.limits,
        };
        let host_proxy = setup.host_proxy;
        let (sender, records) = channel();
        let background = Background::start(move |stop| {
            let on_record = |record| sender.send(record).expect("a test");
            let proxy = Proxy::new(config, &SystemClock, &on_record).through(host_proxy);
            proxy.serve(&listener, stop).expect("serve the proxy");
        });
        Self {
            address,
            records,
            lookups,
            background,
        }
    }

    /// Connects a client.
    pub(crate) fn client(&self) -> TcpStream {
        connect(self.address)
    }

    /// Sends a whole request and returns everything that comes back.
    pub(crate) fn ask(&self, request: &[u8]) -> String {
        let mut client = self.client();
        // A refusal may come, and the connection end, before everything was written.
        if client.write_all(request).is_ok() {
            // A client that is refused may find its connection gone already.
            let half_closed = client.shutdown(Shutdown::Write);
            assert!(half_closed.is_ok() || half_closed.is_err_and(is_gone));
        }
        read_to_end(&mut client)
    }

    /// Opens a tunnel and asserts that it stands.
    pub(crate) fn tunnel(&self, target: &str) -> TcpStream {
        open_tunnel(self.address, target)
    }

    /// Waits for the next record.
    pub(crate) fn record(&self) -> ConnectionRecord {
        self.records.recv_timeout(PATIENCE).expect("a record")
    }

    /// Waits for the next record and returns it as one line, without its times.
    pub(crate) fn line(&self) -> String {
        line(&self.record())
    }

    /// Returns the names that were looked up.
    pub(crate) fn lookups(&self) -> Vec<String> {
        self.lookups.lock().expect("a lock").clone()
    }

    /// Asserts that nothing was recorded that was not taken, once the proxy has ended.
    pub(crate) fn end(mut self) {
        self.background.end();
        let left: Vec<String> = self
            .records
            .try_iter()
            .map(|record| line(&record))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

/// Returns a record as one line, without its times.
pub(crate) fn line(record: &ConnectionRecord) -> String {
    let request = match (&record.method, &record.path) {
        (Some(method), Some(path)) => format!(" {method} {path}"),
        _ => String::new(),
    };
    let verdict = match &record.verdict {
        ConnectionVerdict::Allowed { rule, cut: None } => format!("allowed by {rule}"),
        ConnectionVerdict::Allowed {
            rule,
            cut: Some(cut),
        } => format!("allowed by {rule}, cut: {cut}"),
        ConnectionVerdict::Denied { reason } => format!("denied: {reason}"),
        ConnectionVerdict::Failed { rule, reason } => {
            format!("allowed by {rule}, failed to {reason}")
        }
    };
    let (kind, host, port) = (record.kind, &record.host, record.port);
    let (up, down) = (record.bytes_up, record.bytes_down);
    format!("{kind:?} {host}:{port}{request} {verdict} up {up} down {down}")
}

/// Connects to an address with a limit on every read and write.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Opens a tunnel through the proxy at `address` and asserts that it stands.
pub(crate) fn open_tunnel(address: SocketAddr, target: &str) -> TcpStream {
    let mut client = connect(address);
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    client.write_all(request.as_bytes()).expect("send");
    let established = "HTTP/1.1 200 Connection Established\r\n\r\n";
    assert_eq!(read_exactly(&mut client, established.len()), established);
    client
}

/// Reads until the peer closes or resets; a peer that does neither fails the test.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    assert!(
        read.is_ok() || read.is_err_and(is_gone),
        "the peer must close: {:?}",
        String::from_utf8_lossy(&bytes)
    );
    String::from_utf8_lossy(&bytes).into_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "fits `is_err_and`")]
fn is_gone(error: io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe
    )
}

/// Reads exactly so many bytes as text.
pub(crate) fn read_exactly(stream: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).expect("bytes");
    String::from_utf8(bytes).expect("text")
}

/// Reads a head up to its empty line.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push_str(&read_exactly(stream, 1));
    }
    head
}

/// Returns the first line of an answer.
pub(crate) fn status(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

/// Returns an address with port 443, for the resolver's answers that must never be dialled.
pub(crate) fn at(address: &str) -> SocketAddr {
    SocketAddr::new(address.parse::<IpAddr>().expect("an address"), 443)
}

/// Returns a TLS ClientHello that names these servers, in one record.
pub(crate) fn client_hello(names: &[&str]) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).expect("short").to_be_bytes();
    let mut list = Vec::new();
    for name in names {
        list.push(0);
        list.extend(short(name.len()));
        list.extend(name.as_bytes());
    }
    let mut extensions = vec![0, 23, 0, 0];
    if !names.is_empty() {
        extensions.extend([0, 0]);
        extensions.extend(short(list.len() + 2));
        extensions.extend(short(list.len()));
        extensions.extend(list);
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend(short(extensions.len()));
    body.extend(extensions);
    let mut message = vec![1, 0];
    message.extend(short(body.len()));
    message.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend(short(message.len()));
    record.extend(message);
    record
}
