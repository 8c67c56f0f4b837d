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

use kapi_core::text::counted;
use kapi_git::layer::{Layer, Marks, walk};
use kapi_git::owned_dir;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_sandbox::podman::cleanup;
use kapi_sandbox::podman::options::{PodmanOptions, Volume};

use self::known::KnownRepositories;
use super::error::{LaunchError, LaunchErrorKind};
use super::event::LaunchEvent;
use super::look::size;
use super::merge::remove;
use super::paths::{SandboxId, SandboxPaths, Sandboxes};
use super::record::{LaunchState, SandboxRecord, WorkState, WorkspaceKind};
use super::{log, prepare, pruned, removal};

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
    pub disposition: CleanAction,
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
    /// The branch of a task; whoever knows tasks removes it.
    Branch,
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
    grants: &HostGrants,
    sandboxes: &Sandboxes,
    plan: &CleanPlan,
) -> Result<Vec<CleanTarget>, LaunchError> {
    let mut things = Vec::new();
    let is_meant = |location: &SandboxPaths| {
        let is_project = plan
            .project_key
            .as_deref()
            .is_none_or(|key| key == location.project_key());
        is_project && (plan.ids.is_empty() || plan.ids.contains(location.id()))
    };
    let locations: Vec<SandboxPaths> = sandboxes.all()?.into_iter().filter(is_meant).collect();
    if let Some(missing) = plan
        .ids
        .iter()
        .find(|id| !locations.iter().any(|location| location.id() == *id))
    {
        return Err(LaunchError::new(
            LaunchErrorKind::NotFound,
            format!("there is no sandbox {}", missing.as_str()),
            "`kapi sandbox list` lists the sandboxes.",
        ));
    }
    let looked_at = locations.iter().take(THINGS_MAX);
    let found: Vec<(&SandboxPaths, Result<Option<SandboxRecord>, LaunchError>)> = looked_at
        .map(|location| (location, SandboxRecord::load(location)))
        .collect();
    let records = found
        .iter()
        .filter_map(|(_, found)| found.as_ref().ok()?.as_ref());
    let known = KnownRepositories::of(grants, records);
    for (location, found) in found {
        let sandbox = look_at(&known, location, &found, plan);
        let stays = matches!(sandbox.disposition, CleanAction::Stays(_));
        things.push(sandbox);
        if stays && plan.logs == CleanChoice::Yes {
            things.extend(logs(location)?);
        }
    }
    if plan.ids.is_empty() {
        things.extend(remains(sandboxes, plan)?);
        things.extend(containers::survey(grants, plan));
        if plan.project_key.is_none() {
            things.extend(stores::vanished(sandboxes, plan)?);
        }
    }
    Ok(things)
}

