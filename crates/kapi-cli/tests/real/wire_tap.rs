//! A tap on the wire to a model: forwards what passes, and keeps every request byte for byte.
//!
//! Knows just enough of HTTP to tell one request's body from the next.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A tap, for as long as the test runs.
pub(crate) struct WireTap {
    port: u16,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl WireTap {
    /// Listens on a port of its own and forwards to a server.
    pub(crate) fn before(base_url: &str) -> Self {
        let server = base_url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                forward(client, TcpStream::connect(&server).unwrap(), &kept);
            }
        });
        Self { port, bodies }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the bodies so far and forgets them.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.bodies.lock().unwrap())
    }
}

/// Forwards both ways on threads of their own; what the client sends is kept.
fn forward(client: TcpStream, server: TcpStream, kept: &Arc<Mutex<Vec<Vec<u8>>>>) {
    let (answers, listens) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || pump(answers, listens, &mut |_: &[u8]| {}));
    let kept = Arc::clone(kept);
    let mut open = Vec::new();
    let mut keep = move |bytes: &[u8]| {
        open.extend_from_slice(bytes);
        while let Some(body) = take_body(&mut open) {
            // A test that panicked elsewhere does not spoil what was kept.
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(body);
        }
    };
    thread::spawn(move || pump(client, server, &mut keep));
}

fn pump(mut from: TcpStream, mut to: TcpStream, keep: &mut dyn FnMut(&[u8])) {
    let mut piece = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let bytes = &piece[..count];
        keep(bytes);
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}

/// Takes the first whole request off, and returns its body.
fn take_body(open: &mut Vec<u8>) -> Option<Vec<u8>> {
    let head = open.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&open[..head]).to_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse::<usize>().unwrap());
    assert!(!text.contains("transfer-encoding: chunked"), "{text}");
    if open.len() < head + length {
        return None;
    }
    let rest = open.split_off(head + length);
    let request = std::mem::replace(open, rest);
    Some(request[head..].to_vec())
}
