//! What a killed launch left: which refs go with it, and what it had changed.
//!
//! Only of launches that nobody named and nobody goes on with. The caller holds the sandbox, keeps
//! the commit and removes the refs before the rest is removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kapi_git::id::CommitId;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::walk;
use kapi_git::owned_dir;
use kapi_git::ref_name::{branch_ref, is_held};
use kapi_git::rescue::batch::Refs;
use kapi_run::failure;
use kapi_run::repository_session::RepositorySession;
use kapi_status::file::StatusFile;
use kapi_status::perform::writer;

use super::decide::holds_work;
use super::error::LaunchError;
use super::finish::SandboxWork;
use super::paths::SandboxPaths;
use super::record::{BranchRecord, LaunchState, SandboxRecord, WorkState, WorkspaceKind};
use super::{branch, prepare};

/// What is left of one launch that may go.
#[derive(Debug, Default)]
pub struct SandboxRemains {
    /// The refs that were only its own.
    pub refs: BTreeMap<String, CommitId>,
    /// What it had changed, as a commit that may have no ref.
    pub commit: Option<CommitId>,
    record: Option<SandboxRecord>,
}

/// What becomes of work that a launch came to its end with and could not commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncommittedWork {
    /// It stays: whoever asked for it was told where it is.
    Stays,
    /// It is done again, so that a commit of it is enough.
    IsDoneAgain,
}

/// Looks at what is left of a launch that nobody goes on with; `None` when it has to stay.
pub fn of(
    location: &SandboxPaths,
    repo: Option<&RepositorySession>,
    uncommitted: UncommittedWork,
    now_ms: i64,
) -> Result<Option<SandboxRemains>, LaunchError> {
    let Some(record) = SandboxRecord::load(location)? else {
        return Ok(Some(SandboxRemains::default()));
    };
    if !record.project.is_dir() {
        return Ok(None);
    }
    let Some(branch) = &record.branch else {
        let stays = holds_work(&record, location) && has_changes(location, &record)?;
        return Ok((!stays).then(|| SandboxRemains::with(record)));
    };
    let Some(repo) = repo else {
        return Ok(None);
    };
    let is_uncommitted = holds_work(&record, location);
    match (record.state, record.work) {
        (LaunchState::Finished, WorkState::Pending)
            if is_uncommitted && uncommitted == UncommittedWork::IsDoneAgain => {}
        // What its agent did was told: nothing is left but what no commit takes, or what could not
        // be committed, and both are for a person.
        (LaunchState::Finished, WorkState::Pending) if is_uncommitted => return Ok(None),
        (LaunchState::Finished, _)
            if record.made == WorkspaceKind::Checkout && location.worktree().is_dir() =>
        {
            return Ok(None);
        }
        (LaunchState::Finished, _) if has_refused(location, &record, repo)? => return Ok(None),
        (LaunchState::Running | LaunchState::Finished, _) => {}
    }
    let mut found = SandboxRemains::default();
    if is_uncommitted {
        let ready = prepare::found(location, &record, Some(repo))?;
        let work = SandboxWork {
            repo,
            ready: &ready,
            record: &record,
        };
        let made = work.snapshot("discarded", now_ms)?;
        let Some(made) = made.filter(|made| made.refused.is_empty()) else {
            return Ok(None);
        };
        found.commit = (!made.changed.is_empty()).then_some(made.commit);
    }
    let refs = repo.repository.refs();
    let refs = refs.map_err(|error| LaunchError::failed(&error))?;
    found.refs = own_refs(&refs, repo, location, &record, branch);
    found.record = Some(record);
    Ok(Some(found))
}

