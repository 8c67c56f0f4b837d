//! Why a layer could not be committed.
//!
//! Knows nothing of how a commit is made.

use super::LayerError;
use crate::candidate::CandidateError;
use crate::command::GitError;
use crate::owned_dir::DirError;

/// The most bytes one commit takes from a layer.
pub const BYTES_MAX: u64 = 8 << 30;

/// A layer that could not be committed; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum LayerCommitError {
    /// More content than one commit may take.
    #[error("commit more than {BYTES_MAX} bytes")]
    TooManyBytes,
    /// The layer cannot be read.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The commit cannot be made, whatever the files are.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
