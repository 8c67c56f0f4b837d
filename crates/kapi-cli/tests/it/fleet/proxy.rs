//! A relay in front of a server, by which a test cuts one client's network.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

/// Everything passes.
const OPEN: u8 = 0;
/// Nothing passes, and nobody is told.
const CUT: u8 = 1;

/// A relay.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) port: u16,
    mode: Arc<AtomicU8>,
}

impl Proxy {
    /// Relays to a server.
    pub(crate) fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(AtomicU8::new(OPEN));
        let modes = Arc::clone(&mode);
        // Ends with the process: a test has one, and each test is a process.
        thread::spawn(move || {
            // Whoever comes before the server is there, or after, is hung up on.
            let pairs = listener.incoming().filter_map(|client| {
                let server = TcpStream::connect(("127.0.0.1", server_port)).ok()?;
                Some((client.unwrap(), server))
            });
            for (client, server) in pairs {
                let pair = (client.try_clone().unwrap(), server.try_clone().unwrap());
                relay(pair, Arc::clone(&modes));
                relay((server, client), Arc::clone(&modes));
            }
        });
        Self { port, mode }
    }

    /// Lets nothing pass from now on.
    pub(crate) fn cut(&self) {
        self.mode.store(CUT, Ordering::SeqCst);
    }
}

fn relay((mut from, mut to): (TcpStream, TcpStream), mode: Arc<AtomicU8>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = from.read(&mut buffer) {
            if n == 0 {
                break;
            }
            // What comes while it is cut is lost, as on a wire.
            if mode.load(Ordering::SeqCst) == CUT {
                continue;
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
    });
}
