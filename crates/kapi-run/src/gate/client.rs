//! The agent's end of the gate: one question to the socket of the run this process belongs to.
//!
//! Runs inside the sandbox before every tool, so it reads no configuration and no JSON. A host that
//! is gone, slow or says anything but yes is a no.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::run_socket::connect;

/// The first line of an answer that lets a tool run.
pub(super) const ALLOW: &str = "allow";
/// The first line of an answer that does not; the reason follows.
pub(super) const DENY: &str = "deny";
/// How long an answer may take in all: longer than a person is asked.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks whether a tool may run.
///
/// # Errors
/// With the reason when it may not, for whatever reason.
pub fn ask(socket: &Path, payload: &[u8]) -> Result<(), String> {
    ask_within(socket, payload, PATIENCE)
}

/// Does the same, and waits no longer than this.
pub fn ask_within(socket: &Path, payload: &[u8], patience: Duration) -> Result<(), String> {
    let answer = exchange(socket, payload, patience).map_err(|error| {
        format!("Kapi cannot be reached for permission, so this is denied: {error}.")
    })?;
    let answer = String::from_utf8_lossy(&answer);
    let (verdict, reason) = answer.split_once('\n').unwrap_or((&answer, ""));
    match verdict {
        ALLOW => Ok(()),
        DENY => Err(reason.trim_end().to_owned()),
        _ => Err("Kapi did not answer the permission request, so this is denied.".to_owned()),
    }
}

fn exchange(socket: &Path, payload: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let left = || {
        let left = patience.saturating_sub(began.elapsed());
        let late = io::Error::from(io::ErrorKind::TimedOut);
        if left.is_zero() { Err(late) } else { Ok(left) }
    };
    let mut stream = connect(socket)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(payload)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    let mut piece = [0_u8; 4 * 1024];
    loop {
        stream.set_read_timeout(Some(left()?))?;
        let n_read = stream.read(&mut piece)?;
        answer.extend_from_slice(piece.get(..n_read).unwrap_or_default());
        if n_read == 0 || answer.len() > ANSWER_BYTES_MAX {
            return Ok(answer);
        }
    }
}
