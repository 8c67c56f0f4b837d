//! Listing sandboxes: what each is, where it stands, how much it holds.
//!
//! Only reads, and holds none of them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kapi_git::layer::{Layer, Marks, walk};

use super::error::LaunchError;
use super::paths::{SandboxPaths, Sandboxes};
use super::prepare;
use super::record::{LaunchState, SandboxRecord, WorkspaceKind};

/// How many entries are counted for a size.
const ENTRIES_MAX: usize = 500_000;
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
