//! One container run as the tests ask for it and as the helper answers, both as JSON.
//!
//! Shared by the test binary and the helper, so it knows neither.

use serde::{Deserialize, Serialize};

/// A run to perform.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The image.
    pub image: String,
    /// The sandbox's name.
    pub name: String,
    /// The host name inside.
    pub hostname: String,
    /// `host` or `loopback`.
    pub network: String,
    /// Host path, inside path, `ro`, `rw` or `cow:<upper>:<work>`.
    pub mounts: Vec<(String, String, String)>,
    /// Shown, also at.
    pub aliases: Vec<(String, String)>,
    /// The private home on the host.
    pub home: String,
    /// Path and content.
    pub files: Vec<(String, String)>,
    /// Volume and place.
    pub volumes: Vec<(String, String)>,
    /// Further security options.
    pub security: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The directory.
    pub cwd: String,
    /// Standard input.
    pub stdin: String,
    /// Texts that the payload finds in descriptors from 3 on.
    pub passed: Vec<String>,
    /// Addresses to listen at; the helper answers each connection with `hello`.
    pub listeners: Vec<String>,
    /// Limits by name.
    pub memory_bytes: Option<u64>,
    /// Processes.
    pub processes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
    /// Bytes of a file.
    pub file_bytes: Option<u64>,
    /// Whether user namespaces may be made inside.
    pub nested_namespaces: bool,
    /// The deadline.
    pub deadline_ms: u64,
    /// Raise the cancel flag when this line was printed.
    pub cancel_on: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// How it ended, or the error as one line of causes.
    pub end: String,
    /// The advice, if it failed.
    pub hint: String,
    /// The tail of its standard output.
    pub stdout: String,
    /// The tail of its standard error.
    pub stderr: String,
    /// How many bytes of standard output there were.
    pub stdout_bytes: u64,
    /// The isolation, for people.
    pub grade: String,
    /// The limit that ended it: `memory 64 MiB`.
    pub exceeded: String,
}
