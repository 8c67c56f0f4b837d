//! Programs of a corpus: started with an environment of their own, and ended at a deadline.
//!
//! Knows neither cases nor verdicts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kapi_sys::process::{self, FinishedProcess, ProcessEnd, ProcessLimits, Program};

/// What a program says whose work waits for a person.
pub(super) const PARKED: &str = "parked until you approve";

/// Bytes kept of each output.
const TAIL_BYTES_MAX: usize = 4 << 20;

/// Variables by which clients of registries learn of proxies and of certificate authorities.
const CLIENT_SETTINGS: &[&str] = &[
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "GOPROXY",
    "GOSUMDB",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_FIND_LINKS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Where and as whom programs are started.
#[derive(Debug, Clone)]
pub(super) struct Shell {
    /// The working directory.
    pub(super) directory: PathBuf,
    /// The whole environment.
    pub(super) variables: BTreeMap<OsString, OsString>,
    /// The longest a program may take.
    pub(super) deadline: Duration,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub(super) struct ProgramEnd {
    /// Its exit code; nothing where it was killed.
    pub(super) code: Option<i32>,
    /// What it printed.
    pub(super) stdout: String,
    /// What it printed beside that.
    pub(super) stderr: String,
    /// How long it took.
    pub(super) took: Duration,
}

impl Shell {
    /// Runs a program with words and standard input.
    pub(super) fn run(
        &self,
        program: &Path,
        words: &[String],
        input: &str,
    ) -> anyhow::Result<ProgramEnd> {
        let finished = process::run_quiet(Program {
            path: program.to_path_buf(),
            args: words.iter().map(OsString::from).collect(),
            env: self.variables.clone(),
            cwd: self.directory.clone(),
            stdin: input.as_bytes().to_vec(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: self.deadline,
                idle: None,
                tail_bytes_max: TAIL_BYTES_MAX,
                line_bytes_max: TAIL_BYTES_MAX,
            },
        });
        let finished = finished.with_context(|| format!("run {}", program.display()))?;
        Ok(ProgramEnd::from(finished))
    }

    /// Adds what the developer's environment says of the way to registries: proxies and authorities.
    pub(super) fn with_client_settings(mut self) -> Self {
        let reported = process::environment().into_iter();
        let reported =
            reported.filter(|(name, _)| CLIENT_SETTINGS.iter().any(|known| name == known));
        self.variables.extend(reported);
        self
    }

    /// Puts a directory first on the search path.
    pub(super) fn prepend_to_path(&mut self, first: &Path) {
        let mut path = first.as_os_str().to_owned();
        if let Some(rest) = self.variables.get(OsStr::new("PATH")) {
            path.push(":");
            path.push(rest);
        }
        self.variables.insert("PATH".into(), path);
    }

    /// Runs a shell script.
    pub(super) fn sh(&self, script: &str) -> anyhow::Result<ProgramEnd> {
        let words = ["-c".to_owned(), script.to_owned()];
        self.run(Path::new("/bin/sh"), &words, "")
    }

    /// Runs a shell script that must succeed.
    ///
    /// # Errors
    /// When it does not, with the last of what it said.
    pub(super) fn must(&self, script: &str) -> anyhow::Result<ProgramEnd> {
        let ended = self.sh(script)?;
        let first = script.trim().lines().next().unwrap_or_default();
        anyhow::ensure!(
            ended.code == Some(0),
            "run `{first}` in {}: {}",
            self.directory.display(),
            ended.last_words()
        );
        Ok(ended)
    }
}

impl ProgramEnd {
    /// Returns the last lines of what it said, on one line.
    pub(super) fn last_words(&self) -> String {
        let text = if self.stderr.trim().is_empty() {
            &self.stdout
        } else {
            &self.stderr
        };
        let lines: Vec<&str> = text.trim().lines().collect();
        let last = lines
            .get(lines.len().saturating_sub(3)..)
            .unwrap_or_default();
        let code = self
            .code
            .map_or("killed".to_owned(), |code| format!("exit code {code}"));
        format!("{code}: {}", last.join(" / "))
    }
}

impl From<FinishedProcess> for ProgramEnd {
    fn from(finished: FinishedProcess) -> Self {
        let code = match finished.end {
            ProcessEnd::Exited(code) => Some(code),
            ProcessEnd::Signaled(_)
            | ProcessEnd::DeadlinePassed
            | ProcessEnd::IdlePassed
            | ProcessEnd::Cancelled => None,
        };
        Self {
            code,
            stdout: finished.stdout.text(),
            stderr: finished.stderr.text(),
            took: finished.duration,
        }
    }
}
