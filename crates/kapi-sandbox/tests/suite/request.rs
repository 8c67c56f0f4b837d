//! One run as the suites ask for it, at whichever level, and as their helper answers, both as JSON.
//!
//! Shared by the suites and the helper, so it knows neither.

use serde::{Deserialize, Serialize};

/// A run to perform.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Request {
    /// `native`, `podman` or `none`.
    pub level: String,
    /// The image, where the level has one.
    pub image: String,
    /// What names the sandbox on the host.
    pub name: String,
    /// The host name inside.
    pub hostname: String,
    /// Whether it is on the host's network.
    pub is_on_host_network: bool,
    /// Whether user namespaces may be made inside.
    pub is_nested: bool,
    /// Host path, place inside, and `ro`, `rw` or `cow:<upper>:<work>`.
    pub mounts: Vec<(String, String, String)>,
    /// Shown, also at.
    pub aliases: Vec<(String, String)>,
    /// The private home on the host.
    pub home: String,
    /// Path and content.
    pub files: Vec<(String, String)>,
    /// Addresses that listen inside; the driver answers each connection with its number in this list.
    pub listeners: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The directory.
    pub cwd: String,
    /// Standard input.
    pub stdin: String,
    /// A file of the host that the program finds open at 3; none when empty.
    pub passed: String,
    /// The longest it may run.
    pub deadline_ms: u64,
    /// The longest it may be silent; zero is as long as it likes.
    pub idle_ms: u64,
    /// Limits: `memory`, `processes`, `cpu`, `files`, `size` or `disk`, and how much.
    pub resources: Vec<(String, u64)>,
    /// Raise the cancel flag when this line was printed.
    pub cancel_on: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// How it ended, or the error as one line of causes.
    pub end: String,
    /// The isolation it had.
    pub grade: String,
    /// The limit it met: `memory 64 MiB`.
    pub exceeded: String,
    /// The tail of its standard output.
    pub stdout: String,
    /// The tail of its standard error.
    pub stderr: String,
    /// How many bytes of standard output there were.
    pub stdout_bytes: u64,
}
