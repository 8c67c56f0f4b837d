//! Why a use case did not succeed, in the kinds a caller must tell apart.
//!
//! A rule's refusal and the world's are different variants; nothing here is printed.

use std::path::PathBuf;

use kapi_core::id::GoalId;
use kapi_machine::error::StreamError;
use kapi_store::error::StoreError;
use kapi_sys::disk::DiskError;
use kapi_sys::lock::LockError;

use crate::rules::denied::GoalDenial;

/// A use case that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A rule said no; nothing changed.
    #[error(transparent)]
    Denied(#[from] GoalDenial),
    /// There is no such goal.
    #[error("find goal {goal}")]
    NotFound {
        /// What was looked for.
        goal: GoalId,
    },
    /// Somebody else holds the lock.
    #[error("lock {}, held by {owner}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        owner: String,
    },
    /// A log is not what was written; nothing was changed.
    #[error(transparent)]
    Corrupt(StoreError),
    /// A sound line of a log holds an event that this program does not know.
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
    /// The store failed before anything was accepted.
    #[error(transparent)]
    Store(StoreError),
    /// The events are recorded, but what follows from them could not be written; it is written
    /// with the next event.
    #[error("write what follows from the recorded events")]
    NotDerived(#[source] Box<Self>),
    /// Something could not be written as JSON.
    #[error("encode {what}")]
    Encode {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl EngineError {
    /// Returns what to do about it, if there is something. `reference` names the goal.
    #[must_use]
    pub fn hint(&self, reference: &str) -> Option<String> {
        match self {
            Self::Denied(denied) => denied.hint(reference),
            Self::Corrupt(error) | Self::Store(error) => error.hint(),
            Self::Busy { owner, .. } => {
                Some(format!("wait for {owner} to finish, then try again."))
            }
            Self::NotFound { .. } => Some("list the goals with `kapi status`.".to_owned()),
            Self::UnknownEvent { .. } => {
                Some("a newer version of Kapi wrote the log; use that version.".to_owned())
            }
            Self::NotDerived(error) => error.hint(reference),
            Self::Encode { .. } => None,
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Lock(LockError::Busy { path, owner }) => Self::Busy { path, owner },
            StoreError::Corrupt { .. } => Self::Corrupt(error),
            StoreError::Disk(_)
            | StoreError::Lock(LockError::Failed { .. })
            | StoreError::TooLong { .. }
            | StoreError::Encode { .. }
            | StoreError::IndexesUsedUp { .. } => Self::Store(error),
        }
    }
}

impl From<DiskError> for EngineError {
    fn from(error: DiskError) -> Self {
        Self::Store(StoreError::Disk(error))
    }
}

impl From<LockError> for EngineError {
    fn from(error: LockError) -> Self {
        Self::from(StoreError::Lock(error))
    }
}

impl From<StreamError> for EngineError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Store(error) => Self::from(error),
            StreamError::UnknownEvent { file, line, source } => {
                Self::UnknownEvent { file, line, source }
            }
            StreamError::Encode { what, source } => Self::Encode { what, source },
        }
    }
}
