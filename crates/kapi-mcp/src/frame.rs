//! Messages as lines: one JSON value each, of a limited length.
//!
//! Knows bytes and nothing of what they say.

use std::io::{self, BufRead, Read as _};

/// Bytes of one message: more than the largest plan.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// What was read.
pub(crate) enum InputFrame {
    /// A line.
    Line(Vec<u8>),
    /// One that is longer than any message, without its text.
    TooLong,
    /// Nothing more will come.
    End,
}

/// Reads a line; of one that is too long, everything up to its end is thrown away.
pub(crate) fn read_line(input: &mut dyn BufRead) -> io::Result<InputFrame> {
    let mut line = Vec::new();
    let limit = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut limited = input.take(limit);
    let n_read = limited.read_until(b'\n', &mut line)?;
    if n_read == 0 {
        return Ok(InputFrame::End);
    }
    if line.last() == Some(&b'\n') || n_read < MESSAGE_BYTES_MAX {
        return Ok(InputFrame::Line(line));
    }
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            return Ok(InputFrame::TooLong);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let n_skipped = end.map_or(available.len(), |at| at + 1);
        input.consume(n_skipped);
        if end.is_some() {
            return Ok(InputFrame::TooLong);
        }
    }
}
