//! The objects of a repository that sandboxes shared and that none uses any more.
//!
//! They are made again when they are needed, so nothing is lost but time. Every use leaves its time,
//! and what was used within the longest stay in a sandbox is never touched: nobody else tells.

use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_git::reachable::vanished::{remove_vanished, vanished_stores};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::{CleanAction, CleanPlan, CleanTarget, TargetKind};
use crate::error::LaunchError;
use crate::look::size;
use crate::paths::Sandboxes;
use crate::record::SandboxRecord;

/// Longer than anybody may stay in a sandbox.
const USED_MS: i64 = 8 * 24 * 60 * 60 * 1000;

/// The shared objects of one project.
#[derive(Debug, Clone)]
pub struct SharedObjects {
    /// The project.
    pub project: PathBuf,
    /// The commits whose objects stay: goals go on from them.
    pub bases: Vec<String>,
}

/// Returns the projects whose lent objects are looked at: those of the sandboxes that are meant, and
/// the one that `own` speaks of.
///
/// # Errors
/// When the sandboxes cannot be listed.
pub fn shared_in(
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    own: Option<SharedObjects>,
) -> Result<Vec<SharedObjects>, LaunchError> {
    let mut found: Vec<SharedObjects> = own.into_iter().collect();
    for location in sandboxes.all()? {
        let wanted = plan.project_key.as_deref();
        let is_meant = wanted.is_none_or(|key| key == location.project_key());
        // What cannot be read is told where sandboxes are looked at.
        let Ok(Some(record)) = SandboxRecord::load(&location) else {
            continue;
        };
        let begun = record.branch.as_ref().map(|branch| branch.start.clone());
        let bases = begun.into_iter().chain(record.below.clone());
        match found.iter_mut().find(|one| one.project == record.project) {
            Some(one) => one.bases.extend(bases),
            None if is_meant => found.push(SharedObjects {
                bases: bases.collect(),
                project: record.project,
            }),
            None => {}
        }
    }
    Ok(found)
}

/// Says which objects of a project would go; none where it is no repository.
#[must_use]
pub fn survey(
    grants: &HostGrants,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    shared_in: &SharedObjects,
) -> Option<CleanTarget> {
    let repo = RepositorySession::open(grants, &shared_in.project, &Cancel::new()).ok()?;
    let stores = stores(sandboxes);
    let kept = kept(shared_in);
    let stale = repo
        .repository
        .stale_stores(&stores, used_before_s(plan), &kept);
    let (path, bytes, disposition) = match stale {
        Ok(stale) if stale.is_empty() => return None,
        Ok(stale) => {
            let bytes = stale.iter().map(|dir| size(dir)).sum();
            let n = stale.len();
            let why = format!("no sandbox has used these {n} for a week");
            let path = stale.first().and_then(|dir| dir.parent());
            (
                path.unwrap_or(&stores).to_path_buf(),
                bytes,
                CleanAction::Goes(why),
            )
        }
        Err(error) => (stores, 0, CleanAction::Stays(format!("failed to {error}"))),
    };
    let name = shared_in.project.file_name().unwrap_or_default();
    Some(CleanTarget {
        what: TargetKind::Objects,
        name: name.to_string_lossy().into_owned(),
        project: Some(shared_in.project.clone()),
        path,
        bytes,
        disposition,
    })
}

/// Says which objects are of repositories that are gone.
///
/// # Errors
/// When they cannot be listed.
pub(super) fn vanished(
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
) -> Result<Vec<CleanTarget>, LaunchError> {
    let found = vanished_stores(&stores(sandboxes), used_before_s(plan));
    let found = found.map_err(|error| LaunchError::failed(&error))?;
    let things = found.into_iter().map(|path| CleanTarget {
        what: TargetKind::Objects,
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        project: None,
        bytes: size(&path),
        path,
        disposition: CleanAction::Goes(
            "their repository is gone and no sandbox has used them for a week".to_owned(),
        ),
    });
    Ok(things.collect())
}

/// Removes the objects of a repository that is gone.
pub(super) fn forget(plan: &CleanPlan, thing: &CleanTarget) -> Result<(), LaunchError> {
    let removed = remove_vanished(&thing.path, used_before_s(plan));
    removed.map_err(|error| LaunchError::failed(&error))
}

/// Removes them; what was used meanwhile stays.
///
/// # Errors
/// When another process makes or removes some at this moment, or they cannot be removed.
pub fn remove(
    grants: &HostGrants,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    shared_in: &SharedObjects,
) -> Result<(), LaunchError> {
    let repo = RepositorySession::open(grants, &shared_in.project, &Cancel::new())?;
    let stores = stores(sandboxes);
    let pruned = repo
        .repository
        .prune_stores(&stores, used_before_s(plan), &kept(shared_in));
    pruned
        .map(drop)
        .map_err(|error| LaunchError::failed(&error))
}

fn kept(shared_in: &SharedObjects) -> Vec<CommitId> {
    let bases = shared_in.bases.iter();
    bases
        .filter_map(|base| repository_session::commit_id(base).ok())
        .collect()
}

fn used_before_s(plan: &CleanPlan) -> i64 {
    let before_ms = plan.now_ms.saturating_sub(USED_MS);
    let before_ms = plan
        .used_before_ms
        .map_or(before_ms, |asked| asked.min(before_ms));
    before_ms.div_euclid(1000)
}

fn stores(sandboxes: &Sandboxes) -> PathBuf {
    Path::new(&sandboxes.state_dir).join("objects")
}
