//! Saying that the runs of a task's sandbox are removed because a person asked or set a limit, before
//! they are.
//!
//! An audit compares runs of tasks with the kernel's log; without this it would miss them.

use std::path::Path;

use kapi_git::owned_dir;
use kapi_machine::evidence::pruned::{PruneLog, PrunedRuns};
use kapi_sys::clock::{Clock as _, SystemClock};
use kapi_sys::real_disk::RealDisk;

use crate::error::LaunchError;
use crate::paths::SandboxPaths;

/// What the sandbox of a task's attempt begins with; no log remembers the runs of others.
const TASK: &str = "task_";

/// Records the runs of those of these sandboxes that belong to tasks.
pub(crate) fn record<'a>(
    state_dir: &Path,
    locations: impl IntoIterator<Item = &'a SandboxPaths>,
) -> Result<(), LaunchError> {
    let of_tasks = locations
        .into_iter()
        .filter(|location| location.id().as_str().starts_with(TASK) && location.runs().is_dir());
    let pruned: Vec<PrunedRuns> = of_tasks
        .map(|location| PrunedRuns {
            project: location.project_key().to_owned(),
            sandbox: location.id().as_str().to_owned(),
        })
        .collect();
    let log = PruneLog {
        disk: &RealDisk,
        state_dir: state_dir.to_path_buf(),
    };
    let recorded = log.record(&pruned, SystemClock.now_ms());
    recorded.map_err(|error| LaunchError::failed(&error))
}

/// Removes sandboxes that hold nothing but runs; one that somebody uses now stays.
///
/// # Errors
/// When the disk refuses.
pub fn remove(state_dir: &Path, locations: &[&SandboxPaths]) -> Result<(), LaunchError> {
    let mut held = Vec::new();
    for location in locations {
        if let Ok(lock) = location.hold("kapi cleanup") {
            held.push((*location, lock));
        }
    }
    record(state_dir, held.iter().map(|(location, _)| *location))?;
    for (location, _lock) in &held {
        owned_dir::wipe(&location.dir()).map_err(|error| LaunchError::failed(&error))?;
    }
    Ok(())
}
