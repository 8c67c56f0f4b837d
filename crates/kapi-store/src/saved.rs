//! `state.json`: the fold at some place of the log, so that loading need not begin at its start.
//!
//! Derived and not synced: whatever is wrong with it, it is rebuilt from the log. It is written
//! only after the log and its name are durable, so the place it names was accepted.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::codec::LogPosition;
use crate::hash::sha256_hex;

/// The layout of `state.json`, raised whenever the fold or its shape changes.
pub const STATE_VERSION: u32 = 2;

/// A fold and its position in the log.
#[derive(Debug, Clone)]
pub struct SavedFold {
    /// The position of the last record that it folds.
    pub position: LogPosition,
    /// The fold as JSON.
    pub state: Box<RawValue>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    v: u32,
    seq: u64,
    line_start: u64,
    offset: u64,
    last_hash: String,
    /// SHA-256 of the state's bytes: half a page of old content must not pass for new.
    state_hash: String,
    state: Box<RawValue>,
}

impl SavedFold {
    /// Reads a `state.json`; `None` when it is damaged or of another version.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let file: StateFile = serde_json::from_slice(bytes).ok()?;
        if file.v != STATE_VERSION || sha256_hex(file.state.get().as_bytes()) != file.state_hash {
            return None;
        }
        let position = LogPosition {
            seq: file.seq,
            line_start: file.line_start,
            offset: file.offset,
            last_hash: file.last_hash,
        };
        let is_possible = position.seq > 0 && position.line_start < position.offset;
        is_possible.then_some(Self {
            position,
            state: file.state,
        })
    }

    /// Returns the bytes of `state.json`.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(&StateFile {
            v: STATE_VERSION,
            seq: self.position.seq,
            line_start: self.position.line_start,
            offset: self.position.offset,
            last_hash: self.position.last_hash.clone(),
            state_hash: sha256_hex(self.state.get().as_bytes()),
            state: self.state.clone(),
        })?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
