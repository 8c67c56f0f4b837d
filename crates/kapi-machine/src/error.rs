//! Why a stream could not be read or written, whatever its events mean.
//!
//! Nobody sees these: whoever owns the stream turns them into errors of its own, kind by kind.

use std::path::PathBuf;

use kapi_store::error::StoreError;

/// A stream that could not be read or written.
#[derive(Debug)]
pub enum StreamError {
    /// The store refused.
    Store(StoreError),
    /// A sound line of the log holds an event that this program does not know.
    UnknownEvent {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// Something could not be written as JSON.
    Encode {
        /// What.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

impl From<StoreError> for StreamError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
