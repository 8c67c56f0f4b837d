//! Listing sandboxes: what each is, where it stands, how much it holds.
//!
//! Only reads, and holds none of them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kapi_git::layer::{Layer, Marks, walk};

use super::error::LaunchError;
use super::place::{SandboxPlace, Sandboxes};
use super::record::{LaunchState, SandboxRecord, WorkspaceKind};

/// How many entries are counted for a size.
const ENTRIES_MAX: usize = 500_000;
/// Bytes of one block of a file's size on disk.
const BLOCK_BYTES: u64 = 512;

/// One sandbox of a list.
#[derive(Debug)]
pub struct SandboxListing {
    /// Where it is.
    pub place: SandboxPlace,
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
    let places = sandboxes.all()?;
    let listed = places.into_iter().map(|place| SandboxListing {
        found: known(&place),
        place,
    });
    Ok(listed.collect())
}

/// Looks at one sandbox.
///
/// # Errors
/// When it cannot be read.
pub fn known(place: &SandboxPlace) -> Result<SandboxDetails, LaunchError> {
    let record = super::merge::known(place)?;
    let is_held = place.holder()?.is_some();
    let n_changed = if record.state == LaunchState::Running && !is_held {
        counted(place, &record)
    } else {
        record.n_changed
    };
    Ok(SandboxDetails {
        state: record.state_word(is_held),
        n_changed,
        bytes: size(&place.dir()) + size(&place.worktree()),
        record,
    })
}

/// Counts the changes in the layer of a launch that was cut off; nobody did before.
fn counted(place: &SandboxPlace, record: &SandboxRecord) -> usize {
    if record.made != WorkspaceKind::Layer || !place.layer().join("upper").is_dir() {
        return record.n_changed;
    }
    let Ok(layer) = Layer::open(&place.layer(), Marks::User, "kapi sandbox list") else {
        return record.n_changed;
    };
    walk::walk(&layer, &record.project).map_or(record.n_changed, |walk| walk.changes.len())
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
