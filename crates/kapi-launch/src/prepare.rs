//! Making a sandbox's workspace as its record says, so that a program can be run in it.
//!
//! The same for a first launch, for one that goes on after a crash, and for a shell afterwards:
//! everything may be done again. Decides nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use kapi_core::isolation::SandboxLevel;
use kapi_git::apply::offers;
use kapi_git::id::CommitId;
use kapi_git::layer::fill_plan::FillPlan;
use kapi_git::layer::{Layer, Marks};
use kapi_git::private_view::PrivateViewPlan;
use kapi_git::reachable::{History, ReachablePlan, ReachableStore};
use kapi_git::repository::Repository;
use kapi_git::workspace::Workspace;
use kapi_run::confine::{GitView, WORKSPACE_INSIDE};
use kapi_run::ignored::{IgnoredDirectories, IgnoredPlan};
use kapi_run::workshop::{GitViewPlan, ShownAt, Workshop};
use kapi_run::{confine, failure, state_cover, workshop};
use kapi_sandbox::spec::{Mount, MountAccess, OverlayLayer};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::error::{LaunchError, LaunchErrorKind};
use super::place::SandboxPlace;
use super::record::{SandboxRecord, WorkspaceKind};
use super::{branch, head_view, masked, shown};

/// Of a repository larger than this only the commit itself is shown, not its past.
const HISTORY_BYTES_MAX: u64 = 512 << 20;
/// The longest another process may take to pack a repository's objects, in milliseconds.
const STORE_WAIT_MS: u64 = 120_000;
/// How often, and with what pause, a layer is tried that the processes of a killed launch still hold.
const RELEASE_TRIES_MAX: u32 = 500;
const RELEASE_WAIT: Duration = Duration::from_millis(20);

