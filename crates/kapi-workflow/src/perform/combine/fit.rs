//! Whether sources are still what was proved: branches that Kapi made, where the proof left them, begun on
//! something that is there.
//!
//! Only reads. Everything that is wrong is told at once, each with what can be done about it.

use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::integration_branch::IntegrationBranch;
use kapi_git::id::CommitId;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};
use kapi_sys::cancel::Cancel;

use crate::rules::effect::combine::CombinedSource;

/// A source, and the name under which Kapi keeps its refs.
#[derive(Debug, Clone, Copy)]
pub struct OwnedSource<'a> {
    /// The source.
    pub source: &'a CombinedSource,
    /// The name in `refs/kapi/<name>/`.
    pub owner: &'a str,
}

/// Returns what is wrong with sources that are to come onto a commit, each in words with its remedy.
///
/// # Errors
/// When git fails.
pub fn unfit(
    grants: &HostGrants,
    root: &Path,
    target: &str,
    sources: &[OwnedSource<'_>],
) -> Result<Vec<String>, Failure> {
    let repo = RepositorySession::open(grants, root, &Cancel::new())?;
    found(&repo, &repository_session::commit_id(target)?, sources)
}

/// Makes the integration branch where a revision is; returns its commit, or nothing where there is one.
///
/// # Errors
/// When the revision names no commit, or git fails.
pub fn create_target(
    grants: &HostGrants,
    root: &Path,
    revision: &str,
) -> Result<Option<String>, Failure> {
    let repo = RepositorySession::open(grants, root, &Cancel::new())?;
    let at = repo.repository.resolve_commit(revision);
    let at = at.map_err(|error| failure::plain(&error))?;
    let made = repo
        .repository
        .create_integration(IntegrationBranch::DEV, &at);
    let made = made.map_err(|error| failure::plain(&error))?;
    Ok(made.then(|| at.to_string()))
}

pub(super) fn found(
    repo: &RepositorySession,
    target: &CommitId,
    sources: &[OwnedSource<'_>],
) -> Result<Vec<String>, Failure> {
    let mut reasons = Vec::new();
    for owned in sources {
        let why = reason(repo, target, owned, sources)?;
        reasons.extend(why.map(|why| format!("{} {why}", owned.source.id)));
    }
    Ok(reasons)
}

fn reason(
    repo: &RepositorySession,
    target: &CommitId,
    owned: &OwnedSource<'_>,
    all: &[OwnedSource<'_>],
) -> Result<Option<String>, Failure> {
    let repository = &repo.repository;
    let source = owned.source;
    let (branch, proved) = (&source.branch, &source.commit);
    let owner = repository_session::ref_part(owned.owner)?;
    let recorded = repository.recorded_base(&owner);
    if recorded.map_err(|error| failure::plain(&error))?.is_none() {
        return Ok(Some(format!(
            "is foreign: Kapi has no refs of its branch {branch} in this repository"
        )));
    }
    let tip = repository.branch_tip(branch);
    match tip.map_err(|error| failure::plain(&error))? {
        None => {
            return Ok(Some(format!(
                "has lost its branch: make it again with `git branch {branch} {proved}`"
            )));
        }
        Some(tip) if tip.as_str() != proved => {
            return Ok(Some(format!(
                "was moved: {branch} is at {tip}, and {proved} was proved; keep what is there under \
                 another name and put the branch back with `git update-ref refs/heads/{branch} {proved}`"
            )));
        }
        Some(_) => {}
    }
    let within = |newer: &CommitId, older: &str| -> Result<bool, Failure> {
        let older = repository_session::commit_id(older)?;
        let found = repository.is_ancestor(&older, newer);
        found.map_err(|error| failure::plain(&error))
    };
    if within(target, proved)? {
        return Ok(Some("is integrated already: dev contains it".to_owned()));
    }
    if within(target, &source.base)? {
        return Ok(None);
    }
    for other in all.iter().filter(|other| other.source.id != source.id) {
        if within(
            &repository_session::commit_id(&other.source.commit)?,
            &source.base,
        )? {
            return Ok(None);
        }
    }
    let base = &source.base;
    Ok(Some(format!(
        "was begun on {base}, which neither dev nor another source contains: bring dev up to it first, \
         as with `git switch dev && git merge {base}`"
    )))
}
