//! A stream's log in files, and how far it was read.
//!
//! Knows records and not what they mean: whoever reads them says whether they are understood.

use std::path::PathBuf;

use kapi_store::codec::LogPosition;
use kapi_store::error::StoreError;
use kapi_store::record::{Batch, LogRecord};
use kapi_store::stream::{LogStream, StreamCursor};
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use crate::fold::LoadedLog;

/// How long a request waits for another process to finish its own, in milliseconds.
pub const LOCK_WAIT_MS: u64 = 10_000;

/// A stream, and how far it was read.
pub struct FileLog<'a> {
    stream: LogStream<'a>,
    cursor: StreamCursor,
}

impl<'a> FileLog<'a> {
    /// Loads the fold and the records after it. Changes nothing, and needs no lock.
    pub fn load(stream: LogStream<'a>) -> Result<(Self, LoadedLog), StoreError> {
        let loaded = stream.load()?;
        let log = Self {
            stream,
            cursor: loaded.cursor,
        };
        Ok((
            log,
            LoadedLog {
                state: loaded.state,
                records: loaded.records,
            },
        ))
    }

    /// Loads every record, for a fold that cannot be used.
    pub fn load_all(&mut self) -> Result<LoadedLog, StoreError> {
        let loaded = self.stream.load_all()?;
        self.cursor = loaded.cursor;
        Ok(LoadedLog {
            state: None,
            records: loaded.records,
        })
    }

    /// Reads what others have recorded since. What is not understood is not passed by: it is read
    /// again the next time, so that nobody decides on a state without it.
    pub fn refresh<T, E: From<StoreError>>(
        &mut self,
        understand: impl FnOnce(&[LogRecord]) -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.stream.has_changed(&self.cursor)? {
            return understand(&[]);
        }
        let mut cursor = self.cursor.clone();
        let records = self.stream.read_more(&mut cursor)?;
        let understood = understand(&records)?;
        self.cursor = cursor;
        Ok(understood)
    }

    /// Takes the lock that is held over refresh, decide and append.
    pub fn lock(&self, owner: &str) -> Result<Lock, StoreError> {
        self.stream.lock(owner, LOCK_WAIT_MS)
    }

    /// Makes what was read durable, before anybody acts on it.
    pub fn settle(&mut self, held: &Lock) -> Result<(), StoreError> {
        self.stream.settle(held, &mut self.cursor)
    }

    /// Appends a batch, and returns its records once they are durable.
    pub fn append(&mut self, held: &Lock, batch: &Batch<'_>) -> Result<Vec<LogRecord>, StoreError> {
        self.stream.append(held, &mut self.cursor, batch)
    }

    /// Replaces the fold on disk with that at the place the log was read to.
    pub fn save(&self, held: &Lock, state: Box<RawValue>) -> Result<(), StoreError> {
        self.stream.save(held, &self.cursor, state)
    }

    /// Returns the place the log was read to.
    pub const fn position(&self) -> &LogPosition {
        &self.cursor.position
    }

    /// Returns the stream that is read and written.
    #[must_use]
    pub const fn stream(&self) -> &LogStream<'a> {
        &self.stream
    }

    /// Returns the log's path, by which errors name it.
    pub fn file(&self) -> PathBuf {
        self.stream.log()
    }
}
