//! What a run left behind, as a log remembers it: each file by name, length and hash.
//!
//! Knows neither where the files are nor what stands in them; whoever performs an effect hashes
//! them, and an audit compares.

use serde::{Deserialize, Serialize};

/// One file of a run, as it was when the run was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceFile {
    /// Its path below the run's directory.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hexadecimal.
    pub sha256: String,
}
