//! Cleaning up: what may go, what stays and why, and the going.
//!
//! Nothing goes that is under way, holds changes or commits that are nowhere else; such a sandbox
//! goes only when it is named by itself, and its commits are kept under a rescue ref even then.

pub mod goals;
pub mod hidden_checks;
pub mod stores;

mod batch;
mod containers;
mod known;

use std::fs;
use std::path::{Path, PathBuf};

use kapi_git::layer::{Layer, Marks, walk};
use kapi_git::owned_dir;
use kapi_run::book::Book;
use kapi_run::workshop;
use kapi_sandbox::podman::cleanup;
use kapi_sandbox::podman::options::{PodmanOptions, Volume};

use self::known::KnownRepositories;
use super::error::{LaunchError, LaunchErrorKind};
use super::look::size;
use super::merge::remove;
use super::place::{SandboxId, SandboxPlace, Sandboxes};
use super::record::{LaunchState, SandboxRecord, WorkState, WorkspaceKind};
use super::{masked, pruned, removal};

/// The most things that are cleaned up in one go.
const THINGS_MAX: usize = 100_000;
/// How the reason begins why something goes that holds work.
pub const NAMED: &str = "named explicitly";

/// What is to be cleaned up.
#[derive(Debug, Clone)]
pub struct CleanPlan {
    /// The sandboxes of this project alone, by its key.
    pub project_key: Option<String>,
    /// Only these ids; naming one is the only way to remove what holds work.
    pub ids: Vec<SandboxId>,
    /// Only what was last used before this, in milliseconds since the epoch.
    pub used_before_ms: Option<i64>,
    /// Whether the transcripts of sandboxes that stay go.
    pub logs: CleanChoice,
    /// Whether the build caches of sandboxes that go, go too.
    pub volumes: CleanChoice,
    /// The time.
    pub now_ms: i64,
}

/// Whether a kind of thing is cleaned up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanChoice {
    /// It is.
    Yes,
    /// It stays.
    No,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanTarget {
    /// What it is.
    pub what: TargetKind,
    /// Its id or name.
    pub name: String,
    /// Its project.
    pub project: Option<PathBuf>,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether it goes, and why.
    pub fate: CleanAction,
}

/// A kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A sandbox with all it holds.
    Sandbox,
    /// The transcripts of one.
    Logs,
    /// A directory of a sandbox that never came to a record.
    Remains,
    /// The worktree and working files of a goal; [`goals::remove`] removes them.
    Goal,
    /// The worktree and working files of a workflow; [`goals::remove`] removes them.
    Workflow,
    /// The hidden checks of a goal that is gone.
    HiddenChecks,
    /// Objects that sandboxes were lent; [`stores::remove`] removes those of a project.
    Objects,
    /// A container whose launcher was killed; its path is podman's id of it.
    Container,
}

/// Whether a thing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanAction {
    /// It goes: why it may.
    Goes(String),
    /// It stays: why.
    Stays(String),
}

/// What a clean-up did.
#[derive(Debug, Default)]
pub struct CleanReport {
    /// What went.
    pub removed: Vec<CleanTarget>,
    /// The lines that bring back what was kept in git.
    pub kept: Vec<String>,
    /// What could not be removed, and why.
    pub failed: Vec<(CleanTarget, LaunchError)>,
}

