//! Lines to records and back: parsing, sequence, hash chain, and where a torn tail begins.
//!
//! Pure: bytes in, records out. Files, locks and durability are the stream's affair.

use serde_json::error::Category;

use crate::hash::{ZERO, sha256_hex};
use crate::record::{Batch, LogRecord, RECORD_VERSION};

/// The longest line of a log, newline included.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is not a record.
    #[error("the line is not a record")]
    NotARecord(#[source] serde_json::Error),
    /// It is longer than a line may be.
    #[error("the line has {bytes} bytes; the maximum is {LINE_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It was written by another version of Kapi.
    #[error("the record has version {found}, this program reads version {RECORD_VERSION}")]
    Version {
        /// The version it has.
        found: u32,
    },
    /// A line is missing, repeated or out of place.
    #[error("the record has number {found} where {expected} was expected")]
    Sequence {
        /// The number due.
        expected: u64,
        /// The number there.
        found: u64,
    },
    /// It belongs elsewhere.
    #[error("the record's id is {found:?} where {expected:?} was expected")]
    Id {
        /// The id due.
        expected: String,
        /// The id there.
        found: String,
    },
    /// The line before it was changed.
    #[error("the hash of the previous line does not match")]
    Chain,
    /// The line was changed after it was accepted.
    #[error("the line was changed after it was accepted")]
    Changed,
    /// The log ends before a line that was accepted.
    #[error("the log has {found} bytes, {acknowledged} were accepted")]
    Shortened {
        /// How many bytes were accepted.
        acknowledged: u64,
        /// How many there are.
        found: u64,
    },
    /// A record is followed by something that is neither a newline nor a part of a record.
    #[error("the newline after the record was changed")]
    NoNewline,
}

/// A fault and the line it is on.
#[derive(Debug, thiserror::Error)]
#[error("read line {line}")]
pub struct LineFault {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    #[source]
    pub fault: LineError,
}

/// A place between two records of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of the last record before it; 0 at the start.
    pub seq: u64,
    /// Where that record's line begins.
    pub line_start: u64,
    /// Where the next line begins.
    pub offset: u64,
    /// The hash of that record's line.
    pub last_hash: String,
}

/// What some bytes of a log hold.
#[derive(Debug)]
pub struct LogTail {
    /// Every record that was accepted.
    pub records: Vec<LogRecord>,
    /// The place after the last of them.
    pub position: LogPosition,
    /// Bytes after that place, written by somebody who did not finish.
    pub torn_bytes: u64,
}

impl LogPosition {
    /// Returns the place before the first record.
    #[must_use]
    pub fn start() -> Self {
        Self {
            seq: 0,
            line_start: 0,
            offset: 0,
            last_hash: ZERO.to_owned(),
        }
    }

    /// Returns the place after one more line, given without its newline.
    #[must_use]
    pub fn after(&self, line: &[u8]) -> Self {
        Self {
            seq: self.seq + 1,
            line_start: self.offset,
            offset: self.offset + length(line) + 1,
            last_hash: sha256_hex(line),
        }
    }
}

/// Writes a batch as lines that follow `position`; each line ends in a newline.
///
/// # Errors
/// When a record cannot be written as JSON.
pub fn encode(
    stream: &str,
    position: &LogPosition,
    batch: &Batch<'_>,
) -> Result<Vec<(LogRecord, Vec<u8>)>, serde_json::Error> {
    let mut position = position.clone();
    let mut lines = Vec::with_capacity(batch.payloads.len());
    for (idx, payload) in batch.payloads.iter().enumerate() {
        let seq = position.seq + 1;
        let record = LogRecord {
            v: RECORD_VERSION,
            seq,
            at_ms: batch.at_ms,
            id: LogRecord::id_of(stream, seq),
            kind: payload.kind.clone(),
            actor: batch.actor.clone(),
            data: payload.data.clone(),
            prev: position.last_hash.clone(),
            more: idx + 1 < batch.payloads.len(),
        };
        let mut line = serde_json::to_vec(&record)?;
        assert!(!line.contains(&b'\n'), "compact JSON escapes every newline");
        position = position.after(&line);
        line.push(b'\n');
        lines.push((record, line));
    }
    Ok(lines)
}

