//! Messages cut out of a stream of bytes.
//!
//! Holds what was read and not used yet, so nothing of a following message is lost. Knows limits,
//! not what a message means.

use std::io::Read;
use std::time::Instant;

use super::head::{RequestHead, ResponseHead};
use super::{HeadLimits, HttpMessageError};

/// Bytes asked for at first, enough for nearly every head.
const SMALL: usize = 8 * 1024;

/// Bytes asked for once a read has filled the small buffer.
const LARGE: usize = 64 * 1024;

/// A reader of messages from `R`, which should never wait for ever.
#[derive(Debug)]
pub struct MessageReader<R> {
    inner: R,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl<R: Read> MessageReader<R> {
    /// Returns a reader that has read nothing yet.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
        }
    }

    /// Returns what was read and not used.
    #[must_use]
    pub fn unused(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Returns the stream below, whose unused bytes stay here.
    pub fn inner_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Reads the head of a request, or nothing when the peer closed between two messages.
    pub fn request(
        &mut self,
        limits: &HeadLimits,
    ) -> Result<Option<RequestHead>, HttpMessageError> {
        let Some(length) = self.head_length(limits)? else {
            return Ok(None);
        };
        let head = RequestHead::parse(self.take(length), limits)?;
        Ok(Some(head))
    }

    /// Reads the head of a response.
    pub fn response(&mut self, limits: &HeadLimits) -> Result<ResponseHead, HttpMessageError> {
        let Some(length) = self.head_length(limits)? else {
            return Err(HttpMessageError::Closed { part: "its head" });
        };
        ResponseHead::parse(self.take(length), limits)
    }

    /// Reads once into the buffer and returns how many bytes came; none means the end.
    pub fn fill(&mut self, part: &'static str) -> Result<usize, HttpMessageError> {
        let was_full = self.end == self.buffer.len();
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if was_full && (self.end > 0 || self.buffer.len() < LARGE) {
            self.buffer.drain(..self.begin);
            self.end -= self.begin;
            self.begin = 0;
            let grown = if self.buffer.is_empty() { SMALL } else { LARGE };
            self.buffer.resize(self.end + grown, 0);
        }
        let space = self.buffer.get_mut(self.end..).unwrap_or_default();
        let n_bytes = loop {
            match self.inner.read(space) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(HttpMessageError::of_read(error, part)),
                Ok(n_bytes) => break n_bytes,
            }
        };
        self.end += n_bytes;
        Ok(n_bytes)
    }

    /// Reads until `length` bytes are there, which must be few; fewer mean that the peer closed.
    pub fn fill_to(
        &mut self,
        length: usize,
        part: &'static str,
    ) -> Result<&[u8], HttpMessageError> {
        while self.unused().len() < length && self.fill(part)? > 0 {}
        Ok(self.unused())
    }

    /// Uses up `length` bytes, which must have been read, and returns them.
    pub fn take(&mut self, length: usize) -> &[u8] {
        assert!(
            length <= self.end - self.begin,
            "only bytes that were read can be taken"
        );
        let begin = self.begin;
        self.begin += length;
        self.buffer.get(begin..self.begin).unwrap_or_default()
    }

    /// Reads until the empty line and returns the length of the head with it.
    fn head_length(&mut self, limits: &HeadLimits) -> Result<Option<usize>, HttpMessageError> {
        const PART: &str = "its head";
        let mut searched = 0_usize;
        let mut started = (!self.unused().is_empty()).then(Instant::now);
        loop {
            let unused = self.unused();
            let from = searched.saturating_sub(3);
            let length = end_of_head(unused, from);
            if length.unwrap_or(unused.len()) > limits.bytes_max {
                return Err(HttpMessageError::HeadTooLong {
                    bytes_max: limits.bytes_max,
                });
            }
            if length.is_some() {
                return Ok(length);
            }
            searched = unused.len();
            if self.fill(PART)? == 0 {
                return match started {
                    None => Ok(None),
                    Some(_) => Err(HttpMessageError::Closed { part: PART }),
                };
            }
            let started = *started.get_or_insert_with(Instant::now);
            if started.elapsed() > limits.time_max {
                return Err(HttpMessageError::Slow { part: PART });
            }
        }
    }
}

fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    bytes
        .get(from..)?
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|position| from + position + 4)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::MessageReader;
    use crate::http::head::Framing;
    use crate::http::{HeadLimits, HttpMessageError};

    const LIMITS: HeadLimits = HeadLimits {
        bytes_max: 64,
        headers_max: 4,
        time_max: Duration::from_secs(1),
    };

    /// A stream that gives at most so many bytes a read.
    struct Pieces<'a>(&'a [u8], usize);

    impl io::Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (piece, rest) = self.0.split_at(length);
            buffer[..length].copy_from_slice(piece);
            self.0 = rest;
            Ok(length)
        }
    }

    /// Reads two requests with chunked bodies and returns everything that was understood.
    fn two_requests(bytes: &[u8], piece: usize) -> Result<String, HttpMessageError> {
        let mut reader = MessageReader::new(Pieces(bytes, piece));
        let mut understood = String::new();
        while let Some(head) = reader.request(&LIMITS)? {
            let body = reader.body(head.framing()?, 100).read_all()?;
            understood.push_str(&head.target);
            understood.push_str(&String::from_utf8_lossy(&body));
        }
        Ok(understood)
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut_into_reads() {
        let bytes = b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nbc\r\nA;x=y\r\n0123456789\r\n0\r\nT: t\r\n\r\n\
            PUT /d HTTP/1.1\r\nContent-Length: 2\r\n\r\nefGET /g HTTP/1.1\r\n\r\n";
        for piece in 1..bytes.len() {
            let understood = two_requests(bytes, piece).expect("messages");
            assert_eq!(understood, "/abc0123456789/def/g", "{piece}");
        }
    }

    #[test]
    fn a_message_cut_short_anywhere_is_an_error() {
        let bytes = b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nbc\r\n0\r\n\r\n";
        for length in 1..bytes.len() {
            let cut = two_requests(&bytes[..length], 7);
            assert!(
                matches!(cut, Err(HttpMessageError::Closed { .. })),
                "{length}: {cut:?}"
            );
        }
        assert!(two_requests(b"", 7).is_ok_and(|understood| understood.is_empty()));
    }

    #[test]
    fn limits_are_exact() {
        let head = |padding: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(padding));
        assert_eq!(head(46).len(), 64);
        for piece in [1, 100] {
            assert!(two_requests(head(46).as_bytes(), piece).is_ok());
            let over = two_requests(head(47).as_bytes(), piece);
            assert!(matches!(
                over,
                Err(HttpMessageError::HeadTooLong { bytes_max: 64 })
            ));
        }
        let body = |length: u64| {
            let bytes = vec![b'x'; 200];
            let mut reader = MessageReader::new(Pieces(&bytes, 3));
            reader
                .body(Framing::Length(length), 100)
                .read_all()
                .map(|body| body.len())
        };
        assert_eq!(body(100).ok(), Some(100));
        assert!(matches!(
            body(101),
            Err(HttpMessageError::BodyTooLong { bytes_max: 100 })
        ));
    }

    #[test]
    fn a_head_has_only_so_much_time_however_often_a_byte_comes() {
        let limits = HeadLimits {
            time_max: Duration::ZERO,
            ..LIMITS
        };
        let bytes = b"GET / HTTP/1.1\r\n\r\n";
        let read = |piece| MessageReader::new(Pieces(bytes, piece)).request(&limits);
        assert!(matches!(read(1), Err(HttpMessageError::Slow { .. })));
    }

    #[test]
    fn endless_lines_inside_a_body_are_refused() {
        let start = "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in [
            format!("1;{}", "x".repeat(10_000)),
            format!("0\r\n{}", "T: t\r\n".repeat(10_000)),
            "1\r\nabc".to_owned(),
            "1\r\na\n\n".to_owned(),
            " 1\r\na\r\n".to_owned(),
            "\r\n1\r\na\r\n".to_owned(),
            "1_0\r\n".to_owned(),
        ] {
            let refused = two_requests(format!("{start}{body}").as_bytes(), 5);
            assert!(
                matches!(refused, Err(HttpMessageError::Malformed { .. })),
                "{refused:?}"
            );
        }
    }
}
