//! A stream: an append-only log and the fold derived from it, in one directory.
//!
//! Appends are synced before they are acknowledged; loading reads the fold and the tail of the
//! log only. Does not know what events mean: the fold comes and goes as JSON.

use std::path::{Path, PathBuf};

use kapi_sys::disk::{Disk, DiskError, replace_derived};
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use crate::codec::{LINE_BYTES_MAX, LineError, LogPosition, LogTail, decode, encode};
use crate::error::StoreError;
use crate::hash::sha256_hex;
use crate::record::{Batch, LogRecord};
use crate::saved::SavedFold;

/// A stream on a disk. Holds no state of its own.
#[derive(Clone)]
pub struct LogStream<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The stream's name, which stands in the ids of its records.
    pub name: String,
    /// The stream's directory.
    pub dir: PathBuf,
    /// The directory above it that was there before: names below it are made durable together
    /// with the first record.
    pub anchor: PathBuf,
}

/// How far a stream was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamCursor {
    /// The place after the last record read.
    pub position: LogPosition,
    /// Bytes after it that somebody did not finish writing.
    pub torn_bytes: u64,
    /// Whether everything before the position is known to survive a power cut.
    is_durable: bool,
}

/// What a stream holds.
#[derive(Debug)]
pub struct LoadedStream {
    /// The fold at some place, if there is one that can be read.
    pub state: Option<Box<RawValue>>,
    /// The records after that place; all of them when there is no fold.
    pub records: Vec<LogRecord>,
    /// Where reading ended.
    pub cursor: StreamCursor,
}

