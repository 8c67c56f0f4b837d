//! What the gateway's tests stand on: an agent's side, a provider's side, and the gateway between.
//!
//! The provider is whatever a test says it does with each request; all of it is real sockets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use kapi_core::usage::Usage;
use kapi_gateway::egress::host_proxy::HostProxy;
use kapi_gateway::http::HeadLimits;
use kapi_gateway::http::head::{RequestHead, ResponseHead};
use kapi_gateway::http::reader::MessageReader;
use kapi_gateway::model::cassette::Cassette;
use kapi_gateway::model::dialect::ModelDialect;
use kapi_gateway::model::event::GatewayEvent;
use kapi_gateway::model::route::{AuthStyle, BaseUrl, ProviderRoute};
use kapi_gateway::model::rules::{CallRules, ProviderTools};
use kapi_gateway::model::secret::ProviderKey;
use kapi_gateway::model::wish::{CallAnswer, CallWish};
use kapi_gateway::model::{
    CallUsage, GatewayConfig, GatewayError, GatewayTotals, GatewayWatch, MeteredUsage,
    ModelGateway, Timeouts, UsageVerdict,
};
use kapi_gateway::serve::{ServeLimits, StopSignal, serve};

/// What the agent has in place of a key.
pub(crate) const PLACEHOLDER: &str = "kapi-run-7";
/// What must never be seen.
pub(crate) const SECRET: &str = "sk-real-and-very-secret-0123456789";
/// Longer than anything here takes, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const LIMITS: HeadLimits = HeadLimits {
    bytes_max: 64 * 1024,
    headers_max: 100,
    time_max: PATIENCE,
};

/// A request as the provider saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: RequestHead,
    pub(crate) body: Vec<u8>,
    /// The connection that it came on, counted from 0.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let value = self.head.headers.first(name)?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// Whether the provider takes another request on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
}

/// What the provider does with a request.
pub(crate) type Provide<'a> = &'a (dyn Fn(&Seen, &TcpStream) -> After + Sync);

/// What the gateway is made of, as far as tests differ.
pub(crate) struct Setup {
    pub(crate) dialect: ModelDialect,
    pub(crate) auth: AuthStyle,
    pub(crate) timeouts: Timeouts,
    pub(crate) cassette: Option<Cassette>,
    pub(crate) base_url: Option<String>,
    pub(crate) extra_authorities: Option<PathBuf>,
    /// The tokens after which the budget is spent.
    pub(crate) tokens_max: u64,
    pub(crate) host_proxy: Option<HostProxy>,
    pub(crate) rules: CallRules,
    /// What is answered to a call that wants to be sent.
    pub(crate) on_call: &'static (dyn Fn(&CallWish<'_>) -> CallAnswer + Sync),
}

impl Setup {
    pub(crate) fn new(dialect: ModelDialect) -> Self {
        let auth = match dialect {
            ModelDialect::Anthropic => AuthStyle::XApiKey,
            ModelDialect::Responses | ModelDialect::Chat => AuthStyle::Bearer,
            ModelDialect::Gemini => AuthStyle::XGoogApiKey,
        };
        Self {
            dialect,
            auth,
            timeouts: Timeouts {
                connect: PATIENCE,
                first_byte: PATIENCE,
                silence: PATIENCE,
                drain: PATIENCE,
                agent: PATIENCE,
            },
            cassette: None,
            base_url: None,
            extra_authorities: None,
            tokens_max: u64::MAX,
            host_proxy: None,
            rules: CallRules {
                models: Vec::new(),
                provider_tools: ProviderTools::TakenOut,
            },
            on_call: &|_| CallAnswer::unlimited(),
        }
    }
}

/// The running gateway, as a test sees it.
pub(crate) struct Rig<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: &'a ModelGateway<'a>,
    pub(crate) stop: &'a StopSignal,
    events: &'a Log,
    seen: &'a Mutex<Vec<Seen>>,
}

#[derive(Default)]
struct Log {
    events: Mutex<Vec<GatewayEvent>>,
    changed: Condvar,
    reported: Mutex<Usage>,
    estimated: Mutex<Usage>,
    ended: Mutex<Vec<u64>>,
}

