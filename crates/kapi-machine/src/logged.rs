//! Events as they stand in a log, with their envelope: the one codec of every stream.
//!
//! Translates between the rules' enumerations, tagged by a type beside its data, and the store's
//! records; knows nothing of files.

use std::path::Path;

use kapi_core::actor::Actor;
use kapi_store::record::{Batch, LogRecord, NewRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::StreamError;

/// An event with its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord<E> {
    /// Its place in the log, from 1.
    pub seq: u64,
    /// When it was accepted, in milliseconds since the epoch.
    pub at_ms: i64,
    /// Who asked for it.
    pub actor: Actor,
    /// The event.
    pub event: E,
}

#[derive(Deserialize)]
struct TaggedEvent {
    #[serde(rename = "type")]
    kind: String,
    data: Option<Box<RawValue>>,
}

/// Returns an event as the store records it.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn to_payload<E: Serialize>(event: &E) -> Result<NewRecord, serde_json::Error> {
    let tagged: TaggedEvent = serde_json::from_str(&serde_json::to_string(event)?)?;
    let data = match tagged.data {
        Some(data) => data,
        None => RawValue::from_string("null".to_owned())?,
    };
    Ok(NewRecord {
        kind: tagged.kind,
        data,
    })
}

/// Reads a record as an event.
///
/// # Errors
/// When the record's type or data is not known.
pub fn to_logged<E: DeserializeOwned>(
    record: &LogRecord,
) -> Result<EventRecord<E>, serde_json::Error> {
    let kind = serde_json::to_string(&record.kind)?;
    let data = record.data.get();
    let text = if data == "null" {
        format!(r#"{{"type":{kind}}}"#)
    } else {
        format!(r#"{{"type":{kind},"data":{data}}}"#)
    };
    Ok(EventRecord {
        seq: record.seq,
        at_ms: record.at_ms,
        actor: record.actor.clone(),
        event: serde_json::from_str(&text)?,
    })
}

/// Reads records as events; none where one of them is not understood.
pub fn read<E: DeserializeOwned>(
    file: &Path,
    records: &[LogRecord],
) -> Result<Vec<EventRecord<E>>, StreamError> {
    let read = |record: &LogRecord| {
        to_logged(record).map_err(|source| StreamError::UnknownEvent {
            file: file.to_path_buf(),
            line: record.seq,
            source,
        })
    };
    records.iter().map(read).collect()
}

/// Returns events as the store records them; `what` is how errors call one.
pub fn batch<'a, E: Serialize>(
    what: &'static str,
    actor: &'a Actor,
    at_ms: i64,
    events: &[E],
) -> Result<Batch<'a>, StreamError> {
    let payloads = events.iter().map(to_payload).collect::<Result<_, _>>();
    Ok(Batch {
        actor,
        at_ms,
        payloads: payloads.map_err(|source| StreamError::Encode { what, source })?,
    })
}

/// Returns events as they stand in the log now that they are recorded.
pub fn recorded<E: Clone>(records: Vec<LogRecord>, events: &[E]) -> Vec<EventRecord<E>> {
    let logged = records.into_iter().zip(events);
    let logged = logged.map(|(record, event)| EventRecord {
        seq: record.seq,
        at_ms: record.at_ms,
        actor: record.actor,
        event: event.clone(),
    });
    logged.collect()
}
