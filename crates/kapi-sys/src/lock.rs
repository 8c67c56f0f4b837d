//! Advisory file locks that name their owner.
//!
//! `flock(2)` on an open file: the kernel drops it when the process dies, however it dies.

use std::fs::File;
use std::path::PathBuf;

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    file: Option<File>,
}

/// A lock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("lock {}, held by {owner}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it ("pid 4711, kapi run").
        owner: String,
    },
    /// The system refused.
    #[error("lock {}", path.display())]
    Failed {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}