impl Rig<'_> {
    pub(crate) fn events(&self) -> Vec<GatewayEvent> {
        self.events.events.lock().expect("no panic").clone()
    }

    /// What was told to the one who watches, summed up.
    pub(crate) fn reported(&self) -> Usage {
        *self.events.reported.lock().expect("no panic")
    }

    /// What was told as an estimate, summed up.
    pub(crate) fn estimated(&self) -> Usage {
        *self.events.estimated.lock().expect("no panic")
    }

    /// The calls that were told to have ended.
    pub(crate) fn ended(&self) -> Vec<u64> {
        self.events.ended.lock().expect("no panic").clone()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn totals(&self) -> GatewayTotals {
        self.gateway.totals()
    }

    /// Waits until something has happened.
    pub(crate) fn wait_for(&self, wanted: &dyn Fn(&GatewayEvent) -> bool) -> GatewayEvent {
        self.wait_until(&|events| events.iter().any(wanted));
        let mut events = self.events().into_iter();
        events.find(wanted).expect("it has happened")
    }

    /// Waits until all that has happened is as wanted.
    pub(crate) fn wait_until(&self, is_wanted: &dyn Fn(&[GatewayEvent]) -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut events = self.events.events.lock().expect("no panic");
        loop {
            if is_wanted(&events) {
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it has not happened; this has: {events:?}");
            (events, _) = self
                .events
                .changed
                .wait_timeout(events, left)
                .expect("no panic");
        }
    }

    pub(crate) fn connect(&self) -> Agent {
        Agent::connect(self.address)
    }
}

/// Runs a gateway before a provider that does what `provide` says, and a test against both.
pub(crate) fn run(setup: Setup, provide: Provide<'_>, test: &dyn Fn(&Rig<'_>)) {
    let log = Log::default();
    let seen = Mutex::new(Vec::new());
    let tokens_max = setup.tokens_max;
    let on_usage = |metered: &CallUsage<'_>| {
        let mut reported = log.reported.lock().expect("no panic");
        let mut estimated = log.estimated.lock().expect("no panic");
        match metered.used {
            MeteredUsage::Tokens(usage) => reported.add(&usage),
            MeteredUsage::Unknown { estimate, .. } => estimated.add(&estimate),
        }
        if reported.tokens().saturating_add(estimated.tokens()) >= tokens_max {
            UsageVerdict::Spent
        } else {
            UsageVerdict::GoOn
        }
    };
    let on_event = |event: GatewayEvent| {
        log.events.lock().expect("no panic").push(event);
        log.changed.notify_all();
    };
    let stop = StopSignal::new().expect("a stop sign");
    let provider = listen();
    let port = provider.local_addr().expect("an address").port();
    let base_url = setup
        .base_url
        .clone()
        .unwrap_or_else(|| format!("http://127.0.0.1:{port}"));
    let ended = |call: u64| {
        // Under the lock that those who wait hold while they look.
        let _events = log.events.lock().expect("no panic");
        log.ended.lock().expect("no panic").push(call);
        log.changed.notify_all();
    };
    let watch = GatewayWatch {
        on_call: setup.on_call,
        on_end: &ended,
        on_usage: &on_usage,
        on_event: &on_event,
    };
    let host_proxy = setup.host_proxy.clone();
    let gateway = ModelGateway::new(config(setup, &base_url), watch).expect("a gateway");
    let gateway = gateway.through(host_proxy);
    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let limits = ServeLimits {
        connections_max: 256,
    };
    let n_connections = Mutex::new(0_usize);
    let handle = |stream: &TcpStream| {
        let connection = {
            let mut n_connections = n_connections.lock().expect("no panic");
            *n_connections += 1;
            *n_connections - 1
        };
        serve_provider(stream, connection, &seen, provide);
    };
    thread::scope(|scope| {
        scope.spawn(|| serve(&provider, &stop, limits, &handle).expect("a provider"));
        scope.spawn(|| gateway.serve(&listener, &stop, &stop).expect("a gateway"));
        // Also when the test fails, so that the threads end and the failure is shown.
        let _raised = RaiseAtEnd(&stop);
        test(&Rig {
            address,
            gateway: &gateway,
            stop: &stop,
            events: &log,
            seen: &seen,
        });
    });
}

struct RaiseAtEnd<'a>(&'a StopSignal);

impl Drop for RaiseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Makes a gateway and drops it.
pub(crate) fn try_gateway(setup: Setup) -> Result<(), GatewayError> {
    let watch = GatewayWatch {
        on_call: &|_| CallAnswer::unlimited(),
        on_end: &|_| (),
        on_usage: &|_| UsageVerdict::GoOn,
        on_event: &|_| (),
    };
    ModelGateway::new(config(setup, "http://127.0.0.1:1"), watch).map(drop)
}

fn config(setup: Setup, base_url: &str) -> GatewayConfig {
    let is_replay = matches!(setup.cassette, Some(Cassette::Replay { .. }));
    let has_key = !is_replay && setup.auth != AuthStyle::AgentsOwn;
    GatewayConfig {
        upstream: ProviderRoute {
            base_url: BaseUrl::parse(base_url).expect("a base URL"),
            dialect: setup.dialect,
            auth: setup.auth,
            key: has_key.then(|| ProviderKey::parse(SECRET).expect("a key")),
        },
        placeholder: PLACEHOLDER.to_owned(),
        timeouts: setup.timeouts,
        extra_authorities: setup.extra_authorities,
        cassette: setup.cassette,
        rules: setup.rules,
        connections_max: 128,
    }
}

pub(crate) fn listen() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

