//! A stream of accepted batches on the cluster: one message is one batch, in the lines that would
//! stand in `events.jsonl`, hash chain included.
//!
//! A batch is accepted only at the place it was decided for, and once, however often it had to be
//! sent. Does not know what events mean: the fold comes and goes as JSON.

use std::sync::Arc;

use jiff::Timestamp;
use kapi_store::codec::{LINE_BYTES_MAX, LineError, LogPosition, decode, encode};
use kapi_store::hash::sha256_hex;
use kapi_store::record::{Batch, LogRecord};
use kapi_store::saved::SavedFold;
use kapi_sys::clock::Clock;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::blob::{self, BlobLocation};
use crate::client::{FleetClient, FleetSettings, random_hex};
use crate::error::FleetError;
use crate::jetstream::api::StreamConfig;
use crate::jetstream::{ExpectedPosition, JetStream, PublishOutcome};
use crate::names::SubjectNames;
use crate::objects::FleetObjects;
use crate::past::FleetHistory;
use crate::watch::NewsWatch;

/// The layout of the note that says where the fold is.
const NOTE_VERSION: u32 = 1;
/// Messages read at once while there are more: the first time, and at most.
const READ_MIN: u64 = 4;
const READ_MAX: u64 = 64;
/// Bytes of a message that are not the batch.
const HEADER_BYTES: usize = 1_024;
/// How often the fold is looked for anew when somebody replaces it meanwhile.
const FOLD_TRIES: u32 = 8;

/// A project's log on the cluster. Holds no part of it.
pub struct NetLog {
    client: Arc<FleetClient>,
    names: SubjectNames,
    /// The stream's name in the ids of its records.
    stream_name: String,
    /// What tells this process's batches from those of others that say the same.
    writer: String,
    n_batches: u64,
}

/// How far a log was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetCursor {
    /// The place after the last record read.
    pub position: LogPosition,
    /// The message it came in.
    pub message: u64,
}

/// What a log holds.
#[derive(Debug)]
pub struct LoadedFleetLog {
    /// The fold at some place, if there is one that can be read.
    pub state: Option<Box<RawValue>>,
    /// The records after that place; all of them when there is no fold.
    pub records: Vec<LogRecord>,
    /// Where reading ended.
    pub cursor: FleetCursor,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchOutcome {
    /// It was accepted; these are its records.
    Accepted(Vec<LogRecord>),
    /// Somebody else's came first: read it, and decide again.
    Conflict,
}

/// Where the fold is and what it stands for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FoldNote {
    v: u32,
    /// The last record that the fold knows.
    seq: u64,
    /// The message that record came in.
    message: u64,
    #[serde(rename = "place")]
    location: BlobLocation,
}

impl FleetCursor {
    /// Returns the place before the first record.
    #[must_use]
    pub fn start() -> Self {
        Self {
            position: LogPosition::start(),
            message: 0,
        }
    }
}

impl NetLog {
    /// Opens a project's log and makes it where it is not there yet.
    ///
    /// # Errors
    /// When the project's name cannot be used, or the cluster does not answer or refuses.
    pub fn open(settings: FleetSettings, project: &str, stream: &str) -> Result<Self, FleetError> {
        let names = SubjectNames::of(project)?;
        let replicas = settings.replicas;
        let log = Self {
            client: Arc::new(FleetClient::new(settings)?),
            names,
            stream_name: stream.to_owned(),
            writer: random_hex()?,
            n_batches: 0,
        };
        let messages = StreamConfig::of(log.names.log_stream(), log.names.log(), replicas);
        log.messages()
            .ensure(&messages.into_log(log.names.news()))?;
        let files = StreamConfig::of(log.names.file_stream(), log.names.files(), replicas);
        log.files().ensure(&files)?;
        let notes = StreamConfig::of(log.names.fold_stream(), log.names.fold(), replicas);
        log.notes().ensure(&notes)?;
        Ok(log)
    }

    /// Returns how errors name the log.
    #[must_use]
    pub fn name(&self) -> String {
        self.names.log_stream()
    }

    /// Returns what tells this log from every other that is open anywhere.
    #[must_use]
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Loads the fold and the records after it. Changes nothing.
    ///
    /// # Errors
    /// When the log is not what was accepted, or the cluster does not answer.
    pub fn load(&self) -> Result<LoadedFleetLog, FleetError> {
        let Some((saved, message)) = self.saved()? else {
            return self.load_all();
        };
        let mut cursor = FleetCursor {
            position: saved.position,
            message,
        };
        self.check_accepted(&cursor)?;
        let records = self.read_more(&mut cursor)?;
        Ok(LoadedFleetLog {
            state: Some(saved.state),
            records,
            cursor,
        })
    }

    /// Loads every record and no fold, for a fold that cannot be used.
    ///
    /// # Errors
    /// When the log is not what was accepted, or the cluster does not answer.
    pub fn load_all(&self) -> Result<LoadedFleetLog, FleetError> {
        let mut cursor = FleetCursor::start();
        let records = self.read_more(&mut cursor)?;
        Ok(LoadedFleetLog {
            state: None,
            records,
            cursor,
        })
    }

