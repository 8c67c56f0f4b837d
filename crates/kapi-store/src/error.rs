//! Why a stream could not be read or written.
//!
//! A damaged log is an error that names file and line; the store never mends it by overwriting.

use std::path::PathBuf;

use kapi_sys::disk::DiskError;
use kapi_sys::lock::LockError;

use crate::codec::LineError;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Somebody else holds the lock, or it could not be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The log is not what was written.
    #[error("trust {} at line {line}", file.display())]
    Corrupt {
        /// The log.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        #[source]
        fault: LineError,
    },
    /// An event is larger than a line may be.
    #[error("append to {}: the event has {bytes} bytes; the maximum is \
        {}", file.display(), crate::codec::LINE_BYTES_MAX)]
    TooLong {
        /// The log.
        file: PathBuf,
        /// The line's length.
        bytes: usize,
    },
    /// A document could not be written as JSON.
    #[error("encode {}", file.display())]
    Encode {
        /// The file it was meant for.
        file: PathBuf,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
    /// Every index of the project is used.
    #[error("find a free index in {}", directory.display())]
    IndexesUsedUp {
        /// The directory of the goals.
        directory: PathBuf,
    },
}

impl StoreError {
    /// Returns what to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Corrupt { file, .. } => Some(format!(
                "nothing was changed. `kapi audit` lists every error; restore {} from a backup, \
                 or move its directory away to continue without it.",
                file.display()
            )),
            Self::Lock(LockError::Busy { owner, .. }) => {
                Some(format!("wait for {owner} to finish, then try again."))
            }
            Self::Disk(_)
            | Self::Lock(LockError::Failed { .. })
            | Self::TooLong { .. }
            | Self::Encode { .. }
            | Self::IndexesUsedUp { .. } => None,
        }
    }
}