/// Looks at everything and says what would go.
///
/// # Errors
/// When a directory cannot be read, or a named sandbox does not exist.
pub fn survey(
    book: &Book,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
) -> Result<Vec<CleanTarget>, LaunchError> {
    let mut things = Vec::new();
    let is_meant = |place: &SandboxPlace| {
        let is_project = plan
            .project_key
            .as_deref()
            .is_none_or(|key| key == place.project_key());
        is_project && (plan.ids.is_empty() || plan.ids.contains(place.id()))
    };
    let places: Vec<SandboxPlace> = sandboxes.all()?.into_iter().filter(is_meant).collect();
    if let Some(missing) = plan
        .ids
        .iter()
        .find(|id| !places.iter().any(|place| place.id() == *id))
    {
        return Err(LaunchError::new(
            LaunchErrorKind::NotFound,
            format!("there is no sandbox {}", missing.as_str()),
            "`kapi sandbox list` lists the sandboxes.",
        ));
    }
    let looked_at = places.iter().take(THINGS_MAX);
    let found: Vec<(&SandboxPlace, Result<Option<SandboxRecord>, LaunchError>)> = looked_at
        .map(|place| (place, SandboxRecord::load(place)))
        .collect();
    let records = found
        .iter()
        .filter_map(|(_, found)| found.as_ref().ok()?.as_ref());
    let known = KnownRepositories::of(book, records);
    for (place, found) in found {
        let sandbox = look_at(&known, place, &found, plan);
        let stays = matches!(sandbox.fate, CleanAction::Stays(_));
        things.push(sandbox);
        if stays && plan.logs == CleanChoice::Yes {
            things.extend(logs(place)?);
        }
    }
    if plan.ids.is_empty() {
        things.extend(remains(sandboxes, plan)?);
        things.extend(containers::survey(book, plan));
        if plan.project_key.is_none() {
            things.extend(stores::vanished(sandboxes, plan)?);
        }
    }
    Ok(things)
}

fn look_at(
    known: &KnownRepositories,
    place: &SandboxPlace,
    record: &Result<Option<SandboxRecord>, LaunchError>,
    plan: &CleanPlan,
) -> CleanTarget {
    let (project, fate) = match record {
        Ok(Some(record)) => (
            Some(record.project.clone()),
            fate(known, place, record, plan)
                .unwrap_or_else(|error| CleanAction::Stays(format!("failed to {}", error.message))),
        ),
        Ok(None) => (None, CleanAction::Stays("it was just removed".to_owned())),
        Err(error) => (
            None,
            CleanAction::Stays(format!("failed to {}", error.message)),
        ),
    };
    CleanTarget {
        what: TargetKind::Sandbox,
        name: place.id().as_str().to_owned(),
        project,
        path: place.dir(),
        bytes: size(&place.dir()) + size(&place.worktree()),
        fate,
    }
}

/// Decides about one sandbox.
fn fate(
    known: &KnownRepositories,
    place: &SandboxPlace,
    record: &SandboxRecord,
    plan: &CleanPlan,
) -> Result<CleanAction, LaunchError> {
    if let Some(owner) = place.holder()? {
        return Ok(CleanAction::Stays(format!("it is in use by {owner}")));
    }
    if plan
        .used_before_ms
        .is_some_and(|before| record.updated_at_ms >= before)
    {
        return Ok(CleanAction::Stays("it was used recently".to_owned()));
    }
    let precious = precious(known, place, record)?;
    Ok(match precious {
        None => CleanAction::Goes("everything in it exists elsewhere".to_owned()),
        Some(why) if plan.ids.contains(place.id()) => {
            CleanAction::Goes(format!("{NAMED}, although {why}"))
        }
        Some(why) => CleanAction::Stays(why),
    })
}

/// Returns what a sandbox holds that is nowhere else.
fn precious(
    known: &KnownRepositories,
    place: &SandboxPlace,
    record: &SandboxRecord,
) -> Result<Option<String>, LaunchError> {
    let Some(branch) = &record.branch else {
        return layer_changes(place, record);
    };
    if !record.project.is_dir() {
        let why = "its project is gone, so its content is unknown";
        return Ok(Some(why.to_owned()));
    }
    let ground = known.ground(&record.project)?;
    let repository = &ground.workshop.repository;
    let goal = workshop::ref_part(&branch.refs)?;
    let known = branch.commit.as_ref().unwrap_or(&branch.start);
    let known = workshop::commit_id(known)?;
    if record.made == WorkspaceKind::Checkout && place.worktree().exists() {
        let found = repository.find_workspace(&goal, &place.worktree());
        if let Some(workspace) = found.map_err(|error| LaunchError::failed(&error))? {
            let unsaved = repository.unsaved_tree(&workspace, &known);
            if unsaved
                .map_err(|error| LaunchError::failed(&error))?
                .is_some()
            {
                return Ok(Some("its worktree contains uncommitted work".to_owned()));
            }
        }
    } else if record.work == WorkState::Pending
        && let Some(why) = layer_changes(place, record)?
    {
        return Ok(Some(why));
    }
    if branch.commit.is_none() {
        return Ok(None);
    }
    let why = || {
        let name = &branch.name;
        format!("commit {known} of branch {name} is neither pushed nor merged")
    };
    Ok((!ground.has_arrived(branch)?).then(why))
}