    /// Reads the records after the cursor and moves it there.
    ///
    /// # Errors
    /// When the log is not what was accepted, or the cluster does not answer; the cursor has not
    /// moved then.
    pub fn read_more(&self, cursor: &mut FleetCursor) -> Result<Vec<LogRecord>, FleetError> {
        let stream = self.messages();
        let mut here = cursor.clone();
        let mut records = Vec::new();
        // Mostly there is nothing: one question says so.
        let mut at_once = 1;
        loop {
            let from = here.message + 1;
            let some = stream.get_all(from..from + at_once)?;
            let is_end = some.iter().any(Option::is_none);
            // What follows a hole is not ours to read.
            for kept in some.into_iter().map_while(|kept| kept) {
                records.append(&mut self.decode(&mut here, &kept.payload)?);
            }
            if is_end {
                *cursor = here;
                return Ok(records);
            }
            at_once = (at_once * 2).clamp(READ_MIN, READ_MAX);
        }
    }

    /// Appends a batch after the cursor, and moves it there once the batch is accepted.
    ///
    /// # Errors
    /// When the batch is too long, or the cluster refuses. [`FleetError::Unknown`] when it cannot
    /// be found out in time whether it was accepted: reading further will tell.
    pub fn append(
        &mut self,
        cursor: &mut FleetCursor,
        batch: &Batch<'_>,
    ) -> Result<BatchOutcome, FleetError> {
        let stream = self.messages();
        let lines = encode(&self.stream_name, &cursor.position, batch).map_err(|source| {
            FleetError::Encode {
                stream: stream.name.clone(),
                source,
            }
        })?;
        let bytes: Vec<u8> = lines
            .iter()
            .flat_map(|(_, line)| line.iter().copied())
            .collect();
        let longest = lines.iter().map(|(_, line)| line.len()).max().unwrap_or(0);
        let bytes_max = self
            .client
            .payload_bytes_max()?
            .saturating_sub(HEADER_BYTES);
        if longest > LINE_BYTES_MAX || bytes.len() > bytes_max {
            return Err(FleetError::TooLarge {
                stream: stream.name,
                bytes: bytes.len(),
                bytes_max: bytes_max.min(LINE_BYTES_MAX),
            });
        }
        let id = format!("{}-{}-{}", self.writer, self.n_batches, sha256_hex(&bytes));
        let subject = self.names.log();
        let published = stream.publish(
            &subject,
            &bytes,
            &id,
            ExpectedPosition::After(cursor.message),
        )?;
        self.n_batches += 1;
        match published {
            PublishOutcome::Taken => Ok(BatchOutcome::Conflict),
            PublishOutcome::At(message) if message != cursor.message + 1 => {
                Err(FleetError::Missing {
                    stream: self.name(),
                    message: cursor.message + 1,
                })
            }
            PublishOutcome::At(message) => {
                for (_, line) in &lines {
                    let line = line.strip_suffix(b"\n").unwrap_or(line);
                    cursor.position = cursor.position.after(line);
                }
                cursor.message = message;
                let records = lines.into_iter().map(|(record, _)| record);
                Ok(BatchOutcome::Accepted(records.collect()))
            }
        }
    }

    /// Replaces the fold with that at the cursor; tells whether it did. It does not where somebody
    /// else's is as new, or was there first.
    ///
    /// # Errors
    /// When the cluster does not answer or refuses; the log is as good as before.
    pub fn save(&self, cursor: &FleetCursor, state: Box<RawValue>) -> Result<bool, FleetError> {
        let (files, notes) = (self.files(), self.notes());
        let subject = self.names.fold();
        // Read before the parts are sent: whoever can still win after us sends theirs after this.
        let last = notes.last(&subject)?;
        let old: Option<FoldNote> = last.as_ref().and_then(|kept| parse_note(&kept.payload));
        if old.is_some_and(|old| old.seq >= cursor.position.seq) {
            return Ok(false);
        }
        let saved = SavedFold {
            position: cursor.position.clone(),
            state,
        };
        let bytes = saved.encode().map_err(|source| FleetError::Encode {
            stream: files.name.clone(),
            source,
        })?;
        let above = self.names.file("part");
        let location = blob::send(&files, &above, &bytes)?;
        let note = FoldNote {
            v: NOTE_VERSION,
            seq: cursor.position.seq,
            message: cursor.message,
            location,
        };
        let json = notes.encode(&note)?;
        let revision = last.map_or(0, |kept| kept.seq);
        let id = format!("{}-note", note.location.subject);
        match notes.publish(&subject, &json, &id, ExpectedPosition::After(revision))? {
            PublishOutcome::Taken => {
                files.purge_but(&format!("{}.>", note.location.subject), 0)?;
                Ok(false)
            }
            PublishOutcome::At(_) => {
                files.purge_before(&format!("{above}.>"), note.location.first)?;
                notes.purge_but(&subject, 1)?;
                Ok(true)
            }
        }
    }

