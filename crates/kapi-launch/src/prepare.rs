//! Making a sandbox's workspace as its record says, so that a program can be run in it.
//!
//! The same for a first launch, for one that goes on after a crash, and for a shell afterwards:
//! everything may be done again. Decides nothing.

mod git_view;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use kapi_core::isolation::SandboxLevel;
use kapi_git::apply::offers;
use kapi_git::id::CommitId;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::{Layer, Marks};
use kapi_git::reachable::frozen::{FrozenBase, FrozenPlan};
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;
use kapi_run::confine::GitView;
use kapi_run::ignored::{IgnoredDirectories, IgnoredPlan};
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session, state_cover};
use kapi_sandbox::spec::{Mount, MountAccess, OverlayLayer};

use super::error::{LaunchError, LaunchErrorKind};
use super::paths::SandboxPaths;
use super::record::{SandboxRecord, WorkspaceKind};
use super::{branch, shown};
use crate::dependencies;

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
    /// The host's directory that is shown as the workspace, or the topmost of those.
    pub(crate) host: PathBuf,
    /// The directories whose files are shown, without what was written over them.
    pub(crate) lower: LowerStack,
    /// The frozen base that they are, if they are one; held.
    pub(crate) base: Option<FrozenBase>,
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
    pub(crate) workspace: Option<GitWorkspace>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Makes or finds the workspace of a record.
