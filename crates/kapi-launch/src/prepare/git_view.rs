//! The view of the repository that a workspace gets: where it is made, and where it shows inside.
//!
//! Knows nothing of layers but whether there is a frozen base below.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kapi_core::isolation::SandboxLevel;
use kapi_git::id::CommitId;
use kapi_git::private_view::PrivateViewPlan;
use kapi_git::reachable::{HistoryDepth, ReachablePlan, ReachableStore};
use kapi_git::repository::Repository;
use kapi_git::workspace::GitWorkspace;
use kapi_run::confine::{GitView, WORKSPACE_INSIDE};
use kapi_run::repository_session::{GitViewPlan, RepositorySession, ShownAt};
use kapi_run::{confine, repository_session};
use kapi_sandbox::spec::{Mount, MountAccess};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use super::{HISTORY_BYTES_MAX, ReadyWorkspace, STORE_WAIT_MS, start};
use crate::error::LaunchError;
use crate::paths::SandboxPaths;
use crate::record::SandboxRecord;
use crate::{head_view, monitor};

/// Adds the view of the repository: nothing is readable in it but what the start reaches.
pub(super) fn view(
    ready: &mut ReadyWorkspace,
    location: &SandboxPaths,
    record: &SandboxRecord,
    workspace: Option<&GitWorkspace>,
    repo: &RepositorySession,
) -> Result<(), LaunchError> {
    let repository = &repo.repository;
    let start = start(repository, record)?;
    let to = location.git_view();
    let shown_at = ShownAt::of(record.level, &ready.host);
    if let (ShownAt::Host { .. }, Some(workspace)) = (shown_at, workspace) {
        let (_, env) = repo.git_view(&GitViewPlan {
            to: &to,
            shown: &workspace.shown(),
            commit: &start,
            shown_at,
            stores: &location.stores(),
        })?;
        ready.env = env;
        return Ok(());
    }
    let store = store(location, repository, &start)?;
    let objects_inside: Vec<PathBuf> = (0..store.object_dirs.len())
        .map(GitView::objects_inside)
        .collect();
    let is_directory = ready.base.is_some() || ready.host.join(".git").is_dir();
    let inside = if is_directory {
        Path::new(WORKSPACE_INSIDE).join(".git")
    } else {
        GitView::git_dir_inside()
    };
    let link = match workspace {
        Some(workspace) => {
            let shown = seen(workspace, ready, record);
            let mut files = shown.shown();
            files.monitor = watched(ready, record)?;
            files.exact_index = ready.base.as_ref().map(|base| base.index.clone());
            let plan = PrivateViewPlan {
                to: &to,
                inside: &inside,
                objects_inside: &objects_inside,
                shown: &files,
                commit: &start,
                author: &repository_session::author(),
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
            head_link(location, &inside)?
        }
    };
    if !is_directory {
        ready.git_view = Some(GitView {
            git_dir: to,
            link,
            object_dirs: store.object_dirs,
        });
        return Ok(());
    }
    ready.mounts.push(Mount {
        host: to,
        inside,
        access: MountAccess::ReadWrite,
    });
    let objects = store.object_dirs.iter().zip(&objects_inside);
    let objects = objects.map(|(objects, at)| confine::read_only(objects, at));
    ready.mounts.extend(objects);
    Ok(())
}

/// Returns a workspace as it is seen inside: where its files are on the host, for a layer has no
/// worktree, and under the name that was asked for.
fn seen(workspace: &GitWorkspace, ready: &ReadyWorkspace, record: &SandboxRecord) -> GitWorkspace {
    let mut shown = workspace.clone();
    shown.path.clone_from(&ready.host);
    if let Some(branch) = &record.branch {
        shown.branch.clone_from(&branch.name);
    }
    shown
}

/// Shows what tells git inside which files the layer has touched, where it lies over a frozen base, and
/// returns its command.
fn watched(
    ready: &mut ReadyWorkspace,
    record: &SandboxRecord,
) -> Result<Option<String>, LaunchError> {
    if ready.base.is_none() || record.level != SandboxLevel::Native {
        return Ok(None);
    }
    let (mounts, line) = monitor::shown(&ready.written)?;
    ready.mounts.extend(mounts);
    Ok(Some(line))
}

/// Writes the file that leads to a view made by hand.
fn head_link(location: &SandboxPaths, inside: &Path) -> Result<PathBuf, LaunchError> {
    let link = location.dir().join("git-link");
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
    location: &SandboxPaths,
    repository: &Repository,
    start: &CommitId,
) -> Result<ReachableStore, LaunchError> {
    let bytes = repository
        .packed_bytes()
        .map_err(|error| LaunchError::failed(&error))?;
    let plan = ReachablePlan {
        stores: &location.stores(),
        base: start,
        history: if bytes > HISTORY_BYTES_MAX {
            HistoryDepth::CommitOnly
        } else {
            HistoryDepth::Full
        },
        wait_ms: STORE_WAIT_MS,
    };
    repository
        .reachable_store(&plan)
        .map_err(|error| LaunchError::failed(&error))
}
