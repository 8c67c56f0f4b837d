//! Asking an HTTP proxy to make a connection.
//!
//! Nothing behind the proxy's answer is read: what follows is the server's own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::DialError;
use crate::egress::host_proxy::ParentProxy;
use crate::http::timed::{TimedSocket, moment_after};

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Asks for a connection to `asked`, an address or a name with a port.
pub(super) fn ask(
    stream: &TcpStream,
    way: &ParentProxy,
    asked: &str,
    time_max: Duration,
) -> Result<(), DialError> {
    let refused = |why: String| DialError::Refused {
        endpoint: asked.to_owned(),
        proxy: way.endpoint.clone(),
        why,
    };
    let who = way.credentials.as_ref();
    let who = who.map(|who| format!("Proxy-Authorization: Basic {who}\r\n"));
    let who = who.unwrap_or_default();
    let request = format!("CONNECT {asked} HTTP/1.1\r\nHost: {asked}\r\n{who}\r\n");
    let mut timed = TimedSocket::new(stream, time_max);
    timed.set_deadline(Some(moment_after(time_max)));
    let failed = |error: std::io::Error| refused(error.to_string());
    timed.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    // Byte by byte: the first byte behind the answer is not ours to take.
    let mut byte = [0_u8];
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_BYTES_MAX {
            return Err(refused("its answer is too long".to_owned()));
        }
        match timed.read(&mut byte).map_err(failed)? {
            0 => return Err(refused("it closed the connection".to_owned())),
            _ => answer.extend_from_slice(&byte),
        }
    }
    match status(&answer) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(refused("it wants to know who asks".to_owned())),
        Some(status) => Err(refused(format!("it answered {status}"))),
        None => Err(refused("its answer is not HTTP".to_owned())),
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    words.next().filter(|word| word.starts_with("HTTP/1."))?;
    words.next()?.parse().ok()
}
