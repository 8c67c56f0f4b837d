//! The directory of one run: prompt, transcript, logs, each capped.
//!
//! Its `started` mark tells a repeated effect that an earlier attempt was cut off; what that attempt
//! wrote stays.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_sys::disk::{self, Disk as _, DiskError};
use kapi_sys::real_disk::RealDisk;

use crate::failure;

/// Bytes of a transcript that one attempt may write.
const TRANSCRIPT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a log, of all attempts, beyond which no other begins.
const KEPT_BYTES_MAX: u64 = 256 << 20;
/// Stands before what another attempt, or another program of the run, writes.
const REOPENED: &str = r#"{"log":"reopened"}"#;
/// Stands where room for more was missing.
const FULL: &str = r#"{"log":"full"}"#;

/// One run's directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Opens the directory of a run, making it if it is missing.
    pub fn open(runs: &Path, run_id: &str) -> Result<Self, Failure> {
        let path = runs.join(run_id);
        RealDisk
            .create_dir(&path)
            .map_err(|error| failure::plain(&error))?;
        Ok(Self { path })
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file durably.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        disk::replace_durably(&RealDisk, &self.file(name), bytes)
            .map_err(|error: DiskError| failure::plain(&error))
    }

    /// Marks the run as started and tells whether it was marked before.
    pub fn mark_started(&self) -> Result<bool, Failure> {
        let mark = self.file("started");
        let was_started = RealDisk
            .len(&mark)
            .map_err(|error| failure::plain(&error))?
            .is_some();
        if !was_started {
            self.keep("started", b"")?;
        }
        Ok(was_started)
    }

    /// Opens the transcript; an earlier attempt's stays in it.
    pub(crate) fn transcript(&self) -> Result<AgentTranscript, Failure> {
        Ok(AgentTranscript {
            log: self.log("transcript.jsonl")?,
            is_full: false,
        })
    }

    /// Opens a log of this run at its end, where a line tells what follows from what was there.
    pub(crate) fn log(&self, name: &str) -> Result<RunLog, Failure> {
        let path = self.file(name);
        let (file, length, is_torn) =
            open_at_end(&path).map_err(|error| failure::file("open", &path, &error))?;
        if length > KEPT_BYTES_MAX {
            return Err(Failure {
                message: format!(
                    "append to {}: it already has {length} bytes",
                    path.display()
                ),
                hint: Some("remove it; nothing else reads it.".to_owned()),
            });
        }
        let mut log = RunLog {
            file,
            n_bytes: 0,
            is_torn,
        };
        if length > 0 {
            log.add(REOPENED)
                .map_err(|error| failure::file("write", &path, &error))?;
        }
        Ok(log)
    }
}

/// Opens a file to add to it; tells its length, and whether its last line has no end.
fn open_at_end(path: &Path) -> io::Result<(fs::File, u64, bool)> {
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok((file, length, last != [b'\n']))
}

/// Lines of a run, one JSON object each; for people, never read back.
#[derive(Debug)]
pub(crate) struct RunLog {
    file: fs::File,
    /// Bytes written since it was opened.
    n_bytes: usize,
    /// The last line may not have its end.
    is_torn: bool,
}

impl RunLog {
    /// Returns how many bytes were written since it was opened.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: &str) -> io::Result<()> {
        let before = if self.is_torn { "\n" } else { "" };
        let text = format!("{before}{line}\n");
        self.n_bytes = self.n_bytes.saturating_add(text.len());
        self.is_torn = true;
        self.file.write_all(text.as_bytes())?;
        self.is_torn = false;
        Ok(())
    }
}

/// What an agent did, as far as there is room.
#[derive(Debug)]
pub(crate) struct AgentTranscript {
    log: RunLog,
    is_full: bool,
}

impl AgentTranscript {
    /// Adds a line while there is room, and then one that says that there is none.
    pub(crate) fn add(&mut self, line: &str) -> io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        if self.log.n_bytes() + line.len() < TRANSCRIPT_BYTES_MAX {
            return self.log.add(line);
        }
        self.is_full = true;
        self.log.add(FULL)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FULL, KEPT_BYTES_MAX, REOPENED, RunDir, TRANSCRIPT_BYTES_MAX};

    #[test]
    fn a_second_attempt_adds_to_what_the_first_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let run_dir = RunDir::open(directory.path(), "run").unwrap();
        for name in ["network.jsonl", "transcript.jsonl"] {
            let path = run_dir.file(name);
            run_dir.log(name).unwrap().add("1").unwrap();
            run_dir.log(name).unwrap().add("2").unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("1\n{REOPENED}\n2\n"));
        }
    }

    #[test]
    fn a_line_that_was_cut_off_spoils_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let run_dir = RunDir::open(directory.path(), "run").unwrap();
        let mut torn = fs::File::create(run_dir.file("transcript.jsonl")).unwrap();
        std::io::Write::write_all(&mut torn, b"{\"type\":\"te").unwrap();
        run_dir.transcript().unwrap().add("2").unwrap();
        let text = fs::read_to_string(run_dir.file("transcript.jsonl")).unwrap();
        assert_eq!(text, format!("{{\"type\":\"te\n{REOPENED}\n2\n"));
    }

    #[test]
    fn a_full_transcript_says_so_once() {
        let directory = tempfile::tempdir().unwrap();
        let run_dir = RunDir::open(directory.path(), "run").unwrap();
        let mut transcript = run_dir.transcript().unwrap();
        let line = "x".repeat(TRANSCRIPT_BYTES_MAX / 4);
        for _ in 0..10 {
            transcript.add(&line).unwrap();
        }
        transcript.add("short").unwrap();
        let text = fs::read_to_string(run_dir.file("transcript.jsonl")).unwrap();
        assert_eq!(text, format!("{line}\n{line}\n{line}\n{FULL}\n"));
    }

    #[test]
    fn a_log_does_not_grow_without_end_over_attempts() {
        let directory = tempfile::tempdir().unwrap();
        let run_dir = RunDir::open(directory.path(), "run").unwrap();
        let path = run_dir.file("network.jsonl");
        let file = fs::File::create(&path).unwrap();
        file.set_len(KEPT_BYTES_MAX + 1).unwrap();
        let failure = run_dir.log("network.jsonl").unwrap_err();
        assert!(failure.message.contains("network.jsonl"), "{failure:?}");
        assert_eq!(fs::metadata(&path).unwrap().len(), KEPT_BYTES_MAX + 1);
    }
}
