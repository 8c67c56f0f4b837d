//! What a launch's agent came to, noted the moment it has ended: whoever goes on after the launcher was
//! killed knows that the agent need not run again.
//!
//! Lies beside the sandbox's record until what came of the launch is recorded elsewhere. Says nothing
//! of where the work is.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use kapi_core::agent_end::AgentEnd;
use kapi_core::usage::Usage;
use kapi_run::failure;
use kapi_sys::disk;
use kapi_sys::process::ProcessEnd;
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};

use super::agent::AgentEnding;
use super::error::LaunchError;
use super::paths::SandboxPaths;
use super::record::SandboxRecord;

/// The file, beside the record.
const NAME: &str = "ended.json";
/// The largest note that is read.
const BYTES_MAX: u64 = 8 << 20;

/// An agent that has ended well.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndedAgent {
    /// Which launch of the sandbox it was.
    launch: u32,
    message: String,
    grade: Option<String>,
    usage: Usage,
}

/// Notes how an agent ended, if it ended well: any other has to run again anyway.
pub(crate) fn note(
    location: &SandboxPaths,
    record: &SandboxRecord,
    ended: &AgentEnding,
) -> Result<(), LaunchError> {
    if ended.exit_code != 0 || ended.error.is_some() {
        return Ok(());
    }
    let path = file(location);
    let note = EndedAgent {
        launch: record.launches,
        message: ended.message.clone(),
        grade: ended.grade.clone(),
        usage: ended.usage,
    };
    let bytes = serde_json::to_vec(&note)
        .map_err(|error| failure::file("write", &path, &std::io::Error::from(error)))?;
    disk::replace_durably(&RealDisk, &path, &bytes).map_err(|error| LaunchError::failed(&error))
}

/// Returns how the agent of the last launch ended, if it ended well.
pub(crate) fn find(
    location: &SandboxPaths,
    record: &SandboxRecord,
) -> Result<Option<AgentEnding>, LaunchError> {
    let path = file(location);
    let bytes = match fs::metadata(&path) {
        Ok(found) if found.len() <= BYTES_MAX => fs::read(&path),
        Ok(_) => return Ok(None),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure::file("read", &path, &error).into()),
    };
    // A note that cannot be read says nothing, and the agent runs again.
    let note = serde_json::from_slice::<EndedAgent>(&bytes).ok();
    let note = note.filter(|note| note.launch == record.launches);
    Ok(note.map(|note| AgentEnding {
        exit_code: 0,
        agent_end: Some(AgentEnd::Finished),
        process_end: ProcessEnd::Exited(0),
        error: None,
        message: note.message,
        grade: note.grade,
        usage: note.usage,
    }))
}

/// Forgets how the agent ended: what came of it is recorded.
///
/// # Errors
/// When the disk refuses.
pub fn forget(location: &SandboxPaths) -> Result<(), LaunchError> {
    let path = file(location);
    match fs::remove_file(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failure::file("remove", &path, &error).into()),
    }
}

/// Tells whether the agent of a launch ended well and nothing more is recorded of it.
#[must_use]
pub fn is_noted(location: &SandboxPaths) -> bool {
    file(location).is_file()
}

fn file(location: &SandboxPaths) -> PathBuf {
    location.dir().join(NAME)
}
