//! A full check of one log: every line, the sequence, the hash chain, and the fold's place in it.
//!
//! Reads everything and changes nothing. What the events mean is checked by whoever folds them.

use std::path::{Path, PathBuf};

use kapi_sys::disk::DiskError;

use crate::codec::{LineError, LogPosition, check_unfinished, decode_line, parse_line};
use crate::hash::sha256_hex;
use crate::record::LogRecord;
use crate::saved::SavedFold;
use crate::stream::LogStream;

/// Faults listed for one log; more add nothing for whoever has to mend it.
pub const FAULTS_MAX: usize = 20;

/// What an audit found.
#[derive(Debug)]
pub struct Audit {
    /// The records that are sound, in order, up to the first fault.
    pub records: Vec<LogRecord>,
    /// Everything that is wrong, at most [`FAULTS_MAX`].
    pub faults: Vec<AuditFault>,
    /// Bytes at the end that somebody did not finish writing; the next append cuts them off.
    pub torn_bytes: u64,
    /// The fold on disk, when it can be read.
    pub saved: Option<SavedFold>,
}

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("trust {} at line {line}", file.display())]
pub struct AuditFault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    #[source]
    pub fault: LineError,
}

/// Checks a whole stream.
///
/// # Errors
/// When the disk refuses.
pub fn audit(stream: &LogStream<'_>) -> Result<Audit, DiskError> {
    let file = stream.log();
    // First the fold: the log that is read after it knows at least as much, whoever writes meanwhile.
    let saved = stream
        .disk
        .read(&stream.state(), 0)?
        .and_then(|bytes| SavedFold::parse(&bytes));
    let bytes = stream.disk.read(&file, 0)?.unwrap_or_default();
    let (lines, rest) = split(&bytes);
    let mut audit = Audit {
        records: Vec::new(),
        faults: Vec::new(),
        torn_bytes: 0,
        saved,
    };
    let mut finished = 0;
    let mut finished_records = 0;
    let mut here = LogPosition::start();
    for (idx, line) in lines.iter().enumerate() {
        let next = here.after(line);
        let vouched = audit.vouches(&next)
            || lines.get(idx + 1).is_some_and(|following| {
                parse_line(following).is_ok_and(|record| record.prev == next.last_hash)
            });
        match decode_line(&stream.name, &here, line) {
            Ok(record) => {
                let closes_batch = !record.more;
                if audit.faults.is_empty() {
                    audit.records.push(record);
                }
                if closes_batch {
                    finished = next.offset;
                    finished_records = audit.records.len();
                }
            }
            // A line that others vouch for is sound; the one before it is not.
            Err(LineError::Chain) if vouched && idx > 0 => {
                audit.add(&file, idx, LineError::Changed);
            }
            Err(fault) => audit.add(&file, idx + 1, fault),
        }
        // Counting goes on from what the lines say of themselves; a line that cannot be read may
        // have been any number of lines.
        let says = |line: &[u8]| parse_line(line).ok().map(|record| record.seq);
        let following = lines.get(idx + 1).and_then(|line| says(line));
        here = match (says(line), following) {
            (Some(seq), _) => LogPosition { seq, ..next },
            (None, Some(seq)) => LogPosition {
                seq: seq.saturating_sub(1),
                ..next
            },
            (None, None) => next,
        };
    }
    if let Err(fault) = check_unfinished(rest) {
        audit.add(&file, lines.len() + 1, fault);
    }
    audit.check_accepted(&file, &lines, length(&bytes));
    let first_fault = audit.faults.iter().map(|fault| fault.line).min();
    let sound = first_fault.map_or(finished_records, |line| {
        usize::try_from(line - 1)
            .unwrap_or(usize::MAX)
            .min(finished_records)
    });
    audit.records.truncate(sound);
    if audit.faults.is_empty() {
        audit.torn_bytes = length(&bytes) - finished;
    }
    Ok(audit)
}

fn split(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    (lines, rest)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl Audit {
    /// Tells whether the fold on disk was made from a log that ended at this place.
    fn vouches(&self, location: &LogPosition) -> bool {
        self.saved.as_ref().is_some_and(|saved| {
            saved.position.offset == location.offset
                && saved.position.last_hash == location.last_hash
        })
    }

    /// Checks that what the fold was made from is still there.
    fn check_accepted(&mut self, file: &Path, lines: &[&[u8]], length: u64) {
        let Some(saved) = &self.saved else { return };
        let position = saved.position.clone();
        let mut end = 0;
        let is_there = lines.iter().any(|line| {
            end += u64::try_from(line.len()).unwrap_or(u64::MAX) + 1;
            end == position.offset && sha256_hex(line) == position.last_hash
        });
        if !is_there {
            let fault = if length < position.offset {
                LineError::Shortened {
                    acknowledged: position.offset,
                    found: length,
                }
            } else {
                LineError::Changed
            };
            let line = usize::try_from(position.seq).unwrap_or(usize::MAX);
            self.add(file, line, fault);
        }
    }

    fn add(&mut self, file: &Path, line: usize, fault: LineError) {
        let line = u64::try_from(line).unwrap_or(u64::MAX);
        let is_known = self.faults.iter().any(|known| known.line == line);
        if !is_known && self.faults.len() < FAULTS_MAX {
            self.faults.push(AuditFault {
                file: file.to_path_buf(),
                line,
                fault,
            });
        }
    }
}
