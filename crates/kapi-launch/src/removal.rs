//! Removing what a launch made in the repository, with anything unsaved kept first.

use kapi_git::id::CommitId;
use kapi_git::rescue::{RescueName, Signature};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::branch::{local, rescue_parts};
use super::error::LaunchError;
use super::finish::SandboxWork;
use super::paths::SandboxPaths;
use super::prepare;
use super::record::{SandboxRecord, WorkState, WorkspaceKind};

/// What a removal kept, for the person.
pub(crate) type Kept = Vec<String>;

/// Removes what was made in the repository for a branch, with anything unsaved kept first.
///
/// Returns the lines that bring back what was kept.
pub(crate) fn retire(
    grants: &HostGrants,
    location: &SandboxPaths,
    record: &SandboxRecord,
    now_ms: i64,
) -> Result<Kept, LaunchError> {
    let Some(branch) = &record.branch else {
        return Ok(Vec::new());
    };
    if !record.project.is_dir() {
        return Ok(Vec::new());
    }
    let repo = RepositorySession::open(grants, &record.project, &Cancel::new())?;
    let repository = &repo.repository;
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let goal = repository_session::ref_part(&branch.refs)?;
    let known = branch.commit.as_ref().unwrap_or(&branch.start);
    let known = repository_session::commit_id(known)?;
    let (name, date) = rescue_parts(&branch.name, now_ms)?;
    let rescue = RescueName {
        name: &name,
        date: &date,
    };
    let mut kept = Vec::new();
    if record.made == WorkspaceKind::Layer && record.work == WorkState::Pending {
        keep_layer(&repo, location, record, now_ms)?;
    }
    if record.made == WorkspaceKind::Checkout {
        let found = repository.find_workspace(&goal, &location.worktree());
        if let Some(workspace) = found.map_err(|error| failed(&error))? {
            let by = Signature {
                author: &repository_session::author(),
                at_unix_seconds: now_ms.div_euclid(1000),
            };
            let rescued = repository.keep_files(&workspace, &known, rescue, &by);
            kept.extend(rescued.map_err(|error| failed(&error))?);
            let removed = repository.remove_worktree(&goal, &location.worktree());
            removed.map_err(|error| failed(&error))?;
        }
    }
    if let Some(stand_in) = &branch.stand_in
        && let Some(at) = local(repository, stand_in)
    {
        let removed = repository.remove_branch(&goal, stand_in, &at, rescue);
        kept.extend(removed.map_err(|error| failed(&error))?);
    }
    let prefix = format!("refs/kapi/{}/", branch.refs);
    let refs = repository.kapi_refs().map_err(|error| failed(&error))?;
    let refs: Vec<_> = refs
        .into_iter()
        .filter(|found| found.name.starts_with(&prefix))
        .collect();
    let start = repository_session::commit_id(&branch.start)?;
    let tree = |commit: &CommitId| repository.tree_of(commit).map_err(|error| failed(&error));
    let beginning = tree(&start)?;
    for found in &refs {
        // What is as it began is no work to be brought back.
        if tree(&found.commit)? == beginning {
            continue;
        }
        // Asked for no branch at all, so that the branch itself counts as holding it.
        let state = repository.state(&found.commit, "");
        if !state.map_err(|error| failed(&error))?.is_held() {
            let rescued = repository.keep_commit(rescue, &found.commit);
            kept.push(rescued.map_err(|error| failed(&error))?);
        }
    }
    let removed = repository.remove_kapi_refs(&refs);
    removed.map_err(|error| failed(&error))?;
    let mut lines: Vec<String> = kept.into_iter().map(|kept| kept.restore_line).collect();
    lines.sort();
    lines.dedup();
    Ok(lines)
}

/// Names what a layer holds by a ref of the launch, when it is not committed.
fn keep_layer(
    repo: &RepositorySession,
    location: &SandboxPaths,
    record: &SandboxRecord,
    now_ms: i64,
) -> Result<(), LaunchError> {
    if prepare::is_empty(&location.layer().join("upper")) {
        return Ok(());
    }
    let ready = prepare::found(location, record, Some(repo))?;
    let work = SandboxWork {
        repo,
        ready: &ready,
        record,
    };
    work.snapshot("discarded", now_ms).map(drop)
}

/// Returns the lines that a removal kept things under, as notes.
pub(crate) fn kept_notes(kept: &Kept) -> Vec<String> {
    kept.iter()
        .map(|line| format!("Unsaved work is kept; restore it with `{line}`."))
        .collect()
}