fn look_at(
    known: &KnownRepositories,
    location: &SandboxPaths,
    record: &Result<Option<SandboxRecord>, LaunchError>,
    plan: &CleanPlan,
) -> CleanTarget {
    let (project, disposition) = match record {
        Ok(Some(record)) => (
            Some(record.project.clone()),
            disposition(known, location, record, plan)
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
        name: location.id().as_str().to_owned(),
        project,
        path: location.dir(),
        bytes: size(&location.dir()) + size(&location.worktree()),
        disposition,
    }
}

/// Decides about one sandbox.
fn disposition(
    known: &KnownRepositories,
    location: &SandboxPaths,
    record: &SandboxRecord,
    plan: &CleanPlan,
) -> Result<CleanAction, LaunchError> {
    if let Some(owner) = location.holder()? {
        return Ok(CleanAction::Stays(format!("it is in use by {owner}")));
    }
    if plan
        .used_before_ms
        .is_some_and(|before| record.updated_at_ms >= before)
    {
        return Ok(CleanAction::Stays("it was used recently".to_owned()));
    }
    let precious = precious(known, location, record)?;
    Ok(match precious {
        None => CleanAction::Goes("everything in it exists elsewhere".to_owned()),
        Some(why) if plan.ids.contains(location.id()) => {
            CleanAction::Goes(format!("{NAMED}, although {why}"))
        }
        Some(why) => CleanAction::Stays(why),
    })
}

/// Returns what a sandbox holds that is nowhere else.
fn precious(
    known: &KnownRepositories,
    location: &SandboxPaths,
    record: &SandboxRecord,
) -> Result<Option<String>, LaunchError> {
    let Some(branch) = &record.branch else {
        return layer_changes(location, record);
    };
    if !record.project.is_dir() {
        let why = "its project is gone, so its content is unknown";
        return Ok(Some(why.to_owned()));
    }
    let ground = known.ground(&record.project)?;
    let repository = &ground.repo.repository;
    let goal = repository_session::ref_part(&branch.refs)?;
    let known = branch.commit.as_ref().unwrap_or(&branch.start);
    let known = repository_session::commit_id(known)?;
    if record.made == WorkspaceKind::Checkout && location.worktree().exists() {
        let found = repository.find_workspace(&goal, &location.worktree());
        if let Some(workspace) = found.map_err(|error| LaunchError::failed(&error))? {
            let has_unsaved = repository.has_unsaved(&workspace, &known);
            if has_unsaved.map_err(|error| LaunchError::failed(&error))? {
                return Ok(Some("its worktree contains uncommitted work".to_owned()));
            }
        }
    } else if record.work == WorkState::Pending
        && let Some(why) = layer_changes(location, record)?
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
    location: &SandboxPaths,
    record: &SandboxRecord,
) -> Result<Option<String>, LaunchError> {
    if !location.layer().join("upper").is_dir() {
        return Ok(None);
    }
    let layer = Layer::open(&location.layer(), Marks::User, "kapi cleanup")
        .map_err(|error| LaunchError::failed(&error))?;
    if !record.project.is_dir() {
        return Ok(Some(
            "its project is gone and its layer may contain work".to_owned(),
        ));
    }
    // What lies below may be gone; then nobody knows what of it is work.
    let Ok(lower) = prepare::lower(record) else {
        let is_empty = prepare::is_empty(&layer.upper());
        return Ok((!is_empty).then(|| "its layer may contain work".to_owned()));
    };
    let walk = walk::walk(&layer, &lower).map_err(|error| LaunchError::failed(&error))?;
    let n = walk.changes.len();
    Ok((n > 0).then(|| match record.state {
        LaunchState::Running => {
            format!("it was interrupted and contains {}", counted(n, "change"))
        }
        LaunchState::Finished => format!("it contains {}", counted(n, "unmerged change")),
    }))
}

fn logs(location: &SandboxPaths) -> Result<Option<CleanTarget>, LaunchError> {
    let path = location.runs();
    if !path.is_dir() || location.holder()?.is_some() {
        return Ok(None);
    }
    Ok(Some(CleanTarget {
        what: TargetKind::Logs,
        name: location.id().as_str().to_owned(),
        project: None,
        bytes: size(&path),
        path,
        disposition: CleanAction::Goes("removed with --logs".to_owned()),
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
            let Some(location) = id.ok().map(|id| sandboxes.location(&name, &id)) else {
                continue;
            };
            found.extend(remainder(&location)?);
        }
    }
    Ok(found)
}

/// Only a launch has a lock of this name and a blank directory; goals have neither.
fn remainder(location: &SandboxPaths) -> Result<Option<CleanTarget>, LaunchError> {
    let is_ours =
        location.blank().is_dir() && !location.record().exists() && !location.layer().exists();
    if !is_ours || location.holder()?.is_some() {
        return Ok(None);
    }
    Ok(Some(CleanTarget {
        what: TargetKind::Remains,
        name: location.id().as_str().to_owned(),
        project: None,
        path: location.dir(),
        bytes: size(&location.dir()),
        disposition: CleanAction::Goes("its launch ended before anything was created".to_owned()),
    }))
}

/// Removes what goes. Each thing is looked at again under its lock first.
#[must_use]
pub fn clean(
    grants: &HostGrants,
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
        TargetKind::Goal | TargetKind::Workflow | TargetKind::Branch => false,
    };
    let going = things
        .iter()
        .filter(|thing| matches!(thing.disposition, CleanAction::Goes(_)))
        .filter(is_ours);
    let (alike, other): (Vec<&CleanTarget>, Vec<&CleanTarget>) = going
        .partition(|thing| thing.what == TargetKind::Sandbox && plan.volumes == CleanChoice::No);
    let rest = batch::clean(grants, sandboxes, plan, &alike, &mut cleaned);
    // What could not be done for all is tried one by one, where it is said why it fails.
    for thing in rest.unwrap_or(alike).into_iter().chain(other) {
        match remove_thing(grants, sandboxes, plan, thing) {
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
    grants: &HostGrants,
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
        | TargetKind::Branch
        | TargetKind::Container => 1,
        TargetKind::Logs => 2,
    });
    let key = key.and_then(Path::file_name).unwrap_or_default();
    let id = SandboxId::parse(&thing.name)?;
    let location = sandboxes.location(&key.to_string_lossy(), &id);
    let held = location.hold("kapi cleanup")?;
    let kept = match thing.what {
        TargetKind::Sandbox => {
            let record = super::merge::known(&location)?;
            let is_named = plan.ids.contains(location.id());
            let known = KnownRepositories::of(grants, std::iter::once(&record));
            if let (Some(why), false) = (precious(&known, &location, &record)?, is_named) {
                return Err(LaunchError::new(
                    LaunchErrorKind::Denied,
                    why,
                    "it changed while it was inspected.",
                ));
            }
            let kept = removal::retire(grants, &location, &record, plan.now_ms)?;
            pruned::record(location.state_dir(), [&location])?;
            remove(&location, &record)?;
            if plan.volumes == CleanChoice::Yes {
                remove_volumes(grants, &location)?;
            }
            kept
        }
        TargetKind::Logs => {
            pruned::record(location.state_dir(), [&location])?;
            log::at(&location).record(plan.now_ms, &[LaunchEvent::RunsRemoved])?;
            owned_dir::wipe(&location.runs()).map_err(|error| LaunchError::failed(&error))?;
            Vec::new()
        }
        TargetKind::Goal
        | TargetKind::Workflow
        | TargetKind::HiddenChecks
        | TargetKind::Objects
        | TargetKind::Branch
        | TargetKind::Container => Vec::new(),
        TargetKind::Remains => {
            owned_dir::wipe(&location.dir()).map_err(|error| LaunchError::failed(&error))?;
            Vec::new()
        }
    };
    drop(held);
    Ok(kept)
}

/// Removes the volumes that hold the build caches of a sandbox.
fn remove_volumes(grants: &HostGrants, location: &SandboxPaths) -> Result<(), LaunchError> {
    let id = location.id().as_str();
    let prefix = format!("kapi-{id}-");
    let ours = |volume: &&Volume| volume.name.starts_with(&prefix);
    let volumes: Vec<Volume> = grants
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
        ..grants.grant.podman.clone()
    };
    cleanup::remove_volumes(&options).map_err(|error| LaunchError::failed(&error))
}
