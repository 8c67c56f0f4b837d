//! A workflow's events as they stand in its log, with their envelope.
//!
//! Translates between the rules' events and the store's records; knows nothing of files.

use kapi_core::actor::Actor;
use kapi_core::workflow::event::Event;
use kapi_store::record::{Payload, Record};

use crate::machine::tagged;

/// An event with its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its place in the log, from 1.
    pub seq: u64,
    /// When it was accepted, in milliseconds since the epoch.
    pub at_ms: i64,
    /// Who asked for it.
    pub actor: Actor,
    /// The event.
    pub event: Event,
}

/// Returns an event as the store records it.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn to_payload(event: &Event) -> Result<Payload, serde_json::Error> {
    tagged::to_payload(event)
}

/// Reads a record as an event.
///
/// # Errors
/// When the record's type or data is not known.
pub fn to_logged(record: &Record) -> Result<Logged, serde_json::Error> {
    Ok(Logged {
        seq: record.seq,
        at_ms: record.at_ms,
        actor: record.actor.clone(),
        event: tagged::from_record(record)?,
    })
}
