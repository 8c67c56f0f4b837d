//! The directory of one run: prompt, transcript, logs, each capped.
//!
//! Its `started` mark tells a repeated effect that an earlier attempt was cut off.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use kapi_core::goal::outcome::Failure;
use kapi_sys::disk::{self, Disk as _, DiskError};
use kapi_sys::real_disk::RealDisk;

use crate::failure;

/// Bytes of a transcript that are kept.
pub(crate) const TRANSCRIPT_BYTES_MAX: usize = 16 << 20;

/// One run's directory.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Opens the directory of a run, making it if it is missing.
    pub(crate) fn open(runs: &Path, run_id: &str) -> Result<Self, Failure> {
        let path = runs.join(run_id);
        RealDisk
            .create_dir(&path)
            .map_err(|error| failure::plain(&error))?;
        Ok(Self { path })
    }

    /// Returns the path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file durably.
    pub(crate) fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        disk::replace_durably(&RealDisk, &self.file(name), bytes)
            .map_err(|error: DiskError| failure::plain(&error))
    }

    /// Marks the run as started and tells whether it was marked before.
    pub(crate) fn mark_started(&self) -> Result<bool, Failure> {
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

    /// Opens the transcript, emptied.
    pub(crate) fn transcript(&self) -> Result<Transcript, Failure> {
        let path = self.file("transcript.jsonl");
        let file =
            fs::File::create(&path).map_err(|error| failure::file("create", &path, &error))?;
        Ok(Transcript {
            file,
            bytes_left: TRANSCRIPT_BYTES_MAX,
        })
    }
}

/// What happened in a run, one JSON object a line; for people, never read back.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: fs::File,
    bytes_left: usize,
}

impl Transcript {
    /// Adds a line while there is room.
    pub(crate) fn add(&mut self, line: &str) -> io::Result<()> {
        let bytes = line.len() + 1;
        if bytes > self.bytes_left {
            self.bytes_left = 0;
            return Ok(());
        }
        self.bytes_left -= bytes;
        writeln!(self.file, "{line}")
    }
}
