//! The status file of a run: its one writer, and what may feed it from inside a sandbox.
//!
//! The file lies on the host and is never mounted. An agent's hooks reach the writer through a
//! socket, other agents' through a file of theirs that is polled; both can choose a word and a
//! number below 90, and nothing else. Knows nothing of how a run is made.

pub mod listener;
pub mod mapping_file;
pub mod progress_file;
pub mod watch;
pub mod writer;

mod ownership;
mod private_file;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use kapi_sys::lock::LockError;

/// Why a status file could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// A file operation failed.
    #[error("{op} {}", path.display())]
    File {
        /// The operation, as a verb.
        op: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else holds the lock of the file for too long.
    #[error("lock a status file")]
    Lock(#[from] LockError),
    /// The file's name belongs to a run of another project.
    #[error(
        "name the status file of run {agent_id} of {project}: the name belongs to a run of \
         another project"
    )]
    Taken {
        /// The run.
        agent_id: String,
        /// Its project.
        project: String,
    },
    /// The content has no form as a file.
    #[error("write the status of {}", path.display())]
    Form {
        /// The status file.
        path: PathBuf,
        /// What was wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl StatusError {
    fn at(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            op,
            path: path.to_path_buf(),
            source,
        }
    }
}