/// A workspace that a program can be run in.
#[derive(Debug)]
pub(crate) struct ReadyWorkspace {
    /// The host's directory that is shown as the workspace.
    pub(crate) host: PathBuf,
    /// How it can be written.
    pub(crate) access: MountAccess,
    /// Where on the host what is written shows first.
    pub(crate) written: PathBuf,
    /// The view of the repository, where it is linked to by a file.
    pub(crate) git_view: Option<GitView>,
    /// What lies over the workspace.
    pub(crate) mounts: Vec<Mount>,
    /// Variables for everything that runs in it.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The project's ignored directories, lent to a checkout; held.
    pub(crate) ignored: IgnoredDirectories,
    /// The layer, if there is one; held.
    pub(crate) layer: Option<Layer>,
    /// The workspace as git knows it, if it has a branch.
    pub(crate) workspace: Option<Workspace>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Makes or finds the workspace of a record.
pub(crate) fn open(
    place: &SandboxPlace,
    record: &SandboxRecord,
    workshop: Option<&Workshop>,
    home: &Path,
) -> Result<ReadyWorkspace, LaunchError> {
    let layer = match record.made {
        WorkspaceKind::Layer => Some(open_layer(place)?),
        WorkspaceKind::Checkout => None,
    };
    let workspace = match (&record.branch, workshop) {
        (Some(branch), Some(workshop)) => {
            Some(branch::claim(workshop, layer.as_ref(), place, branch)?)
        }
        (Some(_) | None, _) => None,
    };
    let mut ready = match &layer {
        Some(layer) => over_project(place, record, layer)?,
        None => checkout(workspace.as_ref())?,
    };
    if let (Some(workshop), Some(layer), Some(workspace), Some(branch)) =
        (workshop, &layer, &workspace, &record.branch)
        && !branch.masks.is_empty()
        && is_empty(&layer.upper())
    {
        let start = workshop::commit_id(&branch.start)?;
        let plan = FillPlan {
            layer,
            lower: &record.project,
            base: &workspace.base,
            content: &start,
            masks: &branch.masks,
        };
        let filled = workshop.repository.fill_layer(&plan);
        filled.map_err(|error| LaunchError::failed(&error))?;
        masked::note(place, record, layer)?;
    }
    let shown = shown::excluded(place, &ready.host, record)?;
    if let Some(workshop) = workshop {
        view(&mut ready, place, record, workspace.as_ref(), workshop)?;
    } else if layer.is_some() && record.project.join(".git").exists() {
        // What git would say of it nobody knows, and what it may hold is not for an agent.
        ready
            .mounts
            .push(shown::covered(place, &record.project, Path::new(".git"))?);
    }
    if let (WorkspaceKind::Checkout, SandboxLevel::Native, Some(workshop)) =
        (record.made, record.level, workshop)
    {
        let layers = place.dir().join("ignored");
        let plan = IgnoredPlan {
            home,
            workspace: &ready.host,
            layers: &layers,
            except: &BTreeSet::new(),
            owner: "kapi launch",
        };
        ready.ignored = IgnoredDirectories::open(&workshop.repository, &plan)?;
        ready.mounts.extend(ready.ignored.mounts.iter().cloned());
        ready.notes.append(&mut ready.ignored.notes);
    }
    if shown::has_layers(record.level) {
        let cover = cover_state(&ready.host, place, record, workshop)?;
        ready.mounts.extend(cover);
    }
    ready.mounts.extend(shown.mounts);
    ready.notes.extend(shown.notes);
    ready.layer = layer;
    ready.workspace = workspace;
    Ok(ready)
}

/// Returns what hides Kapi's own state: other goals' logs and checks are nobody's in a sandbox.
fn cover_state(
    host: &Path,
    place: &SandboxPlace,
    record: &SandboxRecord,
    workshop: Option<&Workshop>,
) -> Result<Vec<Mount>, LaunchError> {
    let tracked = match workshop {
        Some(workshop) => {
            let repository = &workshop.repository;
            state_cover::tracked(repository, &start(repository, record)?)?
        }
        None => Vec::new(),
    };
    let cover = place.dir().join("state");
    Ok(state_cover::state_cover(host, &tracked, &cover)?)
}

/// Finds what a record's workspace holds, for taking it over; nothing is made ready to run.
pub(crate) fn found(
    place: &SandboxPlace,
    record: &SandboxRecord,
    workshop: &Workshop,
) -> Result<ReadyWorkspace, LaunchError> {
    let layer = match record.made {
        WorkspaceKind::Layer => Some(open_layer(place)?),
        WorkspaceKind::Checkout => None,
    };
    let workspace = match &record.branch {
        Some(branch) => Some(branch::claim(workshop, layer.as_ref(), place, branch)?),
        None => None,
    };
    let host = match &layer {
        Some(_) => record.project.clone(),
        None => place.worktree(),
    };
    Ok(ReadyWorkspace {
        written: layer.as_ref().map_or_else(|| host.clone(), Layer::upper),
        host,
        access: MountAccess::ReadOnly,
        git_view: None,
        mounts: Vec::new(),
        env: Vec::new(),
        ignored: IgnoredDirectories::default(),
        layer,
        workspace,
        notes: Vec::new(),
    })
}

/// Opens the layer, waiting for what a killed launch left to die.
pub(crate) fn open_layer(place: &SandboxPlace) -> Result<Layer, LaunchError> {
    let layer = Layer::open(&place.layer(), Marks::User, "kapi launch")
        .map_err(|error| LaunchError::failed(&error))?;
    let upper = layer.upper();
    let failed = |error: &std::io::Error| LaunchError::from(failure::file("lock", &upper, error));
    let held = fs::File::open(&upper).map_err(|error| failed(&error))?;
    for _ in 0..RELEASE_TRIES_MAX {
        match held.try_lock() {
            Ok(()) => return Ok(layer),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(RELEASE_WAIT),
            Err(fs::TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
    Err(LaunchError::new(
        LaunchErrorKind::Busy,
        format!(
            "the layer of sandbox {} is still in use",
            place.id().as_str()
        ),
        "stop the processes that were started in it, then try again.",
    ))
}

pub(crate) fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

fn over_project(
    place: &SandboxPlace,
    record: &SandboxRecord,
    layer: &Layer,
) -> Result<ReadyWorkspace, LaunchError> {
    let began = place.began(&record.project);
    if offers::beginning(&began).is_none() || is_empty(&layer.upper()) {
        if let Some(parent) = began.parent() {
            kapi_run::private_dir::make_private(parent)?;
        }
        offers::mark_beginning(&began).map_err(|error| LaunchError::failed(&error))?;
    }
    let work = layer
        .fresh_work()
        .map_err(|error| LaunchError::failed(&error))?;
    Ok(ReadyWorkspace {
        host: record.project.clone(),
        access: MountAccess::CopyOnWrite(OverlayLayer {
            upper: layer.upper(),
            work,
        }),
        written: layer.upper(),
        git_view: None,
        mounts: Vec::new(),
        env: Vec::new(),
        ignored: IgnoredDirectories::default(),
        layer: None,
        workspace: None,
        notes: Vec::new(),
    })
}

fn checkout(workspace: Option<&Workspace>) -> Result<ReadyWorkspace, LaunchError> {
    let Some(workspace) = workspace else {
        return Err(LaunchError::new(
            LaunchErrorKind::Failed,
            "open a worktree without its repository",
            "move the project back, or discard the sandbox.",
        ));
    };
    Ok(ReadyWorkspace {
        host: workspace.path.clone(),
        access: MountAccess::ReadWrite,
        written: workspace.path.clone(),
        git_view: None,
        mounts: Vec::new(),
        env: Vec::new(),
        ignored: IgnoredDirectories::default(),
        layer: None,
        workspace: None,
        notes: Vec::new(),
    })
}

/// Returns the commit that a sandbox begins at.
fn start(repository: &Repository, record: &SandboxRecord) -> Result<CommitId, LaunchError> {
    match &record.branch {
        Some(branch) => Ok(workshop::commit_id(&branch.start)?),
        None => repository
            .resolve_commit("HEAD")
            .map_err(|error| LaunchError::failed(&error)),
    }
}

/// Adds the view of the repository: nothing is readable in it but what the start reaches.
fn view(
    ready: &mut ReadyWorkspace,
    place: &SandboxPlace,
    record: &SandboxRecord,
    workspace: Option<&Workspace>,
    workshop: &Workshop,
) -> Result<(), LaunchError> {
    let repository = &workshop.repository;
    let start = start(repository, record)?;
    let to = place.git_view();
    let shown_at = ShownAt::of(record.level, &ready.host);
    if let (ShownAt::Host { .. }, Some(workspace)) = (shown_at, workspace) {
        let (_, env) = workshop.git_view(&GitViewPlan {
            to: &to,
            shown: &workspace.shown(),
            commit: &start,
            shown_at,
            stores: &place.stores(),
        })?;
        ready.env = env;
        return Ok(());
    }
    let store = store(place, repository, &start)?;
    let objects_inside: Vec<PathBuf> = (0..store.object_dirs.len())
        .map(GitView::objects_inside)
        .collect();
    let is_directory = ready.host.join(".git").is_dir();
    let inside = if is_directory {
        Path::new(WORKSPACE_INSIDE).join(".git")
    } else {
        GitView::git_dir_inside()
    };
    let link = match workspace {
        Some(workspace) => {
            let mut shown = workspace.clone();
            // Where its files are seen on the host; a layer has no worktree.
            shown.path.clone_from(&ready.host);
            if let Some(branch) = &record.branch {
                shown.branch.clone_from(&branch.name);
            }
            let plan = PrivateViewPlan {
                to: &to,
                inside: &inside,
                objects_inside: &objects_inside,
                shown: &shown.shown(),
                commit: &start,
                author: &workshop::author(),
            };
            let view = repository
                .private_view(&plan, &store)
                .map_err(|error| LaunchError::failed(&error))?;
            ready.env = view.environment;
            view.link
        }
        None => {
            head_view::make(repository, &start, &to, &objects_inside)?;
            ready.env = trusting();
            head_link(place, &inside)?
        }
    };
    if is_directory {
        ready.mounts.push(Mount {
            host: to,
            inside,
            access: MountAccess::ReadWrite,
        });
        for (objects, at) in store.object_dirs.iter().zip(&objects_inside) {
            ready.mounts.push(confine::read_only(objects, at));
        }
    } else {
        ready.git_view = Some(GitView {
            git_dir: to,
            link,
            object_dirs: store.object_dirs,
        });
    }
    Ok(())
}

/// Writes the file that leads to a view made by hand.
fn head_link(place: &SandboxPlace, inside: &Path) -> Result<PathBuf, LaunchError> {
    let link = place.dir().join("git-link");
    let text = format!("gitdir: {}\n", inside.display());
    let written = RealDisk.write(&link, text.as_bytes());
    written.map_err(|error| LaunchError::failed(&error))?;
    Ok(link)
}

/// Returns the variables without which git refuses files that seem to be somebody else's.
fn trusting() -> Vec<(OsString, OsString)> {
    let pairs = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec()
}

fn store(
    place: &SandboxPlace,
    repository: &Repository,
    start: &CommitId,
) -> Result<ReachableStore, LaunchError> {
    let bytes = repository
        .packed_bytes()
        .map_err(|error| LaunchError::failed(&error))?;
    let plan = ReachablePlan {
        stores: &place.stores(),
        base: start,
        history: if bytes > HISTORY_BYTES_MAX {
            History::CommitOnly
        } else {
            History::Full
        },
        wait_ms: STORE_WAIT_MS,
    };
    repository
        .reachable_store(&plan)
        .map_err(|error| LaunchError::failed(&error))
}
