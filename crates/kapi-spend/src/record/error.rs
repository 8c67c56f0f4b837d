//! Why the spend ledger could not answer.
//!
//! A refusal by a cap is an answer and not among these.

use std::path::PathBuf;

use kapi_machine::error::StreamError;
use kapi_machine::slots::SlotError;
use kapi_store::error::StoreError;
use kapi_sys::lock::LockError;

use crate::rules::decide::SpendDenied;

/// A request of the ledger that failed.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A rule said no; nothing changed.
    #[error(transparent)]
    Denied(#[from] SpendDenied),
    /// The stream could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A sound line of the log holds an event that this program does not know.
    #[error("understand {} at line {line}", file.display())]
    UnknownEvent {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Something could not be written as JSON.
    #[error("encode {what}")]
    Encode {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The events are recorded, but what follows from them could not be written; it is written
    /// with a later event.
    #[error("write what follows from the recorded events")]
    NotDerived(#[source] Box<Self>),
    /// There is no place for one more process that spends.
    #[error(transparent)]
    Place(#[from] SlotError),
}

impl LedgerError {
    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(StoreError::Corrupt { file, .. }) => Some(format!(
                "nothing was changed and no spending is allowed; restore {} from a backup, or \
                 move its directory away to start a new ledger.",
                file.display()
            )),
            Self::Store(error) => error.hint(),
            Self::NotDerived(error) => error.hint(),
            Self::UnknownEvent { .. } => {
                Some("a newer version of Kapi wrote the log; use that version.".to_owned())
            }
            Self::Denied(SpendDenied::OnlyHuman) => {
                Some("ask the user to run the command in their own terminal.".to_owned())
            }
            Self::Place(SlotError::Full { .. }) => Some("wait for some of them to end.".to_owned()),
            Self::Place(SlotError::Lock(_)) | Self::Encode { .. } => None,
        }
    }
}

impl From<LockError> for LedgerError {
    fn from(error: LockError) -> Self {
        Self::Store(StoreError::Lock(error))
    }
}

impl From<StreamError> for LedgerError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Store(error) => Self::Store(error),
            StreamError::UnknownEvent { file, line, source } => {
                Self::UnknownEvent { file, line, source }
            }
            StreamError::Encode { what, source } => Self::Encode { what, source },
        }
    }
}
