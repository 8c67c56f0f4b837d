//! What of a launch's work is kept already: its commit, or what its layer holds.
//!
//! Asked by a launch that ends and by whoever ends it in its place.

use kapi_git::id::CommitId;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::{Layer, walk};
use kapi_git::repository::Repository;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;

use super::branch::local;
use super::decide::is_published;
use super::error::LaunchError;
use super::finish::{ChangedPathView, change_word, changed};
use super::merge;
use super::record::{SandboxRecord, WorkState};
use super::result::LaunchResult;

/// Returns the commit of the work of a launch that was cut off, if its branch has it.
pub(crate) fn published(record: &SandboxRecord, repo: &RepositorySession) -> Option<String> {
    let branch = record.branch.as_ref()?;
    let is_there = is_published(record, Some(repo));
    let at = local(&repo.repository, &branch.name).filter(|_| is_there)?;
    Some(at.to_string())
}

/// Returns when the commit of a launch is made: where it was made before and the launch was cut off, at
/// the same time, so that it is the same commit and whatever it was put on already has it.
pub(crate) fn commit_time_ms(repo: &RepositorySession, record: &SandboxRecord, now_ms: i64) -> i64 {
    let repository = &repo.repository;
    let branch = record.branch.as_ref();
    let name = branch.map(|branch| format!("refs/kapi/{}/commit", branch.refs));
    let made = name.and_then(|name| repository.resolve_commit(&name).ok());
    let at = made.and_then(|made| repository.authored_at(&made).ok());
    at.map_or(now_ms, |at_s| at_s.saturating_mul(1_000))
}

/// Notes the commit of a launch's work.
pub(crate) fn take(launched: &mut LaunchResult, commit: Option<String>) {
    launched.commit.clone_from(&commit);
    launched.record.work = WorkState::Committed;
    if let Some(branch) = &mut launched.record.branch {
        branch.commit = commit.or(branch.commit.take());
    }
}

/// Returns what a commit changes.
pub(crate) fn changes(
    repository: &Repository,
    start: &str,
    commit: &str,
) -> Result<Vec<ChangedPathView>, LaunchError> {
    let (start, commit): (CommitId, CommitId) = (
        repository_session::commit_id(start)?,
        repository_session::commit_id(commit)?,
    );
    let found = repository.changes(&start, &commit);
    let found = found.map_err(|error| LaunchError::failed(&error))?;
    Ok(found
        .iter()
        .map(|change| changed(&change.path, change_word(change.kind)))
        .collect())
}

/// Lists what a layer holds over what is below it.
pub(crate) fn list(
    layer: &Layer,
    lower: &LowerStack,
    launched: &mut LaunchResult,
) -> Result<(), LaunchError> {
    let walk = walk::walk(layer, lower).map_err(|error| LaunchError::failed(&error))?;
    launched.changed = merge::changed_of(&walk);
    launched.left_out = merge::left_out_of(&walk);
    launched.record.work = if launched.changed.is_empty() {
        WorkState::Committed
    } else {
        WorkState::Pending
    };
    Ok(())
}