pub(crate) fn open(
    location: &SandboxPaths,
    record: &SandboxRecord,
    repo: Option<&RepositorySession>,
    home: &Path,
) -> Result<ReadyWorkspace, LaunchError> {
    let layer = match record.made {
        WorkspaceKind::Layer => Some(open_layer(location)?),
        WorkspaceKind::Checkout => None,
    };
    let workspace = match (&record.branch, repo) {
        (Some(branch), Some(repo)) => Some(branch::claim(repo, layer.as_ref(), location, branch)?),
        (Some(_) | None, _) => None,
    };
    let mut ready = match (&layer, base(location, record, repo)?) {
        (Some(layer), Some(base)) => over_base(layer, base)?,
        (Some(layer), None) => over_project(location, record, layer)?,
        (None, _) => checkout(workspace.as_ref())?,
    };
    let shown = shown::excluded(location, &ready.lower, record)?;
    if let Some(repo) = repo {
        git_view::view(&mut ready, location, record, workspace.as_ref(), repo)?;
    } else if layer.is_some() && record.project.join(".git").exists() {
        // What git would say of it nobody knows, and what it may hold is not for an agent.
        ready.mounts.push(shown::covered(
            location,
            &record.project,
            Path::new(".git"),
        )?);
    }
    if let (true, SandboxLevel::Native, Some(repo)) = (ready.base.is_some(), record.level, repo) {
        let lent = dependencies::lend(
            location,
            &repo.repository,
            &ready.lower,
            &ready.written,
            home,
        )?;
        ready.mounts.extend(lent.mounts.iter().cloned());
        ready.ignored = lent;
    }
    if let (WorkspaceKind::Checkout, SandboxLevel::Native, Some(repo)) =
        (record.made, record.level, repo)
    {
        let layers = location.dir().join("ignored");
        let plan = IgnoredPlan {
            home,
            workspace: &ready.host,
            layers: &layers,
            except: &BTreeSet::new(),
            owner: "kapi launch",
        };
        ready.ignored = IgnoredDirectories::open(&repo.repository, &plan)?;
        ready.mounts.extend(ready.ignored.mounts.iter().cloned());
        ready.notes.append(&mut ready.ignored.notes);
    }
    if shown::has_layers(record.level) {
        let cover = cover_state(&ready.lower, location, record, repo)?;
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
    lower: &LowerStack,
    location: &SandboxPaths,
    record: &SandboxRecord,
    repo: Option<&RepositorySession>,
) -> Result<Vec<Mount>, LaunchError> {
    let tracked = match repo {
        Some(repo) => {
            let repository = &repo.repository;
            state_cover::tracked(repository, &start(repository, record)?)?
        }
        None => Vec::new(),
    };
    let cover = location.dir().join("state");
    Ok(state_cover::state_cover_over(lower, &tracked, &cover)?)
}

/// Finds what a record's workspace holds, for taking it over; nothing is made ready to run.
pub(crate) fn found(
    location: &SandboxPaths,
    record: &SandboxRecord,
    repo: Option<&RepositorySession>,
) -> Result<ReadyWorkspace, LaunchError> {
    let layer = match record.made {
        WorkspaceKind::Layer => Some(open_layer(location)?),
        WorkspaceKind::Checkout => None,
    };
    let workspace = match (&record.branch, repo) {
        (Some(branch), Some(repo)) => Some(branch::claim(repo, layer.as_ref(), location, branch)?),
        (Some(_) | None, _) => None,
    };
    let base = base(location, record, repo)?;
    let lower = match (&layer, &base) {
        (Some(_), Some(base)) => base.lower.clone(),
        (Some(_), None) => LowerStack::project(&record.project),
        (None, _) => LowerStack::project(&location.worktree()),
    };
    let host = lower.top().to_path_buf();
    Ok(ReadyWorkspace {
        written: layer.as_ref().map_or_else(|| host.clone(), Layer::upper),
        host,
        lower,
        base,
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
pub(crate) fn open_layer(location: &SandboxPaths) -> Result<Layer, LaunchError> {
    let layer = Layer::open(&location.layer(), Marks::User, "kapi launch")
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
            location.id().as_str()
        ),
        "stop the processes that were started in it, then try again.",
    ))
}

pub(crate) fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Makes or finds the frozen base that a record's layer lies over.
fn base(
    location: &SandboxPaths,
    record: &SandboxRecord,
    repo: Option<&RepositorySession>,
) -> Result<Option<FrozenBase>, LaunchError> {
    match (&record.base, &record.branch, repo) {
        (Some(_), Some(branch), Some(repo)) => freeze(location, &repo.repository, &branch.start),
        (Some(_), _, _) => Err(LaunchError::new(
            LaunchErrorKind::Failed,
            format!("find the repository of sandbox {}", record.id),
            "move the project back, or discard the sandbox.",
        )),
        (None, _, _) => return Ok(None),
    }
    .map(Some)
}

/// Returns the files of a commit, made if they are not there yet.
pub(crate) fn freeze(
    location: &SandboxPaths,
    repository: &Repository,
    commit: &str,
) -> Result<FrozenBase, LaunchError> {
    let commit = repository_session::commit_id(commit)?;
    let plan = FrozenPlan {
        stores: &location.stores(),
        commit: &commit,
        wait_ms: STORE_WAIT_MS,
    };
    repository
        .frozen_base(&plan)
        .map_err(|error| LaunchError::failed(&error))
}

/// Returns what a record's layer lies over, for reading what it changed.
pub(crate) fn lower(record: &SandboxRecord) -> Result<LowerStack, LaunchError> {
    let Some(dir) = &record.base else {
        return Ok(LowerStack::project(&record.project));
    };
    let found = kapi_git::reachable::frozen::find(dir);
    let found = found.map_err(|error| LaunchError::failed(&error))?;
    found.map(|base| base.lower.clone()).ok_or_else(|| {
        LaunchError::new(
            LaunchErrorKind::Failed,
            format!("find the files that sandbox {} began with", record.id),
            format!("`kapi diff launch/{}` makes them again.", record.id),
        )
    })
}

fn over_base(layer: &Layer, base: FrozenBase) -> Result<ReadyWorkspace, LaunchError> {
    let work = layer
        .fresh_work()
        .map_err(|error| LaunchError::failed(&error))?;
    let lower = base.lower.clone();
    Ok(ReadyWorkspace {
        host: lower.top().to_path_buf(),
        access: MountAccess::CopyOnWrite(OverlayLayer {
            upper: layer.upper(),
            work,
            beneath: lower.beneath().to_vec(),
        }),
        written: layer.upper(),
        lower,
        base: Some(base),
        git_view: None,
        mounts: Vec::new(),
        env: Vec::new(),
        ignored: IgnoredDirectories::default(),
        layer: None,
        workspace: None,
        notes: Vec::new(),
    })
}

fn over_project(
    location: &SandboxPaths,
    record: &SandboxRecord,
    layer: &Layer,
) -> Result<ReadyWorkspace, LaunchError> {
    let began = location.began(&record.project);
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
        lower: LowerStack::project(&record.project),
        base: None,
        access: MountAccess::CopyOnWrite(OverlayLayer {
            upper: layer.upper(),
            work,
            beneath: Vec::new(),
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

fn checkout(workspace: Option<&GitWorkspace>) -> Result<ReadyWorkspace, LaunchError> {
    let Some(workspace) = workspace else {
        return Err(LaunchError::new(
            LaunchErrorKind::Failed,
            "open a worktree without its repository",
            "move the project back, or discard the sandbox.",
        ));
    };
    Ok(ReadyWorkspace {
        host: workspace.path.clone(),
        lower: LowerStack::project(&workspace.path),
        base: None,
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
        Some(branch) => Ok(repository_session::commit_id(&branch.start)?),
        None => repository
            .resolve_commit("HEAD")
            .map_err(|error| LaunchError::failed(&error)),
    }
}