    /// Returns the number of the last record that the fold knows; 0 without one.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn saved_seq(&self) -> Result<u64, FleetError> {
        let last = self.notes().last(&self.names.fold())?;
        let note = last.and_then(|kept| parse_note(&kept.payload));
        Ok(note.map_or(0, |note| note.seq))
    }

    /// Returns by how much the cluster's clock is ahead of this machine's, in milliseconds.
    ///
    /// Leases end at a time: it must be the same one for every machine.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn clock_offset_ms(&self, clock: &dyn Clock) -> Result<i64, FleetError> {
        let files = self.files();
        let subject = self.names.file(&format!("clock.{}", random_hex()?));
        let id = format!("{subject}-now");
        let before_ms = clock.now_ms();
        files.publish(&subject, b"?", &id, ExpectedPosition::Any)?;
        let after_ms = clock.now_ms();
        let kept = files.last(&subject)?;
        files.purge_but(&subject, 0)?;
        let taken = kept.and_then(|kept| kept.time.parse::<Timestamp>().ok());
        let taken_ms = taken.map(Timestamp::as_millisecond);
        let taken_ms = taken_ms.ok_or_else(|| FleetError::OtherStream {
            stream: files.name.clone(),
            what: "it does not say when a message came",
        })?;
        // Anywhere between the two is as good as the other: no correction for what is within.
        Ok(taken_ms - taken_ms.clamp(before_ms, after_ms.max(before_ms)))
    }

    /// Returns what waits for news, with a connection of its own.
    ///
    /// # Errors
    /// When a file that proves who asks cannot be read.
    pub fn watch(&self) -> Result<NewsWatch, FleetError> {
        Ok(NewsWatch::of(self.client.another()?, self.names.news()))
    }

    /// Returns what has ended.
    #[must_use]
    pub fn past(&self) -> FleetHistory {
        FleetHistory::of(Arc::clone(&self.client), self.names.clone())
    }

    /// Returns what travels.
    #[must_use]
    pub fn objects(&self) -> FleetObjects {
        FleetObjects::of(Arc::clone(&self.client), self.names.clone())
    }

    fn messages(&self) -> JetStream<'_> {
        JetStream {
            client: &self.client,
            name: self.names.log_stream(),
        }
    }

    fn notes(&self) -> JetStream<'_> {
        JetStream {
            client: &self.client,
            name: self.names.fold_stream(),
        }
    }

    fn files(&self) -> JetStream<'_> {
        JetStream {
            client: &self.client,
            name: self.names.file_stream(),
        }
    }

    /// Returns the fold and the message that its last record came in.
    fn saved(&self) -> Result<Option<(SavedFold, u64)>, FleetError> {
        let (files, notes) = (self.files(), self.notes());
        for _ in 0..FOLD_TRIES {
            let last = notes.last(&self.names.fold())?;
            let Some(note) = last.and_then(|kept| parse_note(&kept.payload)) else {
                return Ok(None);
            };
            // Gone while we looked: somebody has put a newer one there.
            if let Some(bytes) = blob::fetch(&files, &note.location)? {
                return Ok(SavedFold::parse(&bytes).map(|saved| (saved, note.message)));
            }
        }
        // Whatever is wrong with it, it can be made again from the log.
        Ok(None)
    }

    /// Checks that the message which the fold ends with is still what it was.
    fn check_accepted(&self, cursor: &FleetCursor) -> Result<(), FleetError> {
        let kept = self.messages().get(cursor.message)?;
        let kept = kept.ok_or_else(|| FleetError::Missing {
            stream: self.name(),
            message: cursor.message,
        })?;
        let lines = kept.payload.strip_suffix(b"\n").unwrap_or(&kept.payload);
        let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or(lines);
        if sha256_hex(last) == cursor.position.last_hash {
            return Ok(());
        }
        Err(self.corrupt(cursor.message, LineError::Changed))
    }

    fn decode(&self, here: &mut FleetCursor, payload: &[u8]) -> Result<Vec<LogRecord>, FleetError> {
        let message = here.message + 1;
        let tail = decode(&self.stream_name, &here.position, payload)
            .map_err(|error| self.corrupt(message, error.fault))?;
        if tail.torn_bytes > 0 || tail.records.is_empty() {
            return Err(self.corrupt(message, LineError::NoNewline));
        }
        *here = FleetCursor {
            position: tail.position,
            message,
        };
        Ok(tail.records)
    }

    fn corrupt(&self, message: u64, fault: LineError) -> FleetError {
        FleetError::Corrupt {
            stream: self.name(),
            message,
            fault,
        }
    }
}

/// Whatever is wrong with a note, the fold is made again from the log.
fn parse_note(json: &[u8]) -> Option<FoldNote> {
    let note: FoldNote = serde_json::from_slice(json).ok()?;
    (note.v == NOTE_VERSION && note.seq > 0).then_some(note)
}
