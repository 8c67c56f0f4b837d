//! A message's body, piece by piece as it arrives.
//!
//! Decodes and encodes the framing, so a receiver never sees another reader's chunk sizes. Keeps
//! nothing but the piece in hand.

use std::io::{Read, Write};

use super::HttpMessageError;
use super::head::Framing;
use super::reader::MessageReader;

/// Longest chunk size line, extensions included.
const SIZE_LINE_MAX: usize = 256;

/// Most bytes of trailer lines, which are dropped.
const TRAILERS_MAX: usize = 8 * 1024;

/// Name of the part in errors.
const PART: &str = "its body";

/// A body that is being read. Dropped before its end, the stream is of no use any more.
#[derive(Debug)]
pub struct BodyReader<'a, R> {
    reader: &'a mut MessageReader<R>,
    location: BodyPosition,
    n_read: u64,
    bytes_max: u64,
}

#[derive(Debug, Clone, Copy)]
enum BodyPosition {
    /// Inside a body of known length, or of a chunk: so many bytes are left, then `after`.
    Within { left: u64, after: NextPart },
    /// Before a chunk's size line.
    Size,
    /// In a body that ends with the connection.
    UntilClose,
    /// Behind the end.
    Done,
}

#[derive(Debug, Clone, Copy)]
enum NextPart {
    End,
    Chunk,
}

impl<R: Read> MessageReader<R> {
    /// Returns the body that follows, of at most `bytes_max` bytes.
    pub fn body(&mut self, framing: Framing, bytes_max: u64) -> BodyReader<'_, R> {
        BodyReader::new(self, framing, bytes_max)
    }
}

impl<'a, R: Read> BodyReader<'a, R> {
    fn new(reader: &'a mut MessageReader<R>, framing: Framing, bytes_max: u64) -> Self {
        let location = match framing {
            Framing::Empty | Framing::Length(0) => BodyPosition::Done,
            Framing::Length(left) => BodyPosition::Within {
                left,
                after: NextPart::End,
            },
            Framing::Chunked => BodyPosition::Size,
            Framing::UntilClose => BodyPosition::UntilClose,
        };
        Self {
            reader,
            location,
            n_read: 0,
            bytes_max,
        }
    }

    /// Returns the bytes of the next piece as soon as there are any, or nothing at the end.
    pub fn piece(&mut self) -> Result<Option<&[u8]>, HttpMessageError> {
        while matches!(self.location, BodyPosition::Size) {
            self.read_size()?;
        }
        match self.location {
            BodyPosition::Done | BodyPosition::Size => Ok(None),
            BodyPosition::Within { left, after } => self.piece_within(left, after).map(Some),
            BodyPosition::UntilClose => self.piece_until_close(),
        }
    }

    /// Reads the whole body into memory.
    pub fn read_all(mut self) -> Result<Vec<u8>, HttpMessageError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece()? {
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    }

