//! A relay in front of a server, by which a test cuts one client's network.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Everything passes.
const OPEN: u8 = 0;
/// Nothing passes, and nobody is told.
const CUT: u8 = 1;
/// What the client says passes, what the server answers does not.
const DEAF: u8 = 2;

/// A relay.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) port: u16,
    mode: Arc<AtomicU8>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Relays to a server.
    pub(crate) fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(AtomicU8::new(OPEN));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (held, modes) = (Arc::clone(&streams), Arc::clone(&mode));
        // Ends with the process: a test has one, and each test is a process.
        thread::spawn(move || {
            // Whoever comes before the server is there, or after, is hung up on.
            let pairs = listener.incoming().filter_map(|client| {
                let server = TcpStream::connect(("127.0.0.1", server_port)).ok()?;
                Some((client.unwrap(), server))
            });
            for (client, server) in pairs {
                let mut held = held.lock().unwrap();
                held.push(client.try_clone().unwrap());
                held.push(server.try_clone().unwrap());
                let pair = (client.try_clone().unwrap(), server.try_clone().unwrap());
                relay(pair, Arc::clone(&modes), &[CUT]);
                relay((server, client), Arc::clone(&modes), &[CUT, DEAF]);
            }
        });
        Self {
            port,
            mode,
            streams,
        }
    }

    /// Lets nothing pass from now on.
    pub(crate) fn cut(&self) {
        self.mode.store(CUT, Ordering::SeqCst);
    }

    /// Lets no answer pass from now on.
    pub(crate) fn deafen(&self) {
        self.mode.store(DEAF, Ordering::SeqCst);
    }

    /// Lets everything pass again, over new connections.
    pub(crate) fn mend(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            // It may be closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
        self.mode.store(OPEN, Ordering::SeqCst);
    }
}

fn relay((mut from, mut to): (TcpStream, TcpStream), mode: Arc<AtomicU8>, closed: &'static [u8]) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = from.read(&mut buffer) {
            if n == 0 {
                break;
            }
            // What comes while it is cut is lost, as on a wire.
            if closed.contains(&mode.load(Ordering::SeqCst)) {
                continue;
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
    });
}
