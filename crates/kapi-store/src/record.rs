//! One line of a log: an envelope around a fact.
//!
//! The envelope is the same for every stream; what `type` and `data` mean is the reader's affair.

use std::fmt;

use kapi_core::actor::Actor;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::timestamp;

/// The only envelope there is so far.
pub const RECORD_VERSION: u32 = 1;

/// One line of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRecord {
    /// The layout of the envelope.
    pub v: u32,
    /// Its place in the stream, from 1, without gaps.
    pub seq: u64,
    /// When it was accepted, in milliseconds since the epoch.
    #[serde(rename = "at", with = "timestamp")]
    pub at_ms: i64,
    /// `<stream>#<seq>`.
    pub id: String,
    /// What kind of fact it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who asked for it.
    pub actor: Actor,
    /// The fact itself; `null` where the kind says everything.
    pub data: Box<RawValue>,
    /// SHA-256 of the line before without its newline; zeros before the first.
    pub prev: String,
    /// Whether the next line was accepted together with this one. What was accepted together
    /// survives a power cut together or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A fact to be recorded.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// What kind of fact it is.
    pub kind: String,
    /// The fact itself.
    pub data: Box<RawValue>,
}

/// Facts accepted together.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// Who asked for them.
    pub actor: &'a Actor,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The facts, in order.
    pub payloads: Vec<NewRecord>,
}

impl LogRecord {
    /// Returns the id of the record at this place of a stream.
    #[must_use]
    pub fn id_of(stream: &str, seq: u64) -> String {
        format!("{stream}#{seq}")
    }
}

impl PartialEq for LogRecord {
    fn eq(&self, other: &Self) -> bool {
        let parts = |record: &Self| {
            (
                record.v,
                record.seq,
                record.at_ms,
                record.data.get().to_owned(),
                record.more,
            )
        };
        let names = |record: &Self| {
            (
                record.id.clone(),
                record.kind.clone(),
                record.actor.clone(),
                record.prev.clone(),
            )
        };
        parts(self) == parts(other) && names(self) == names(other)
    }
}

impl fmt::Display for LogRecord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = timestamp::format_ms(self.at_ms);
        write!(
            out,
            "{} {at} {} {} {}",
            self.seq,
            self.actor,
            self.kind,
            self.data.get()
        )
    }
}