impl LogStream<'_> {
    /// Returns the log's path.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// Returns the fold's path.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.join("state.json")
    }

    /// Takes the lock that is held over load, decide and append.
    ///
    /// # Errors
    /// When somebody holds it longer than `wait_ms`.
    pub fn lock(&self, owner: &str, wait_ms: u64) -> Result<Lock, StoreError> {
        Ok(self.disk.lock(&self.dir.join("lock"), owner, wait_ms)?)
    }

    /// Loads the fold and the records after it. Changes nothing, and needs no lock.
    ///
    /// # Errors
    /// When the log is not what was accepted.
    pub fn load(&self) -> Result<LoadedStream, StoreError> {
        match self.saved()? {
            None => self.load_all(),
            Some(saved) => {
                let mut cursor = StreamCursor {
                    position: saved.position,
                    torn_bytes: 0,
                    is_durable: true,
                };
                let records = self.read_more(&mut cursor)?;
                Ok(LoadedStream {
                    state: Some(saved.state),
                    records,
                    cursor,
                })
            }
        }
    }

    /// Loads every record and no fold, for a fold that cannot be used.
    ///
    /// # Errors
    /// When the log is not what was accepted.
    pub fn load_all(&self) -> Result<LoadedStream, StoreError> {
        let bytes = self.disk.read(&self.log(), 0)?.unwrap_or_default();
        if let Some(saved) = self.saved()? {
            self.check_accepted(&saved.position, &bytes, 0)?;
        }
        let tail = self.decode(&LogPosition::start(), &bytes)?;
        let cursor = StreamCursor {
            position: tail.position,
            torn_bytes: tail.torn_bytes,
            is_durable: false,
        };
        Ok(LoadedStream {
            state: None,
            records: tail.records,
            cursor,
        })
    }

    /// Tells whether the log has grown or shrunk since the cursor was there.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn has_changed(&self, cursor: &StreamCursor) -> Result<bool, StoreError> {
        // An unfinished tail may have been replaced by as many bytes of something else.
        let length = self.disk.len(&self.log())?.unwrap_or(0);
        Ok(cursor.torn_bytes > 0 || length != cursor.position.offset)
    }

    /// Reads the records after the cursor and moves it there. Changes nothing on disk.
    ///
    /// # Errors
    /// When the log is not what was accepted; the cursor has not moved then.
    pub fn read_more(&self, cursor: &mut StreamCursor) -> Result<Vec<LogRecord>, StoreError> {
        let position = &cursor.position;
        let bytes = self
            .disk
            .read(&self.log(), position.line_start)?
            .unwrap_or_default();
        self.check_accepted(position, &bytes, position.line_start)?;
        let known = usize::try_from(position.offset - position.line_start).unwrap_or(usize::MAX);
        let tail = self.decode(position, bytes.get(known..).unwrap_or_default())?;
        cursor.is_durable &= tail.records.is_empty();
        cursor.position = tail.position;
        cursor.torn_bytes = tail.torn_bytes;
        Ok(tail.records)
    }

    /// Makes everything before the cursor durable, in case whoever wrote it did not live to.
    ///
    /// To be done before acting on what was loaded; changes no byte.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn settle(&self, _held: &Lock, cursor: &mut StreamCursor) -> Result<(), StoreError> {
        if !cursor.is_durable && cursor.position.seq > 0 {
            self.disk.sync(&self.log())?;
            self.sync_names()?;
            cursor.is_durable = true;
        }
        Ok(())
    }

    /// Appends a batch after the cursor and returns its records once they are durable.
    ///
    /// What somebody left unfinished there is cut off first. When this fails, nothing was
    /// accepted, and the cursor has not moved.
    ///
    /// # Errors
    /// When an event is too long or the disk refuses.
    pub fn append(
        &self,
        _held: &Lock,
        cursor: &mut StreamCursor,
        batch: &Batch<'_>,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let file = self.log();
        let lines =
            encode(&self.name, &cursor.position, batch).map_err(|source| StoreError::Encode {
                file: file.clone(),
                source,
            })?;
        if let Some((_, line)) = lines.iter().find(|(_, line)| line.len() > LINE_BYTES_MAX) {
            return Err(StoreError::TooLong {
                file,
                bytes: line.len(),
            });
        }
        if cursor.torn_bytes > 0 {
            // Durable on its own, so that old and new bytes cannot mix in one line.
            self.disk.truncate(&file, cursor.position.offset)?;
            self.disk.sync(&file)?;
            cursor.torn_bytes = 0;
        }
        let bytes: Vec<u8> = lines
            .iter()
            .flat_map(|(_, line)| line.iter().copied())
            .collect();
        if let Err(error) = self.write_durably(&file, &bytes, cursor) {
            self.take_back(&file, cursor);
            return Err(error.into());
        }
        for (_, line) in &lines {
            cursor.position = cursor
                .position
                .after(line.strip_suffix(b"\n").unwrap_or(line));
        }
        Ok(lines.into_iter().map(|(record, _)| record).collect())
    }

    /// Replaces `state.json` with the fold at the cursor, which must be durable.
    ///
    /// # Errors
    /// When the disk refuses; the log is as good as before.
    pub fn save(
        &self,
        _held: &Lock,
        cursor: &StreamCursor,
        state: Box<RawValue>,
    ) -> Result<(), StoreError> {
        assert!(
            cursor.is_durable,
            "a fold is saved only after its events are durable"
        );
        let file = self.state();
        let saved = SavedFold {
            position: cursor.position.clone(),
            state,
        };
        let bytes = saved.encode().map_err(|source| StoreError::Encode {
            file: file.clone(),
            source,
        })?;
        Ok(replace_derived(self.disk, &file, &bytes)?)
    }

    /// Returns the number of the last record that the fold on disk knows; 0 without one.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn saved_seq(&self) -> Result<u64, StoreError> {
        Ok(self.saved()?.map_or(0, |saved| saved.position.seq))
    }

    pub(crate) fn saved(&self) -> Result<Option<SavedFold>, StoreError> {
        let bytes = self.disk.read(&self.state(), 0)?;
        Ok(bytes.and_then(|bytes| SavedFold::parse(&bytes)))
    }

    fn write_durably(
        &self,
        file: &Path,
        bytes: &[u8],
        cursor: &mut StreamCursor,
    ) -> Result<(), DiskError> {
        self.disk.append(file, bytes)?;
        self.disk.sync(file)?;
        if !cursor.is_durable {
            self.sync_names()?;
            cursor.is_durable = true;
        }
        Ok(())
    }

    /// Cuts off what could not be made durable, so that nobody takes it for accepted.
    fn take_back(&self, file: &Path, cursor: &mut StreamCursor) {
        let is_cut = self.disk.truncate(file, cursor.position.offset).is_ok();
        // If not even that works, the next writer reads the log anew and finds what is there.
        cursor.is_durable &= is_cut;
    }

    /// Makes the log's name durable, and those of the directories that lead to it.
    fn sync_names(&self) -> Result<(), DiskError> {
        let mut dir = self.dir.as_path();
        loop {
            self.disk.sync(dir)?;
            match dir.parent() {
                Some(parent) if dir != self.anchor && dir.starts_with(&self.anchor) => dir = parent,
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// Checks that the last accepted line is still what it was. `bytes` begin at `from`.
    fn check_accepted(
        &self,
        position: &LogPosition,
        bytes: &[u8],
        from: u64,
    ) -> Result<(), StoreError> {
        if position.seq == 0 {
            return Ok(());
        }
        let part = |offset: u64| usize::try_from(offset - from).unwrap_or(usize::MAX);
        let corrupt = |fault| StoreError::Corrupt {
            file: self.log(),
            line: position.seq,
            fault,
        };
        let Some(line) = bytes.get(part(position.line_start)..part(position.offset)) else {
            let found = from + u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let acknowledged = position.offset;
            return Err(corrupt(LineError::Shortened {
                acknowledged,
                found,
            }));
        };
        match line.strip_suffix(b"\n") {
            Some(line) if sha256_hex(line) == position.last_hash => Ok(()),
            Some(_) | None => Err(corrupt(LineError::Changed)),
        }
    }

    fn decode(&self, position: &LogPosition, bytes: &[u8]) -> Result<LogTail, StoreError> {
        decode(&self.name, position, bytes).map_err(|error| StoreError::Corrupt {
            file: self.log(),
            line: error.line,
            fault: error.fault,
        })
    }
}