    /// Passes the body on in the framing `onto`, showing each piece to `tee` first.
    ///
    /// Every piece is written and flushed as it comes. Returns how many bytes the body had.
    pub fn copy(
        mut self,
        onto: Framing,
        to: &mut dyn Write,
        tee: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, HttpMessageError> {
        while let Some(piece) = self.piece()? {
            tee(piece);
            write_piece(onto, piece, to)?;
        }
        write_end(onto, to)?;
        Ok(self.n_read)
    }

    fn piece_within(&mut self, left: u64, after: NextPart) -> Result<&[u8], HttpMessageError> {
        let length = self.available(left)?;
        if length == 0 {
            return Err(HttpMessageError::Closed { part: PART });
        }
        // A chunk's own line end is read with the next size line.
        let left = left.saturating_sub(length as u64);
        self.location = match (left, after) {
            (0, NextPart::End) => BodyPosition::Done,
            (0, NextPart::Chunk) => BodyPosition::Size,
            _ => BodyPosition::Within { left, after },
        };
        self.taken(length)
    }

    fn piece_until_close(&mut self) -> Result<Option<&[u8]>, HttpMessageError> {
        let length = self.available(u64::MAX)?;
        if length == 0 {
            self.location = BodyPosition::Done;
            return Ok(None);
        }
        self.taken(length).map(Some)
    }

    /// Returns how many of the next `left` bytes are in the buffer, after a read if none are.
    fn available(&mut self, left: u64) -> Result<usize, HttpMessageError> {
        if self.reader.unused().is_empty() {
            self.reader.fill(PART)?;
        }
        let unused = self.reader.unused().len();
        Ok(usize::try_from(left).map_or(unused, |left| left.min(unused)))
    }

    fn taken(&mut self, length: usize) -> Result<&[u8], HttpMessageError> {
        self.n_read = self.n_read.saturating_add(length as u64);
        if self.n_read > self.bytes_max {
            return Err(HttpMessageError::BodyTooLong {
                bytes_max: self.bytes_max,
            });
        }
        Ok(self.reader.take(length))
    }

    fn read_size(&mut self) -> Result<(), HttpMessageError> {
        if self.n_read > 0 {
            let line = self.line(2)?;
            if !line.is_empty() {
                return Err(malformed("a chunk is longer than its size says"));
            }
        }
        let line = self.line(SIZE_LINE_MAX)?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = size.trim_ascii_end();
        let is_hex = (1..=15).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
        let left = std::str::from_utf8(size)
            .ok()
            .filter(|_| is_hex)
            .and_then(|size| u64::from_str_radix(size, 16).ok())
            .ok_or(malformed("a chunk's size is not a number"))?;
        if left > 0 {
            self.location = BodyPosition::Within {
                left,
                after: NextPart::Chunk,
            };
            return Ok(());
        }
        let mut trailers = TRAILERS_MAX;
        loop {
            let length = self.line(trailers)?.len();
            if length == 0 {
                self.location = BodyPosition::Done;
                return Ok(());
            }
            trailers = trailers.saturating_sub(length + 2);
        }
    }

    /// Reads one line of at most `bytes_max` bytes with its end, and returns it without.
    fn line(&mut self, bytes_max: usize) -> Result<Vec<u8>, HttpMessageError> {
        loop {
            let unused = self.reader.unused();
            if let Some(position) = unused.iter().position(|byte| *byte == b'\n') {
                let line = self.reader.take(position + 1);
                let line = line
                    .strip_suffix(b"\r\n")
                    .filter(|line| !line.contains(&b'\r') && line.len() + 2 <= bytes_max)
                    .ok_or(malformed("a line of its chunks does not end as it must"))?;
                return Ok(line.to_vec());
            }
            if unused.len() >= bytes_max {
                return Err(malformed("a line of its chunks is too long"));
            }
            if self.reader.fill(PART)? == 0 {
                return Err(HttpMessageError::Closed { part: PART });
            }
        }
    }
}

/// Writes one piece of a body in a framing; an empty piece is nothing.
pub fn write_piece(
    framing: Framing,
    piece: &[u8],
    to: &mut dyn Write,
) -> Result<(), HttpMessageError> {
    if piece.is_empty() {
        return Ok(());
    }
    let written = match framing {
        Framing::Chunked => {
            let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
            to.write_all(&bytes)
        }
        Framing::Empty | Framing::Length(_) | Framing::UntilClose => to.write_all(piece),
    };
    written
        .and_then(|()| to.flush())
        .map_err(HttpMessageError::Write)
}

/// Writes what ends a body in a framing.
pub fn write_end(framing: Framing, to: &mut dyn Write) -> Result<(), HttpMessageError> {
    let end: &[u8] = match framing {
        Framing::Chunked => b"0\r\n\r\n",
        Framing::Empty | Framing::Length(_) | Framing::UntilClose => b"",
    };
    to.write_all(end)
        .and_then(|()| to.flush())
        .map_err(HttpMessageError::Write)
}

fn malformed(problem: &'static str) -> HttpMessageError {
    HttpMessageError::Malformed { problem }
}
