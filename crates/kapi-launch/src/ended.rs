//! `ended.json`, in which versions before noted beside the log that an agent had ended well.
//!
//! Nothing writes it any more. Whoever takes over such work brings the note into the log, where the
//! end of an agent is an event like any other.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use kapi_core::usage::Usage;
use kapi_run::failure;
use serde::Deserialize;

use super::error::LaunchError;
use super::event::{EndedAgent, LaunchHistory};
use super::log;
use super::paths::SandboxPaths;

/// The file, beside the record.
const NAME: &str = "ended.json";
/// The largest note that is read.
const BYTES_MAX: u64 = 8 << 20;

/// A note of an agent that had ended well.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndedNote {
    /// Which launch of the sandbox it was.
    launch: u32,
    message: String,
    grade: Option<String>,
    usage: Usage,
}

/// Brings the note into the log, if there is one of the last launch. The caller holds the sandbox.
pub(crate) fn bring_in(location: &SandboxPaths, now_ms: i64) -> Result<(), LaunchError> {
    let Some(note) = read(location)? else {
        return forget(location);
    };
    let log = log::at(location);
    let LaunchHistory {
        sandbox, run_used, ..
    } = log.history()?;
    let sandbox = sandbox.filter(|sandbox| sandbox.launches == note.launch);
    if let (Some(sandbox), None) = (sandbox, run_used) {
        let agent = EndedAgent {
            exit_code: 0,
            error: None,
            message: note.message,
            grade: note.grade,
        };
        log.agent_ended(&sandbox, agent, note.usage, now_ms)?;
    }
    forget(location)
}

/// Tells whether there is a note.
pub(crate) fn is_there(location: &SandboxPaths) -> bool {
    file(location).is_file()
}

/// Removes the note.
pub(crate) fn forget(location: &SandboxPaths) -> Result<(), LaunchError> {
    let path = file(location);
    match fs::remove_file(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failure::file("remove", &path, &error).into()),
    }
}

/// Reads the note. One that cannot be understood says nothing, and the agent runs again.
fn read(location: &SandboxPaths) -> Result<Option<EndedNote>, LaunchError> {
    let path = file(location);
    let bytes = match fs::metadata(&path) {
        Ok(found) if found.len() <= BYTES_MAX => fs::read(&path),
        Ok(_) => return Ok(None),
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failure::file("read", &path, &error).into()),
    }
}

fn file(location: &SandboxPaths) -> PathBuf {
    location.dir().join(NAME)
}