/// Reads the records that follow `position`, whose bytes begin at `position.offset`.
///
/// An unfinished last line, and the finished lines of a batch whose last line is missing, are
/// counted as torn and not returned.
///
/// # Errors
/// When anything else does not parse or does not follow.
pub fn decode(stream: &str, position: &LogPosition, bytes: &[u8]) -> Result<LogTail, LineFault> {
    let mut tail = LogTail {
        records: Vec::new(),
        position: position.clone(),
        torn_bytes: 0,
    };
    let mut here = position.clone();
    let mut open_batch = Vec::new();
    let mut rest = bytes;
    while let Some(newline_idx) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(newline_idx);
        let after = after.get(1..).unwrap_or_default();
        let record =
            decode_line(stream, &here, line).map_err(|fault| blame(&here, line, after, fault))?;
        here = here.after(line);
        let closes_batch = !record.more;
        open_batch.push(record);
        if closes_batch {
            tail.records.append(&mut open_batch);
            tail.position = here.clone();
        }
        rest = after;
    }
    check_unfinished(rest).map_err(|fault| LineFault {
        line: here.seq + 1,
        fault,
    })?;
    let end = position.offset + length(bytes);
    tail.torn_bytes = end - tail.position.offset;
    Ok(tail)
}

/// Reads one line, given without its newline, and checks that it follows `position`.
///
/// # Errors
/// When it is no record or does not follow.
pub fn decode_line(
    stream: &str,
    position: &LogPosition,
    line: &[u8],
) -> Result<LogRecord, LineError> {
    let record = parse_line(line)?;
    let expected = position.seq + 1;
    if record.seq != expected {
        return Err(LineError::Sequence {
            expected,
            found: record.seq,
        });
    }
    if record.prev != position.last_hash {
        return Err(LineError::Chain);
    }
    let expected = LogRecord::id_of(stream, expected);
    if record.id != expected {
        return Err(LineError::Id {
            expected,
            found: record.id,
        });
    }
    Ok(record)
}

/// Names the line that was changed: a broken chain is the fault of the line before, if this one
/// is vouched for by the line after it.
fn blame(position: &LogPosition, line: &[u8], after: &[u8], fault: LineError) -> LineFault {
    let next_line = after.split(|byte| *byte == b'\n').next();
    let vouched = next_line
        .and_then(|next| parse_line(next).ok())
        .map(|record| record.prev);
    match fault {
        LineError::Chain if position.seq > 0 && vouched == Some(sha256_hex(line)) => LineFault {
            line: position.seq,
            fault: LineError::Changed,
        },
        fault => LineFault {
            line: position.seq + 1,
            fault,
        },
    }
}

/// Reads one line, given without its newline, whatever it follows.
///
/// # Errors
/// When it is no record.
pub(crate) fn parse_line(line: &[u8]) -> Result<LogRecord, LineError> {
    if line.len() >= LINE_BYTES_MAX {
        return Err(LineError::TooLong { bytes: line.len() });
    }
    let record: LogRecord = serde_json::from_slice(line).map_err(LineError::NotARecord)?;
    if record.v != RECORD_VERSION {
        return Err(LineError::Version { found: record.v });
    }
    Ok(record)
}

/// Tells an unfinished line from a finished one whose newline was changed: the beginning of a
/// record may be missing its end, but a whole record is never followed by anything else.
pub(crate) fn check_unfinished(rest: &[u8]) -> Result<(), LineError> {
    if rest.len() >= LINE_BYTES_MAX {
        return Err(LineError::TooLong { bytes: rest.len() });
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<LogRecord>();
    match values.next() {
        Some(Ok(_)) if values.byte_offset() < rest.len() => Err(LineError::NoNewline),
        Some(Ok(_)) | None => Ok(()),
        Some(Err(error)) => match error.classify() {
            Category::Eof | Category::Syntax | Category::Data | Category::Io => Ok(()),
        },
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
