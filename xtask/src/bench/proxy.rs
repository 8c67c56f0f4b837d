//! Connections through our proxy beside connections without any, all on loopback.
//!
//! The proxy is a process of its own, as for a run; client and server are this one. Both sides
//! ask the same server for the same.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::comparison::measured;
use super::invocation::RunningProgram;
use super::sample::{Pair, by_turns};
use super::table::{ComparisonRow, ComparisonTable, Quantity};
use super::{BenchDirectory, part};

const SMALL_ROUNDS: usize = 400;
const TRIP_ROUNDS: usize = 40;
const BULK_ROUNDS: usize = 10;
/// Round trips that are timed together: one alone is too short.
const N_TRIPS: usize = 500;
const BULK_BYTES: usize = 256 << 20;
const PIECE_BYTES: usize = 256 << 10;
const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
/// The longest that one read or write may take.
const PATIENCE: Duration = Duration::from_secs(20);
const HEAD_BYTES_MAX: usize = 8 << 10;

/// What a client asks the server for.
#[derive(Debug, Clone, Copy)]
enum ProxyRequest {
    /// A short answer.
    Small,
    /// Every byte back.
    Trips,
    /// Many bytes.
    Bulk,
}

/// A way to the server.
#[derive(Debug, Clone, Copy)]
enum ServerRoute {
    Direct,
    /// Through the proxy at this port.
    Tunnel(u16),
}

/// Measures what the way through the proxy costs.
pub(super) fn compare(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen")?;
    let address = listener.local_addr().context("listen")?;
    let is_over = AtomicBool::new(false);
    let rows = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &is_over));
        let rows = Running::start(location, address.port()).and_then(|proxy| {
            let rows = rows(proxy.port, address);
            proxy.stop().and(rows)
        });
        is_over.store(true, Ordering::SeqCst);
        // The server waits for connections; this one tells it to look up.
        drop(TcpStream::connect(address));
        match server.join() {
            Ok(served) => served.and(rows),
            Err(_panic) => bail!("serve: the server panicked"),
        }
    })?;
    Ok(ComparisonTable {
        title: "Through the proxy",
        note: "Every connection of ours is a tunnel (CONNECT) that is judged by an allow-list, dialled from the host and recorded; the peer connects to the same server directly, on loopback. A new connection includes asking for the tunnel; the other lines use one that is open.".to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

fn rows(port: u16, server: SocketAddr) -> anyhow::Result<Vec<ComparisonRow>> {
    let (ours, direct) = (ServerRoute::Tunnel(port), ServerRoute::Direct);
    let pair = |rounds, ask| -> anyhow::Result<Pair> {
        by_turns(rounds, &mut || ask_once(ours, server, ask), &mut || {
            ask_once(direct, server, ask)
        })
    };
    let small = pair(SMALL_ROUNDS, ProxyRequest::Small)?;
    let trips = pair(TRIP_ROUNDS, ProxyRequest::Trips)?;
    let bulk = pair(BULK_ROUNDS, ProxyRequest::Bulk)?;
    let speed = |seconds: f64| BULK_BYTES as f64 / seconds / 1e9;
    let (mine, theirs) = (speed(bulk.ours().median), speed(bulk.peer().median));
    Ok(vec![
        measured("a new connection with a small answer", "direct", small),
        measured(&format!("{N_TRIPS} round trips"), "direct", trips),
        measured(
            &format!("256 MiB ({mine:.2} GB/s)"),
            &format!("direct ({theirs:.2} GB/s)"),
            bulk,
        ),
    ])
}

/// Asks once; for what needs an open connection, making it is not timed.
fn ask_once(way: ServerRoute, server: SocketAddr, ask: ProxyRequest) -> anyhow::Result<Duration> {
    let opened = Instant::now();
    let mut stream = connect(way, server)?;
    let path = match ask {
        ProxyRequest::Small => "small",
        ProxyRequest::Trips => "trips",
        ProxyRequest::Bulk => "bulk",
    };
    let asked = Instant::now();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {server}\r\n\r\n").context("ask")?;
    match ask {
        ProxyRequest::Small => {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).context("read the answer")?;
            ensure!(answer == SMALL, "read the whole answer");
            return Ok(opened.elapsed());
        }
        ProxyRequest::Trips => {
            let mut byte = [7];
            for _ in 0..N_TRIPS {
                stream.write_all(&byte).context("send a byte")?;
                stream.read_exact(&mut byte).context("get it back")?;
            }
        }
        ProxyRequest::Bulk => {
            let mut piece = vec![0; PIECE_BYTES];
            let mut n_read = 0;
            loop {
                match stream.read(&mut piece).context("read many bytes")? {
                    0 => break,
                    length => n_read += length,
                }
            }
            ensure!(n_read == BULK_BYTES, "read all of the many bytes");
        }
    }
    Ok(asked.elapsed())
}

fn connect(way: ServerRoute, server: SocketAddr) -> anyhow::Result<TcpStream> {
    let first = match way {
        ServerRoute::Direct => server,
        ServerRoute::Tunnel(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
    };
    let mut stream = TcpStream::connect(first).context("connect")?;
    prepare(&stream)?;
    if let ServerRoute::Tunnel(_) = way {
        write!(
            stream,
            "CONNECT {server} HTTP/1.1\r\nhost: {server}\r\n\r\n"
        )
        .context("ask for a tunnel")?;
        let head = read_head(&mut stream)?;
        ensure!(
            head.starts_with(b"HTTP/1.1 200"),
            "ask for a tunnel: {}",
            String::from_utf8_lossy(&head)
        );
    }
    Ok(stream)
}

fn prepare(stream: &TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true).context("set up a connection")?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .context("set up a connection")
}

/// Reads to the empty line and not a byte further.
fn read_head(stream: &mut TcpStream) -> anyhow::Result<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < HEAD_BYTES_MAX, "read a head of usual length");
        stream.read_exact(&mut byte).context("read a head")?;
        head.extend_from_slice(&byte);
    }
    Ok(head)
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> anyhow::Result<()> {
    thread::scope(|scope| {
        loop {
            let (stream, _) = listener.accept().context("accept")?;
            if is_over.load(Ordering::SeqCst) {
                return Ok(());
            }
            // A client that fails says so itself.
            scope.spawn(move || drop(answer(stream)));
        }
    })
}

fn answer(mut stream: TcpStream) -> anyhow::Result<()> {
    prepare(&stream)?;
    let head = read_head(&mut stream)?;
    if head.starts_with(b"GET /small ") {
        stream.write_all(SMALL).context("answer")?;
    } else if head.starts_with(b"GET /bulk ") {
        let piece = vec![b'x'; PIECE_BYTES];
        for _ in 0..BULK_BYTES / PIECE_BYTES {
            stream.write_all(&piece).context("answer")?;
        }
    } else {
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).context("answer")?;
        }
    }
    Ok(())
}

/// The proxy, serving until its input is closed.
struct Running {
    port: u16,
    started: RunningProgram,
    input: ChildStdin,
    // Held so that the proxy never writes into a closed pipe.
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(location: &BenchDirectory, allowed: u16) -> anyhow::Result<Self> {
        let proxy = part::invocation(
            location,
            &location.scratch,
            &["proxy", &allowed.to_string()],
        );
        let (started, input, output) = proxy.start_piped()?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line).context("read its port")?;
        let port = line.trim().parse().context("read its port")?;
        Ok(Self {
            port,
            started,
            input,
            output,
        })
    }

    fn stop(self) -> anyhow::Result<()> {
        drop(self.input);
        let finished = self.started.finish();
        drop(self.output);
        finished
    }
}
