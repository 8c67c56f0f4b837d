//! Removing many sandboxes that hold nothing: each is held and looked at again, and the refs of all
//! go in one step.
//!
//! What holds anything, has files of its own in a worktree, or would lose a commit is not handled
//! here: it is removed one by one, with what it holds kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_run::host_grants::HostGrants;
use kapi_status::file::StatusFile;
use kapi_status::perform::writer;
use kapi_sys::lock::Lock;

use super::known::KnownRepositories;
use super::{CleanPlan, CleanReport, CleanTarget};
use crate::error::LaunchError;
use crate::paths::{SandboxId, SandboxPaths, Sandboxes};
use crate::record::{SandboxRecord, WorkspaceKind};
use crate::remains::SandboxRemains;
use crate::{pruned, remains};

/// Sandboxes that are held at once.
const HELD_MAX: usize = 256;

/// One sandbox that is about to go; nobody else can use it.
struct LockedSandbox<'a> {
    thing: &'a CleanTarget,
    location: SandboxPaths,
    record: SandboxRecord,
    remains: SandboxRemains,
    _lock: Lock,
}

/// Removes what can go together, and returns the rest.
pub(crate) fn clean<'a>(
    grants: &HostGrants,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    things: &[&'a CleanTarget],
    cleaned: &mut CleanReport,
) -> Result<Vec<&'a CleanTarget>, LaunchError> {
    let mut rest = Vec::new();
    for chunk in things.chunks(HELD_MAX) {
        let statuses = writer::list(&sandboxes.status_dir());
        let statuses = statuses.map_err(|error| LaunchError::failed(&error))?;
        let mut by_project: BTreeMap<PathBuf, Vec<LockedSandbox<'a>>> = BTreeMap::new();
        for thing in chunk {
            match held(sandboxes, plan, thing) {
                Some(one) => by_project
                    .entry(one.record.project.clone())
                    .or_default()
                    .push(one),
                None => rest.push(*thing),
            }
        }
        for (project, going) in by_project {
            let known = KnownRepositories::of(grants, going.iter().map(|one| &one.record));
            let things: Vec<&CleanTarget> = going.iter().map(|one| one.thing).collect();
            let free = free(&known, &project, going).unwrap_or_default();
            let is_free =
                |thing: &CleanTarget| free.iter().any(|one| std::ptr::eq(one.thing, thing));
            rest.extend(things.into_iter().filter(|thing| !is_free(thing)));
            pruned::record(
                sandboxes.state_dir.as_path(),
                free.iter().map(|one| &one.location),
            )?;
            for one in &free {
                remove(one, &statuses, cleaned);
            }
        }
    }
    Ok(rest)
}

/// Holds a sandbox that was not named and has no files in a worktree.
fn held<'a>(
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    thing: &'a CleanTarget,
) -> Option<LockedSandbox<'a>> {
    let key = thing.path.parent()?.file_name()?.to_string_lossy();
    let id = SandboxId::parse(&thing.name).ok()?;
    if plan.ids.contains(&id) {
        return None;
    }
    let location = sandboxes.location(&key, &id);
    let lock = location.hold("kapi cleanup").ok()?;
    let record = SandboxRecord::load(&location).ok()??;
    if record.made == WorkspaceKind::Checkout && location.worktree().exists() {
        return None;
    }
    Some(LockedSandbox {
        thing,
        location,
        remains: SandboxRemains::default(),
        record,
        _lock: lock,
    })
}

/// Returns those of one project that still hold nothing and lose nothing, their refs removed.
fn free<'a>(
    known: &KnownRepositories,
    project: &Path,
    going: Vec<LockedSandbox<'a>>,
) -> Result<Vec<LockedSandbox<'a>>, LaunchError> {
    let is_nothing = |one: &LockedSandbox<'_>| {
        super::precious(known, &one.location, &one.record).is_ok_and(|found| found.is_none())
    };
    let mut going: Vec<LockedSandbox<'a>> = going.into_iter().filter(is_nothing).collect();
    if going.iter().all(|one| one.record.branch.is_none()) {
        return Ok(going);
    }
    let repo = &known.ground(project)?.repo;
    let repository = &repo.repository;
    let refs = repository.refs();
    let refs = refs.map_err(|error| LaunchError::failed(&error))?;
    for one in &mut going {
        one.remains = SandboxRemains::nothing(&refs, repo, &one.location, &one.record);
    }
    let names = |going: &[LockedSandbox<'_>]| -> BTreeMap<String, CommitId> {
        let refs = going.iter().flat_map(|one| one.remains.refs.clone());
        refs.collect()
    };
    let all = names(&going);
    let commits: BTreeSet<CommitId> = all.values().cloned().collect();
    let all: BTreeSet<&str> = all.keys().map(String::as_str).collect();
    let lost = repository.lost_without(&refs, &all, &commits);
    let lost = lost.map_err(|error| LaunchError::failed(&error))?;
    going.retain(|one| {
        !one.remains
            .refs
            .values()
            .any(|commit| lost.contains(commit))
    });
    let dropped = repository.drop_refs(&refs, &names(&going));
    dropped.map_err(|error| LaunchError::failed(&error))?;
    Ok(going)
}

fn remove(one: &LockedSandbox<'_>, statuses: &[(PathBuf, StatusFile)], cleaned: &mut CleanReport) {
    match remains::remove(&one.location, &one.remains, "", statuses) {
        Ok(()) => cleaned.removed.push(one.thing.clone()),
        Err(error) => cleaned.failed.push((one.thing.clone(), error)),
    }
}
