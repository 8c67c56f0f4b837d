//! Putting a workflow's branch and its worktree where a decision wants them, and proving that they are
//! there: the tree, ignored files, and whatever an agent committed by itself.
//!
//! Which commit that is, is not known here.

use kapi_core::failure::Failure;
use kapi_git::author::Author;
use kapi_git::candidate::CandidatePlan;
use kapi_git::publish::PublishError;
use kapi_git::restore::{Recommit, RestoreError};
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use crate::perform::{EffectRefusal, WorkflowEnvironment};
use crate::record::run_name::effect_name;
use crate::rules::effect::{KeptChange, Restoration, WorkflowEffect};
use crate::rules::outcome::{RestorationReport, WorkflowOutcome};

/// Puts branch and worktree where they belong.
pub(super) fn restore(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    wanted: &Restoration,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let head = repository_session::commit_id(&wanted.head)?;
    let workspace = repo.workspace(&world.location, &wanted.branch, &wanted.first, &wanted.head)?;
    let name = format!("kept-{}", effect_name(&effect.id));
    let to = match &wanted.keep {
        None => head.clone(),
        Some(keep) => {
            let author = repository_session::person(&repo.repository, &world.grants);
            let made = kept_plan(keep, &name, author)?;
            let commits = Recommit {
                files: &repository_session::commit_id(&keep.commit)?,
                parent: &head,
            };
            let made = repo.repository.recommit(&workspace, commits, &made);
            made.map_err(|error| failure::plain(&error))?
        }
    };
    // Where it stays, this proves that nobody else has moved it.
    let moved = repo.repository.publish_branch(&workspace, &head, &to);
    moved.map_err(|error| refused(&error))?;
    let restored = repo.repository.restore_workspace(&workspace, &to);
    let restored = restored.map_err(|error| EffectRefusal {
        may_pass: !matches!(error, RestoreError::LeftOver { .. }),
        ..EffectRefusal::lasting_error(&error)
    })?;
    Ok(WorkflowOutcome::Restored(RestorationReport {
        commit: to.to_string(),
        tree: restored.tree.to_string(),
        n_removed: restored.n_removed,
    }))
}

/// Returns the plan of the commit that is put on the branch.
fn kept_plan(keep: &KeptChange, name: &str, author: Author) -> Result<CandidatePlan, Failure> {
    Ok(CandidatePlan {
        name: repository_session::ref_part(name)?,
        message: keep.message.clone(),
        author,
        at_unix_seconds: keep.at_s,
    })
}

/// A branch that somebody moved is theirs to put back; everything else may pass.
fn refused(error: &PublishError) -> EffectRefusal {
    let hint = match error {
        PublishError::BranchMoved {
            branch, expected, ..
        } => Some(format!(
            "keep what was put there under another name, put the branch back with `git branch \
             --force {branch} {expected}`, then resume."
        )),
        _ => None,
    };
    let mut refused = EffectRefusal::lasting_error(error);
    refused.may_pass = hint.is_none();
    refused.failure.hint = hint.or(refused.failure.hint);
    refused
}
