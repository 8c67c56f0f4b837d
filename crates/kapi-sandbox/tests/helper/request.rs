//! One sandboxed run as the tests ask for it and as the helper answers, both as JSON.
//!
//! Shared by the test binary and the helper, so it knows neither.

use serde::{Deserialize, Serialize};

/// A run to perform.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    /// `native` or `none`.
    pub level: String,
    /// What names it on the host.
    pub name: String,
    /// The host name inside.
    pub hostname: String,
    /// `host` or `loopback`.
    pub network: String,
    /// Host path, inside path, `ro`, `rw` or `cow:<upper>:<work>`.
    pub mounts: Vec<(String, String, String)>,
    /// Shown, also at.
    pub aliases: Vec<(String, String)>,
    /// Addresses that listen inside; the driver answers each connection with its number in this list.
    pub listeners: Vec<String>,
    /// The private home on the host.
    pub home: String,
    /// Path and content.
    pub files: Vec<(String, String)>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The directory.
    pub cwd: String,
    /// Standard input.
    pub stdin: String,
    /// The deadline.
    pub deadline_ms: u64,
    /// Limits: `memory`, `processes`, `cpu`, `files`, `size` or `disk`, and how much.
    pub resources: Vec<(String, u64)>,
    /// The processors that everything inside runs on.
    pub processors: Vec<u32>,
    /// What is counted: `cpu`, `faults` or `instructions`.
    pub counters: Vec<String>,
    /// Whether user namespaces may be made inside.
    pub nested: bool,
    /// Raise the cancel flag when this line was printed.
    pub cancel_on: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// How it ended, or the error as one line of causes.
    pub end: String,
    /// The advice, if it failed.
    pub hint: String,
    /// The isolation it had.
    pub grade: String,
    /// The limit that explains its end.
    pub exceeded: String,
    /// The limits it met on the way.
    pub met: String,
    /// The tail of its standard output.
    pub stdout: String,
    /// The tail of its standard error.
    pub stderr: String,
    /// How many bytes of standard output there were.
    pub stdout_bytes: u64,
    /// What was counted, in the order of what was asked for.
    pub counted: Vec<u64>,
}