fn serve_provider(
    stream: &TcpStream,
    connection: usize,
    seen: &Mutex<Vec<Seen>>,
    provide: Provide<'_>,
) {
    stream.set_nonblocking(false).expect("a socket");
    let mut reader = MessageReader::new(stream);
    while let Ok(Some(head)) = reader.request(&LIMITS) {
        let framing = head.framing().expect("a frame");
        let Ok(body) = reader.body(framing, u64::MAX).read_all() else {
            return;
        };
        let request = Seen {
            head,
            body,
            connection,
        };
        seen.lock().expect("no panic").push(request.clone());
        if provide(&request, stream) == After::Close {
            return;
        }
    }
}

/// Writes to a peer that may have gone.
pub(crate) fn put(mut stream: &TcpStream, text: &str) {
    let _gone = stream.write_all(text.as_bytes());
}

/// Writes a whole answer.
pub(crate) fn put_json(stream: &TcpStream, status: &str, more_headers: &str, body: &str) -> After {
    let length = body.len();
    put(
        stream,
        &format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more_headers}content-length: \
             {length}\r\n\r\n{body}"
        ),
    );
    After::Keep
}

/// The head of a stream of events.
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Begins a stream of events.
pub(crate) fn begin_events(stream: &TcpStream) {
    put(stream, EVENTS);
}

/// Begins a stream of events whose first chunk comes with its head.
pub(crate) fn begin_events_with(stream: &TcpStream, text: &str) {
    put(stream, &format!("{EVENTS}{}", chunk(text)));
}

/// Writes one chunk of a body.
pub(crate) fn put_chunk(stream: &TcpStream, text: &str) {
    put(stream, &chunk(text));
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub(crate) fn end_chunks(stream: &TcpStream) -> After {
    put(stream, "0\r\n\r\n");
    After::Keep
}

/// Reads until the peer closes.
pub(crate) fn wait_for_close(mut stream: &TcpStream) {
    let mut rest = Vec::new();
    let _closed_or_reset = stream.read_to_end(&mut rest);
}

/// An answer as the agent got it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) head: ResponseHead,
    pub(crate) body: String,
    /// Whether the body came to its end.
    pub(crate) is_whole: bool,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let value = self.head.headers.first(name)?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// The agent's side of one connection.
pub(crate) struct Agent {
    stream: TcpStream,
    reader: MessageReader<TcpStream>,
}

impl Agent {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the gateway listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let reader = MessageReader::new(stream.try_clone().expect("a socket"));
        Self { stream, reader }
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("sent");
    }

    /// Posts JSON with the placeholder.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Got {
        self.begin_post(path, body);
        self.receive("POST")
    }

    pub(crate) fn begin_post(&mut self, path: &str, body: &str) {
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\nx-api-key: {PLACEHOLDER}\r\ncontent-length: \
             {length}\r\n\r\n{body}"
        ));
    }

    pub(crate) fn get(&mut self, path: &str) -> Got {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nx-api-key: {PLACEHOLDER}\r\n\r\n"
        ));
        self.receive("GET")
    }

    /// Reads the head of an answer.
    pub(crate) fn receive_head(&mut self) -> ResponseHead {
        self.reader.response(&LIMITS).expect("an answer")
    }

    /// Reads an answer, if the gateway gives one before it closes the connection.
    pub(crate) fn receive_if_any(&mut self, method: &str) -> Option<Got> {
        let read = self.reader.fill("an answer");
        matches!(read, Ok(1..)).then(|| self.receive(method))
    }

    /// Reads an answer to its end, or to where it breaks off.
    pub(crate) fn receive(&mut self, method: &str) -> Got {
        let head = self.receive_head();
        let framing = head.framing(method).expect("a frame");
        let mut body = self.reader.body(framing, u64::MAX);
        let mut text = Vec::new();
        let is_whole = loop {
            match body.piece() {
                Ok(Some(piece)) => text.extend_from_slice(piece),
                Ok(None) => break true,
                Err(kapi_gateway::http::HttpMessageError::Closed { .. }) => break false,
                Err(error) => panic!("the gateway hangs or speaks in tongues: {error}"),
            }
        };
        Got {
            head,
            body: String::from_utf8_lossy(&text).into_owned(),
            is_whole,
        }
    }

    /// Reads the body of an answer until it has each of these texts, doing something after each.
    pub(crate) fn receive_each(&mut self, head: &ResponseHead, wanted: &[&str], then: &dyn Fn()) {
        let framing = head.framing("POST").expect("a frame");
        let mut body = self.reader.body(framing, u64::MAX);
        let mut text = String::new();
        for wanted in wanted {
            while !text.contains(wanted) {
                let piece = body.piece().expect("more").expect("not the end");
                text.push_str(&String::from_utf8_lossy(piece));
            }
            then();
        }
    }

    pub(crate) fn shut_down(&mut self, how: Shutdown) {
        self.stream.shutdown(how).expect("connected");
    }

    /// Tells whether the gateway has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0_u8; 1];
        matches!(self.stream.read(&mut byte), Ok(0))
    }
}
