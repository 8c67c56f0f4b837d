//! Removing many sandboxes that hold nothing: each is held and looked at again, and the refs of all
//! go in one step.
//!
//! What holds anything, has files of its own in a worktree, or would lose a commit is not handled
//! here: it is removed one by one, with what it holds kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_sys::lock::Lock;
use kapi_wire::status::StatusFile;

use super::known::Known;
use super::{CleanPlan, Cleaned, Thing};
use crate::book::Book;
use crate::launching::error::LaunchError;
use crate::launching::place::{SandboxId, SandboxPlace, Sandboxes};
use crate::launching::pruned;
use crate::launching::record::{Made, Record};
use crate::launching::remains::{self, Remains};
use crate::status::writer;

/// Sandboxes that are held at once.
const HELD_MAX: usize = 256;

/// One sandbox that is about to go; nobody else can use it.
struct Going<'a> {
    thing: &'a Thing,
    place: SandboxPlace,
    record: Record,
    remains: Remains,
    _lock: Lock,
}

/// Removes what can go together, and returns the rest.
pub(crate) fn clean<'a>(
    book: &Book,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    things: &[&'a Thing],
    cleaned: &mut Cleaned,
) -> Result<Vec<&'a Thing>, LaunchError> {
    let mut rest = Vec::new();
    for chunk in things.chunks(HELD_MAX) {
        let statuses = writer::list(&sandboxes.status_dir());
        let statuses = statuses.map_err(|error| LaunchError::failed(&error))?;
        let mut by_project: BTreeMap<PathBuf, Vec<Going<'a>>> = BTreeMap::new();
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
            let known = Known::of(book, going.iter().map(|one| &one.record));
            let things: Vec<&Thing> = going.iter().map(|one| one.thing).collect();
            let free = free(&known, &project, going).unwrap_or_default();
            let is_free = |thing: &Thing| free.iter().any(|one| std::ptr::eq(one.thing, thing));
            rest.extend(things.into_iter().filter(|thing| !is_free(thing)));
            pruned::record(
                sandboxes.state_dir.as_path(),
                free.iter().map(|one| &one.place),
            )?;
            for one in &free {
                remove(one, &statuses, cleaned);
            }
        }
    }
    Ok(rest)
}

/// Holds a sandbox that was not named and has no files in a worktree.
fn held<'a>(sandboxes: &Sandboxes, plan: &CleanPlan, thing: &'a Thing) -> Option<Going<'a>> {
    let key = thing.path.parent()?.file_name()?.to_string_lossy();
    let id = SandboxId::parse(&thing.name).ok()?;
    if plan.ids.contains(&id) {
        return None;
    }
    let place = sandboxes.place(&key, &id);
    let lock = place.hold("kapi cleanup").ok()?;
    let record = Record::load(&place).ok()??;
    if record.made == Made::Checkout && place.worktree().exists() {
        return None;
    }
    Some(Going {
        thing,
        place,
        remains: Remains::default(),
        record,
        _lock: lock,
    })
}

/// Returns those of one project that still hold nothing and lose nothing, their refs removed.
fn free<'a>(
    known: &Known,
    project: &Path,
    going: Vec<Going<'a>>,
) -> Result<Vec<Going<'a>>, LaunchError> {
    let is_nothing = |one: &Going<'_>| {
        super::precious(known, &one.place, &one.record).is_ok_and(|found| found.is_none())
    };
    let mut going: Vec<Going<'a>> = going.into_iter().filter(is_nothing).collect();
    if going.iter().all(|one| one.record.branch.is_none()) {
        return Ok(going);
    }
    let workshop = &known.ground(project)?.workshop;
    let repository = &workshop.repository;
    let refs = repository.refs();
    let refs = refs.map_err(|error| LaunchError::failed(&error))?;
    for one in &mut going {
        one.remains = Remains::nothing(&refs, workshop, &one.place, &one.record);
    }
    let names = |going: &[Going<'_>]| -> BTreeMap<String, CommitId> {
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

fn remove(one: &Going<'_>, statuses: &[(PathBuf, StatusFile)], cleaned: &mut Cleaned) {
    match remains::remove(&one.place, &one.remains, "", statuses) {
        Ok(()) => cleaned.removed.push(one.thing.clone()),
        Err(error) => cleaned.failed.push((one.thing.clone(), error)),
    }
}