fn layer_changes(
    place: &SandboxPlace,
    record: &SandboxRecord,
) -> Result<Option<String>, LaunchError> {
    if !place.layer().join("upper").is_dir() {
        return Ok(None);
    }
    let layer = Layer::open(&place.layer(), Marks::User, "kapi cleanup")
        .map_err(|error| LaunchError::failed(&error))?;
    if !record.project.is_dir() {
        return Ok(Some(
            "its project is gone and its layer may contain work".to_owned(),
        ));
    }
    let walk = walk::walk(&layer, &record.project).map_err(|error| LaunchError::failed(&error))?;
    let n = match masked::is_all(place, &layer, &walk) {
        true => 0,
        false => walk.changes.len(),
    };
    Ok((n > 0).then(|| match record.state {
        LaunchState::Running => format!("it was interrupted and contains {n} changes"),
        LaunchState::Finished => format!("it contains {n} unmerged changes"),
    }))
}

fn logs(place: &SandboxPlace) -> Result<Option<CleanTarget>, LaunchError> {
    let path = place.runs();
    if !path.is_dir() || place.holder()?.is_some() {
        return Ok(None);
    }
    Ok(Some(CleanTarget {
        what: TargetKind::Logs,
        name: place.id().as_str().to_owned(),
        project: None,
        bytes: size(&path),
        path,
        fate: CleanAction::Goes("removed with --logs".to_owned()),
    }))
}

/// Finds directories of launches that were killed before they had a record.
fn remains(sandboxes: &Sandboxes, plan: &CleanPlan) -> Result<Vec<CleanTarget>, LaunchError> {
    let mut found = Vec::new();
    let keys = fs::read_dir(sandboxes.root())
        .into_iter()
        .flatten()
        .flatten();
    for key in keys {
        let name = key.file_name().to_string_lossy().into_owned();
        if plan
            .project_key
            .as_ref()
            .is_some_and(|wanted| *wanted != name)
        {
            continue;
        }
        let dirs = fs::read_dir(key.path()).into_iter().flatten().flatten();
        for dir in dirs.take(THINGS_MAX) {
            let id = SandboxId::parse(&dir.file_name().to_string_lossy());
            let Some(place) = id.ok().map(|id| sandboxes.place(&name, &id)) else {
                continue;
            };
            found.extend(remainder(&place)?);
        }
    }
    Ok(found)
}

/// Only a launch has a lock of this name and a blank directory; goals have neither.
fn remainder(place: &SandboxPlace) -> Result<Option<CleanTarget>, LaunchError> {
    let is_ours = place.blank().is_dir() && !place.record().exists() && !place.layer().exists();
    if !is_ours || place.holder()?.is_some() {
        return Ok(None);
    }
    Ok(Some(CleanTarget {
        what: TargetKind::Remains,
        name: place.id().as_str().to_owned(),
        project: None,
        path: place.dir(),
        bytes: size(&place.dir()),
        fate: CleanAction::Goes("its launch ended before anything was created".to_owned()),
    }))
}

