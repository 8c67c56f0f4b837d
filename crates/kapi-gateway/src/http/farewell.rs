//! The last bytes of a connection, sent so that the peer gets to read them.
//!
//! A connection that is closed with unread bytes is reset, and an answer that is still under way is
//! lost with it. Knows no message: what is sent is the caller's affair.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::http::timed::{TimedSocket, moment_after};

/// Most bytes read and dropped after an answer: the longest body that a client sends before it looks.
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a peer may be silent meanwhile.
const LINGER_IDLE_MAX: Duration = Duration::from_secs(2);

/// Most time spent on that.
const LINGER_TIME_MAX: Duration = Duration::from_secs(10);

/// Sends the last bytes of a connection, and reads what the peer still sends until it closes.
///
/// Ends by itself after 10 seconds, 2 of silence, or 64 MiB, and at `deadline` at the latest. A peer
/// that has gone, or does not read, is no error: it has no use for an answer.
pub fn send_last(socket: &TcpStream, answer: &[u8], deadline: Instant) {
    let mut timed = TimedSocket::new(socket, LINGER_IDLE_MAX);
    timed.set_deadline(Some(deadline.min(moment_after(LINGER_TIME_MAX))));
    if timed.write_all(answer).is_err() || socket.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut dropped = vec![0_u8; 64 * 1024];
    let mut n_dropped = 0_usize;
    while let Ok(n_bytes @ 1..) = timed.read(&mut dropped) {
        n_dropped += n_bytes;
        if n_dropped > LINGER_BYTES_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    use super::{LINGER_TIME_MAX, send_last};

    #[test]
    fn a_peer_that_is_still_sending_reads_its_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a peer");
                // More than any buffer between the two holds is still to come.
                send_last(&stream, b"no", Instant::now() + LINGER_TIME_MAX);
            });
            let mut peer = TcpStream::connect(address).expect("connect");
            let body = vec![b'x'; 16 * 1024 * 1024];
            peer.write_all(&body).expect("it is read to its end");
            let mut answer = String::new();
            peer.read_to_string(&mut answer).expect("an answer");
            assert_eq!(answer, "no");
        });
    }
}
