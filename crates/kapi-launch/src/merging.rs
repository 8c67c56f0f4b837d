//! Merging another revision into the branch of a launch, for its agent to resolve.
//!
//! The host merges; the agent gets the files with the conflicts in them. Whether they are resolved is
//! looked at on the host, and until they are the branch stays where it is.

use std::path::PathBuf;

use kapi_git::candidate::{Candidate, CandidatePlan};
use kapi_git::change::PathChange;
use kapi_git::combine::ResolvedMerge;
use kapi_git::id::CommitId;
use kapi_git::land::brought_in::{BringInPlan, ConflictedPath};
use kapi_machine::watch::Activity;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::{self, RepositorySession};

use super::branch::commit_of;
use super::context::LaunchHandlers;
use super::error::{LaunchError, LaunchErrorKind};
use super::plan::LaunchPlan;
use super::record::{BranchRecord, MergeRecord, SandboxRecord};

/// Paths that are named at most.
const PATHS_MAX: usize = 20;

/// A merge whose conflicts are resolved.
pub(crate) struct ResolvedWork {
    /// The commit, whose parents are both sides.
    pub(crate) commit: CommitId,
    /// What it changes on the branch.
    pub(crate) changed: Vec<PathChange>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Merges a revision into a branch that a launch is about to work on, and lets it begin there.
pub(crate) fn begin(
    at: &MergeSite<'_>,
    revision: &str,
    branch: &mut BranchRecord,
) -> Result<(), LaunchError> {
    let MergeSite {
        grants,
        plan,
        repo,
        stage,
    } = *at;
    let repository = &repo.repository;
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    if branch.local.is_none() {
        return Err(LaunchError::new(
            LaunchErrorKind::Usage,
            format!(
                "there is no branch {} to merge {revision} into",
                branch.name
            ),
            format!("omit `--merge`; `--base-branch {revision}` starts the branch there."),
        ));
    }
    let theirs = commit_of(repository, revision, &branch.remote, "to merge")?;
    let ours = repository_session::commit_id(&branch.start)?;
    if repository
        .is_ancestor(&theirs, &ours)
        .map_err(|error| failed(&error))?
    {
        let text = format!("Branch {} already contains {revision}.", branch.name);
        (stage.notice)(Activity::Note { text });
        return Ok(());
    }
    let author = repository_session::person(repository, grants);
    let message = format!("Merge {revision} into {}\n", branch.name);
    let scratch = plan.location.dir().join("merging");
    let brought = repository.bring_in(&BringInPlan {
        ours: &ours,
        theirs: &theirs,
        message: &message,
        author: &author,
        at_unix_seconds: stage.clock.now_ms().div_euclid(1_000),
        scratch: &scratch,
    });
    let brought = brought.map_err(|error| failed(&error))?;
    let owner = repository_session::ref_part(&branch.refs)?;
    let name = repository_session::ref_part("merge")?;
    let held = repository.hold_commit(&owner, &name, &brought.commit);
    held.map_err(|error| failed(&error))?;
    let (marked, others): (Vec<_>, Vec<_>) =
        brought.conflicts.into_iter().partition(|one| one.is_marked);
    let paths = |conflicts: Vec<ConflictedPath>| conflicts.into_iter().map(|it| it.path).collect();
    branch.merging = Some(MergeRecord {
        revision: revision.to_owned(),
        ours: ours.to_string(),
        theirs: theirs.to_string(),
        marked: paths(marked),
        others: paths(others),
    });
    branch.start = brought.commit.to_string();
    // The branch moves once, when there is nothing left to resolve.
    branch.stand_in = Some(format!("kapi/{}", branch.refs));
    Ok(())
}

/// Where a merge is made.
#[derive(Clone, Copy)]
pub(crate) struct MergeSite<'a> {
    /// What may be used of the host.
    pub(crate) grants: &'a HostGrants,
    /// What was asked for.
    pub(crate) plan: &'a LaunchPlan,
    /// The repository.
    pub(crate) repo: &'a RepositorySession,
    /// The time, and who is told.
    pub(crate) stage: &'a LaunchHandlers<'a>,
}

/// Makes what an agent left of a merge the merge that it was meant to be, if nothing is left to resolve.
pub(crate) fn resolved(
    repo: &RepositorySession,
    record: &SandboxRecord,
    merge: &MergeRecord,
    candidate: &Candidate,
    plan: &CandidatePlan,
) -> Result<ResolvedWork, LaunchError> {
    let repository = &repo.repository;
    let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
    let ours = repository_session::commit_id(&merge.ours)?;
    let theirs = repository_session::commit_id(&merge.theirs)?;
    let sides = [ours.clone(), theirs.clone()];
    let left = repository.leftover_markers(&sides, &candidate.commit);
    let left = left.map_err(|error| failed(&error))?;
    if !left.is_empty() {
        let places = left
            .iter()
            .map(|one| format!("{}:{}", one.path.display(), one.line));
        let places: Vec<String> = places.take(PATHS_MAX).collect();
        let id = &record.id;
        return Err(LaunchError::new(
            LaunchErrorKind::Denied,
            format!("conflict markers are left at {}", places.join(", ")),
            format!(
                "`kapi resume launch/{id}` lets the agent go on; `kapi sandbox shell {id}` lets you \
                 resolve them."
            ),
        ));
    }
    let commit = repository.resolved_merge(&ResolvedMerge {
        head: &ours,
        source: &theirs,
        files: &candidate.commit,
        message: &plan.message,
        author: &plan.author,
        at_unix_seconds: plan.at_unix_seconds,
    });
    let commit = commit.map_err(|error| failed(&error))?;
    if let Some(branch) = &record.branch {
        // Before the branch moves, so that a launch that is cut off is known to be done.
        let owner = repository_session::ref_part(&branch.refs)?;
        let held = repository.hold_commit(&owner, &plan.name, &commit);
        held.map_err(|error| failed(&error))?;
    }
    let everything = ["**".to_owned()];
    let changed = repository.protected_changes(&ours, &commit, &everything);
    let touched = |path: &PathBuf| candidate.changed.iter().any(|one| one.path == *path);
    let untouched = merge.others.iter().filter(|path| !touched(path));
    let notes = untouched.take(PATHS_MAX).map(|path| {
        format!(
            "Check {}: both sides changed it in ways that do not fit, and it is as the merge left it.",
            path.display()
        )
    });
    Ok(ResolvedWork {
        commit,
        notes: notes.collect(),
        changed: changed.map_err(|error| failed(&error))?,
    })
}

impl MergeRecord {
    /// Returns what an agent is told about the merge.
    pub(crate) fn instruction(&self) -> String {
        let Self {
            revision,
            marked,
            others,
            ..
        } = self;
        let list = |paths: &[PathBuf]| {
            let shown = paths.iter().take(PATHS_MAX);
            let lines = shown.map(|path| format!("\n- {}", path.display()));
            lines.collect::<String>()
        };
        let mut text = format!(
            "{revision} was merged into this branch: HEAD is the merge, HEAD^1 the branch as it was, \
             HEAD^2 {revision}."
        );
        if marked.is_empty() && others.is_empty() {
            text.push_str(" There are no conflicts; see to it that the result works.");
        }
        if !marked.is_empty() {
            text.push_str(
                "\nThese files have conflicting lines between markers. Keep what both sides want, and \
                 remove every marker:",
            );
            text.push_str(&list(marked));
        }
        if !others.is_empty() {
            text.push_str("\nIn these both sides do not fit; decide what each should be:");
            text.push_str(&list(others));
        }
        text
    }
}
