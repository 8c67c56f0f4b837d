//! Listing sandboxes: what each is, where it stands, how much it holds.
//!
//! Only reads, and holds none of them, but for the status file of one whose process was killed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kapi_git::layer::{Layer, Marks, walk};
use kapi_status::file::ErrorClass;
use kapi_status::perform::writer::{self, AbandonedRun, LaunchCompletion};

use super::error::LaunchError;
use super::paths::{SandboxPaths, Sandboxes};
use super::prepare;
use super::record::{LaunchState, SandboxRecord, WorkspaceKind};

/// How many entries are counted for a size.
const ENTRIES_MAX: usize = 500_000;
/// The exit code of a launch whose own process was killed, as a shell reports it.
const KILLED: i32 = 137;
/// Bytes of one block of a file's size on disk.
const BLOCK_BYTES: u64 = 512;

/// One sandbox of a list.
#[derive(Debug)]
pub struct SandboxListing {
    /// Where it is.
    pub location: SandboxPaths,
    /// What is known of it, or why that cannot be read.
    pub found: Result<SandboxDetails, LaunchError>,
}

/// What is known of a sandbox.
#[derive(Debug)]
pub struct SandboxDetails {
    /// Its record.
    pub record: SandboxRecord,
    /// `running`, `stopped`, `finished` or `failed`.
    pub state: &'static str,
    /// How many paths differ from the start.
    pub n_changed: usize,
    /// Bytes on disk; at least so many for a very large one.
    pub bytes: u64,
}

/// Lists all sandboxes.
///
/// # Errors
/// When their directory cannot be read.
pub fn list(sandboxes: &Sandboxes) -> Result<Vec<SandboxListing>, LaunchError> {
    let locations = sandboxes.all()?;
    let listed = locations.into_iter().map(|location| SandboxListing {
        found: known(&location),
        location,
    });
    Ok(listed.collect())
}

/// Looks at one sandbox.
///
/// # Errors
/// When it cannot be read.
pub fn known(location: &SandboxPaths) -> Result<SandboxDetails, LaunchError> {
    let record = super::merge::known(location)?;
    let is_held = location.holder()?.is_some();
    let n_changed = if record.state == LaunchState::Running && !is_held {
        counted(location, &record)
    } else {
        record.n_changed
    };
    Ok(SandboxDetails {
        state: record.state_word(is_held),
        n_changed,
        bytes: size(&location.dir()) + size(&location.worktree()),
        record,
    })
}

/// Ends the status file of a launch whose process was killed: nobody else does. One that is under way,
/// or has ended, stays as it is.
///
/// # Errors
/// When a file cannot be read or replaced.
pub fn end_abandoned(location: &SandboxPaths, now_ms: i64) -> Result<(), LaunchError> {
    let is_running = |record: &SandboxRecord| record.state == LaunchState::Running;
    if SandboxRecord::load(location)?.is_none_or(|record| !is_running(&record)) {
        return Ok(());
    }
    // Whoever holds it tells of it himself.
    let Ok(_held) = location.hold_to_read("kapi status") else {
        return Ok(());
    };
    let Some(record) = SandboxRecord::load(location)?.filter(is_running) else {
        return Ok(());
    };
    let project = record.project.file_name().unwrap_or_default();
    let run = AbandonedRun {
        agent_id: &record.id,
        project: &project.to_string_lossy(),
        project_root: &record.project,
    };
    let completion = LaunchCompletion {
        exit_code: KILLED,
        error: Some("the process that launched it was killed".to_owned()),
        class: Some(ErrorClass::Kapi),
        advice: Some(format!(
            "continue it with `kapi resume launch/{}`.",
            record.id
        )),
        pr_url: None,
    };
    let dir = location.sandboxes().status_dir();
    let ended = writer::complete_abandoned(&dir, &run, &completion, now_ms);
    ended.map(drop).map_err(|error| LaunchError::failed(&error))
}

/// Counts the changes in the layer of a launch that was cut off; nobody did before.
fn counted(location: &SandboxPaths, record: &SandboxRecord) -> usize {
    if record.made != WorkspaceKind::Layer || !location.layer().join("upper").is_dir() {
        return record.n_changed;
    }
    let Ok(layer) = Layer::open(&location.layer(), Marks::User, "kapi sandbox list") else {
        return record.n_changed;
    };
    let Ok(lower) = prepare::lower(record) else {
        return record.n_changed;
    };
    walk::walk(&layer, &lower).map_or(record.n_changed, |walk| walk.changes.len())
}

/// Returns the bytes of the files below a directory, as far as they can be listed.
#[must_use]
pub fn size(dir: &Path) -> u64 {
    let mut bytes = 0;
    let mut n_seen = 0;
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(at) = dirs.pop() {
        // What cannot be listed is somebody's who made it so; it counts as nothing.
        let Ok(entries) = fs::read_dir(&at) else {
            continue;
        };
        for entry in entries.flatten() {
            n_seen += 1;
            if n_seen > ENTRIES_MAX {
                return bytes;
            }
            let Ok(found) = entry.path().symlink_metadata() else {
                continue;
            };
            bytes += found.blocks() * BLOCK_BYTES;
            if found.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    bytes
}