/// Removes what is left, but for what is called `kept`; `statuses` are the status files that there
/// are.
pub fn remove(
    location: &SandboxPaths,
    remains: &SandboxRemains,
    kept: &str,
    statuses: &[(PathBuf, StatusFile)],
) -> Result<(), LaunchError> {
    let failed = |error| LaunchError::failed(&error);
    let dir = location.dir();
    if let Some(record) = &remains.record {
        if record.made == WorkspaceKind::Layer && location.layer().exists() {
            // Waits for whatever is still mounted.
            drop(prepare::open_layer(location)?);
        }
        let project = record.project.file_name().unwrap_or_default();
        let is_its = |file: &StatusFile| {
            file.agent_id == record.id && file.project == project.to_string_lossy()
        };
        for (path, _) in statuses.iter().filter(|(_, file)| is_its(file)) {
            writer::forget(path).map_err(|error| LaunchError::failed(&error))?;
        }
        owned_dir::wipe(&location.began(&record.project)).map_err(failed)?;
    }
    owned_dir::wipe(&location.worktree()).map_err(failed)?;
    let listed = fs::read_dir(&dir).map_err(|error| failure::file("list", &dir, &error))?;
    let names = listed.flatten().map(|entry| entry.file_name());
    let mut is_empty = true;
    for name in names {
        if name == kept {
            is_empty = false;
        } else {
            owned_dir::wipe(&dir.join(name)).map_err(failed)?;
        }
    }
    if is_empty {
        owned_dir::wipe(&dir).map_err(failed)?;
    }
    Ok(())
}

impl SandboxRemains {
    /// Returns what goes with a launch that holds nothing: it is known that it does not.
    pub(crate) fn nothing(
        refs: &Refs,
        repo: &RepositorySession,
        location: &SandboxPaths,
        record: &SandboxRecord,
    ) -> Self {
        let branch = record.branch.as_ref();
        let refs = branch.map(|branch| own_refs(refs, repo, location, record, branch));
        Self {
            refs: refs.unwrap_or_default(),
            ..Self::with(record.clone())
        }
    }

    fn with(record: SandboxRecord) -> Self {
        Self {
            record: Some(record),
            ..Self::default()
        }
    }
}

/// Returns the refs that were made for a launch: Kapi's notes of it, its stand-in, and a branch that is
/// held back if there is nothing on it that the launch has reported.
fn own_refs(
    refs: &Refs,
    repo: &RepositorySession,
    location: &SandboxPaths,
    record: &SandboxRecord,
    branch: &BranchRecord,
) -> BTreeMap<String, CommitId> {
    let notes = format!("refs/kapi/{}/", branch.refs);
    let found = refs.0.iter().filter(|(name, _)| name.starts_with(&notes));
    let mut own: BTreeMap<String, CommitId> =
        found.map(|(name, at)| (name.clone(), at.clone())).collect();
    let mut branches: Vec<&str> = branch.stand_in.iter().map(String::as_str).collect();
    let is_reported = record.state == LaunchState::Finished && branch.commit.is_some();
    if branch.local.is_none() && is_held(&branch.name) && !is_reported {
        branches.push(&branch.name);
    }
    for name in branches {
        let full = branch_ref(name);
        let Some(at) = refs.0.get(&full) else {
            continue;
        };
        // One that somebody else has moved, or looks at, is theirs.
        let is_ours = at.as_str() == branch.start || own.values().any(|note| note == at);
        let common_dir = repo.repository.common_dir();
        if is_ours && branch::elsewhere(common_dir, name, &location.worktree()).is_none() {
            own.insert(full, at.clone());
        }
    }
    own
}

fn has_changes(location: &SandboxPaths, record: &SandboxRecord) -> Result<bool, LaunchError> {
    let walk = walked(location, &prepare::lower(record)?)?;
    Ok(!walk.changes.is_empty() || !walk.refused.is_empty())
}

fn has_refused(
    location: &SandboxPaths,
    record: &SandboxRecord,
    repo: &RepositorySession,
) -> Result<bool, LaunchError> {
    if record.made != WorkspaceKind::Layer || !location.layer().join("upper").is_dir() {
        return Ok(false);
    }
    let base;
    let lower = match (&record.base, &record.branch) {
        (Some(_), Some(branch)) => {
            base = prepare::freeze(location, &repo.repository, &branch.start)?;
            base.lower.clone()
        }
        (_, _) => LowerStack::project(&record.project),
    };
    Ok(!walked(location, &lower)?.refused.is_empty())
}

fn walked(location: &SandboxPaths, lower: &LowerStack) -> Result<walk::LayerWalk, LaunchError> {
    let layer = prepare::open_layer(location)?;
    walk::walk(&layer, lower).map_err(|error| LaunchError::failed(&error))
}
