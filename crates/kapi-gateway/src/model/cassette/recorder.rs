//! Writes traffic to a cassette as it happens.
//!
//! A line is written before what it tells goes on, so that a run that is killed leaves what it
//! saw. Not synced: a cassette is a copy, never the truth.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{CassetteBytes, CassetteError, CassetteLine, ExchangeEnd, VERSION, pairs};
use crate::http::head::{RequestHead, ResponseHead};

/// Why recording stopped. The traffic itself goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The cassette is as long as it may become.
    #[error("record more than {bytes_max} bytes")]
    Full {
        /// The limit.
        bytes_max: u64,
    },
    /// The system did not write.
    #[error("write to the cassette")]
    Write(#[source] io::Error),
}

/// A cassette that is being written.
#[derive(Debug)]
pub(crate) struct Recorder {
    state: Mutex<RecorderState>,
    bytes_max: u64,
}

#[derive(Debug)]
struct RecorderState {
    /// Nothing once recording has stopped, so that a cassette has no hole in its middle.
    file: Option<File>,
    n_bytes: u64,
}

impl Recorder {
    /// Creates the file. It is the person's alone, for it holds what was said to the model.
    pub(crate) fn create(path: &Path, bytes_max: u64) -> Result<Self, CassetteError> {
        let create = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            let line = text(&CassetteLine::Cassette { version: VERSION })?;
            file.write_all(&line)?;
            Ok((file, line.len() as u64))
        };
        let (file, n_bytes) = create().map_err(|source| CassetteError::Create {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(Self {
            state: Mutex::new(RecorderState {
                file: Some(file),
                n_bytes,
            }),
            bytes_max,
        })
    }

    pub(crate) fn request(
        &self,
        call: u64,
        head: &RequestHead,
        body: &[u8],
    ) -> Result<(), RecordError> {
        self.write(&CassetteLine::Request {
            call,
            method: head.method.clone(),
            target: head.target.clone(),
            headers: pairs(&head.headers),
            body: CassetteBytes::of(body),
        })
    }

    pub(crate) fn head(&self, call: u64, head: &ResponseHead) -> Result<(), RecordError> {
        self.write(&CassetteLine::Head {
            call,
            status: head.status,
            headers: pairs(&head.headers),
        })
    }

    pub(crate) fn piece(&self, call: u64, bytes: &[u8]) -> Result<(), RecordError> {
        self.write(&CassetteLine::Piece {
            call,
            bytes: CassetteBytes::of(bytes),
        })
    }

    pub(crate) fn end(&self, call: u64, ending: ExchangeEnd) -> Result<(), RecordError> {
        self.write(&CassetteLine::End { call, ending })
    }

    /// Writes a line, or stops recording. Tells so once; later lines are dropped in silence.
    fn write(&self, line: &CassetteLine) -> Result<(), RecordError> {
        let line = text(line).map_err(RecordError::Write)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let n_bytes = state.n_bytes.saturating_add(line.len() as u64);
        let Some(file) = &mut state.file else {
            return Ok(());
        };
        let written = if n_bytes > self.bytes_max {
            Err(RecordError::Full {
                bytes_max: self.bytes_max,
            })
        } else {
            file.write_all(&line).map_err(RecordError::Write)
        };
        state.n_bytes = n_bytes;
        if written.is_err() {
            state.file = None;
        }
        written
    }
}

fn text(line: &CassetteLine) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}
