//! How far each log was read, in a file of the person's: what `--cursor` names.
//!
//! Replaced in one durable step after what it speaks of was written, so that an event may come twice
//! after a crash and is never left out.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use kapi_sys::disk::{Disk, replace_durably};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::exit_code::Exit;

/// The layout of the file.
const VERSION: u32 = 1;
/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// How far one stream was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamMark {
    /// The number of the last event.
    pub(super) seq: u64,
    /// The hash of its line, by which it is recognized; of a launch, which has no log, its state.
    pub(super) last: String,
}

/// How far each stream was read, by name.
pub(super) type StreamMarks = BTreeMap<String, StreamMark>;

/// A cursor file.
#[derive(Debug)]
pub(super) struct CursorFile {
    path: PathBuf,
    marks: StreamMarks,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CursorDocument {
    v: u32,
    streams: StreamMarks,
}

impl CursorFile {
    /// Reads a file; one that is not there yet remembers nothing.
    pub(super) fn read(path: PathBuf) -> Result<Self, Error> {
        let marks = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => StreamMarks::new(),
            Err(error) => return Err(unread(&path, &error)),
            Ok(found) if found.len() > BYTES_MAX => {
                return Err(unusable(&path, "it is larger than 64 MiB"));
            }
            Ok(_) => {
                let text = fs::read_to_string(&path).map_err(|error| unread(&path, &error))?;
                let document: CursorDocument = serde_json::from_str(&text)
                    .map_err(|error| unusable(&path, &error.to_string()))?;
                if document.v != VERSION {
                    return Err(unusable(&path, "another version of Kapi wrote it"));
                }
                document.streams
            }
        };
        Ok(Self { path, marks })
    }

    /// Returns what it remembers.
    pub(super) fn marks(&self) -> StreamMarks {
        self.marks.clone()
    }

    /// Remembers how far the streams were read.
    pub(super) fn write(&mut self, disk: &dyn Disk, marks: StreamMarks) -> Result<(), Error> {
        if marks == self.marks {
            return Ok(());
        }
        let document = CursorDocument {
            v: VERSION,
            streams: marks,
        };
        let mut text = serde_json::to_vec(&document).map_err(|error| Error::failed(&error))?;
        text.push(b'\n');
        replace_durably(disk, &self.path, &text).map_err(|error| Error::failed(&error))?;
        self.marks = document.streams;
        Ok(())
    }
}

fn unread(path: &std::path::Path, error: &std::io::Error) -> Error {
    let text = format!("failed to read the cursor {}: {error}", path.display());
    Error::new(Exit::Failed, text)
}

fn unusable(path: &std::path::Path, why: &str) -> Error {
    Error::usage(format!(
        "{} is not a cursor of `kapi events`: {why}",
        path.display()
    ))
    .with_hint("name a new file, or remove this one to begin with the first event.")
}
