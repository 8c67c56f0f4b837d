//! The progress file of agents without hooks, polled.
//!
//! The agent writes `.kapsis/progress.json` in its workspace, so whatever is there is hostile: no
//! link is followed, nothing is waited for, only the beginning is read, and it changes a
//! message and a number below 90.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use serde_json::Value;

use super::StatusError;
use super::writer::StatusWriter;

/// The time between two looks.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// Bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// The directory and the file in the workspace.
const DIRECTORY: &str = ".kapsis";
const NAME: &str = "progress.json";

/// The progress file of one workspace.
#[derive(Debug, Clone)]
pub struct ProgressFile {
    workspace: PathBuf,
}

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressStep {
    /// The step it is at.
    pub done: u64,
    /// The steps it knows of.
    pub total: u64,
    /// What it does. Foreign text.
    pub description: String,
}

impl ProgressFile {
    /// Returns the progress file of a workspace, as its directory is on the host.
    #[must_use]
    pub fn new(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_path_buf(),
        }
    }

    /// Returns what the file says now; `None` if there is none or it says nothing.
    #[must_use]
    pub fn step(&self) -> Option<ProgressStep> {
        let bytes = self.bytes().ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let description = value.get("description").and_then(Value::as_str);
        Some(ProgressStep {
            done: number("current_step")?,
            total: number("total_steps").filter(|total| *total > 0)?,
            description: description.unwrap_or("Working").to_owned(),
        })
    }

    /// Looks every two seconds until `stop` is raised, and once more then.
    ///
    /// Returns at once when the thread is unparked after that.
    ///
    /// # Errors
    /// When the status file cannot be replaced.
    pub fn watch(&self, writer: &StatusWriter<'_>, stop: &Cancel) -> Result<(), StatusError> {
        let mut last = None;
        loop {
            let is_last = stop.is_raised();
            let step = self.step();
            if let Some(step) = step.as_ref().filter(|step| last.as_ref() != Some(*step)) {
                writer.steps(step.done, step.total, &step.description)?;
            }
            last = step.or(last);
            writer.beat()?;
            if is_last {
                return Ok(());
            }
            thread::park_timeout(INTERVAL);
        }
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let only_read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = only_read | OFlags::DIRECTORY;
        // The workspace itself is the host's; everything below it is the agent's.
        let workspace = open(
            &self.workspace,
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let folder = openat(&workspace, DIRECTORY, directory, Mode::empty())?;
        let alone = only_read | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(openat(&folder, NAME, alone, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(Errno::INVAL.into());
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
