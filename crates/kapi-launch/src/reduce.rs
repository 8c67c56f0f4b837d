//! Taking a sandbox away whose work is all in a branch, but for what its agent was told and did.
//!
//! For launches that nobody named and nobody goes back to. One that holds anything that is nowhere
//! else stays whole.

use std::fs;
use std::path::Path;

use kapi_git::owned_dir;
use kapi_git::rescue::RescueName;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};
use kapi_status::perform::writer;
use kapi_sys::cancel::Cancel;

use super::branch::rescue_parts;
use super::decide::holds_work;
use super::error::LaunchError;
use super::paths::SandboxPaths;
use super::record::{SandboxRecord, WorkspaceKind};
use super::{prepare, removal};

/// What of a sandbox stays.
const KEPT: &str = "runs";

/// Removes a sandbox but for the directories of its runs, unless it holds work.
pub fn reduce(
    grants: &HostGrants,
    location: &SandboxPaths,
    status: Option<&Path>,
    now_ms: i64,
) -> Result<(), LaunchError> {
    let _held = location.hold("kapi task")?;
    let Some(record) = SandboxRecord::load(location)? else {
        return Ok(());
    };
    if holds_work(&record, location) {
        return Ok(());
    }
    forget_branch(grants, &record, now_ms)?;
    removal::retire(grants, location, &record, now_ms)?;
    if record.made == WorkspaceKind::Layer {
        // Waits for whatever is still mounted.
        drop(prepare::open_layer(location)?);
    }
    if let Some(status) = status {
        writer::forget(status).map_err(|error| LaunchError::failed(&error))?;
    }
    let failed = |error| LaunchError::failed(&error);
    for path in [location.worktree(), location.began(&record.project)] {
        owned_dir::wipe(&path).map_err(failed)?;
    }
    let dir = location.dir();
    let listed = fs::read_dir(&dir).map_err(|error| failure::file("list", &dir, &error))?;
    let names = listed.flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name != KEPT) {
        owned_dir::wipe(&dir.join(name)).map_err(failed)?;
    }
    Ok(())
}

/// Removes a branch that was made for the launch and has nothing on it.
fn forget_branch(
    grants: &HostGrants,
    record: &SandboxRecord,
    now_ms: i64,
) -> Result<(), LaunchError> {
    let Some(branch) = &record.branch else {
        return Ok(());
    };
    if branch.commit.is_some() || branch.local.is_some() || !record.project.is_dir() {
        return Ok(());
    }
    let repo = RepositorySession::open(grants, &record.project, &Cancel::new())?;
    let start = repository_session::commit_id(&branch.start)?;
    let (name, date) = rescue_parts(&branch.name, now_ms)?;
    let rescue = RescueName {
        name: &name,
        date: &date,
    };
    let goal = repository_session::ref_part(&branch.refs)?;
    let removed = repo
        .repository
        .remove_branch(&goal, &branch.name, &start, rescue);
    removed
        .map(drop)
        .map_err(|error| LaunchError::failed(&error))
}