/// Removes what goes. Each thing is looked at again under its lock first.
#[must_use]
pub fn clean(
    book: &Book,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    things: &[CleanTarget],
) -> CleanReport {
    let mut cleaned = CleanReport::default();
    let is_ours = |thing: &&CleanTarget| match thing.what {
        TargetKind::Sandbox
        | TargetKind::Logs
        | TargetKind::Remains
        | TargetKind::HiddenChecks
        | TargetKind::Container => true,
        // Those of no project are of a repository that is gone.
        TargetKind::Objects => thing.project.is_none(),
        TargetKind::Goal | TargetKind::Workflow => false,
    };
    let going = things
        .iter()
        .filter(|thing| matches!(thing.fate, CleanAction::Goes(_)))
        .filter(is_ours);
    let (alike, other): (Vec<&CleanTarget>, Vec<&CleanTarget>) = going
        .partition(|thing| thing.what == TargetKind::Sandbox && plan.volumes == CleanChoice::No);
    let rest = batch::clean(book, sandboxes, plan, &alike, &mut cleaned);
    // What could not be done for all is tried one by one, where it is said why it fails.
    for thing in rest.unwrap_or(alike).into_iter().chain(other) {
        match remove_thing(book, sandboxes, plan, thing) {
            Ok(mut kept) => {
                cleaned.kept.append(&mut kept);
                cleaned.removed.push(thing.clone());
            }
            Err(error) => cleaned.failed.push((thing.clone(), error)),
        }
    }
    cleaned
}

fn remove_thing(
    book: &Book,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
    thing: &CleanTarget,
) -> Result<Vec<String>, LaunchError> {
    if thing.what == TargetKind::Container {
        return containers::remove(thing).map(|()| Vec::new());
    }
    if thing.what == TargetKind::HiddenChecks {
        return hidden_checks::remove(thing).map(|()| Vec::new());
    }
    if thing.what == TargetKind::Objects {
        return stores::forget(plan, thing).map(|()| Vec::new());
    }
    let key = thing.path.ancestors().nth(match thing.what {
        TargetKind::Sandbox
        | TargetKind::Remains
        | TargetKind::Goal
        | TargetKind::Workflow
        | TargetKind::HiddenChecks
        | TargetKind::Objects
        | TargetKind::Container => 1,
        TargetKind::Logs => 2,
    });
    let key = key.and_then(Path::file_name).unwrap_or_default();
    let id = SandboxId::parse(&thing.name)?;
    let place = sandboxes.place(&key.to_string_lossy(), &id);
    let held = place.hold("kapi cleanup")?;
    let kept = match thing.what {
        TargetKind::Sandbox => {
            let record = super::merge::known(&place)?;
            let is_named = plan.ids.contains(place.id());
            let known = KnownRepositories::of(book, std::iter::once(&record));
            if let (Some(why), false) = (precious(&known, &place, &record)?, is_named) {
                return Err(LaunchError::new(
                    LaunchErrorKind::Denied,
                    why,
                    "it changed while it was inspected.",
                ));
            }
            let kept = removal::retire(book, &place, &record, plan.now_ms)?;
            pruned::record(place.state_dir(), [&place])?;
            remove(&place, &record)?;
            if plan.volumes == CleanChoice::Yes {
                remove_volumes(book, &place)?;
            }
            kept
        }
        TargetKind::Logs => {
            pruned::record(place.state_dir(), [&place])?;
            owned_dir::wipe(&place.runs()).map_err(|error| LaunchError::failed(&error))?;
            Vec::new()
        }
        TargetKind::Goal
        | TargetKind::Workflow
        | TargetKind::HiddenChecks
        | TargetKind::Objects
        | TargetKind::Container => Vec::new(),
        TargetKind::Remains => {
            owned_dir::wipe(&place.dir()).map_err(|error| LaunchError::failed(&error))?;
            Vec::new()
        }
    };
    drop(held);
    Ok(kept)
}

/// Removes the volumes that hold the build caches of a sandbox.
fn remove_volumes(book: &Book, place: &SandboxPlace) -> Result<(), LaunchError> {
    let id = place.id().as_str();
    let prefix = format!("kapi-{id}-");
    let ours = |volume: &&Volume| volume.name.starts_with(&prefix);
    let volumes: Vec<Volume> = book
        .grant
        .podman
        .volumes
        .iter()
        .filter(ours)
        .cloned()
        .collect();
    if volumes.is_empty() {
        return Ok(());
    }
    let options = PodmanOptions {
        volumes,
        ..book.grant.podman.clone()
    };
    cleanup::remove_volumes(&options).map_err(|error| LaunchError::failed(&error))
}
