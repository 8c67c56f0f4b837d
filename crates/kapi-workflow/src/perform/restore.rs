//! Putting a workflow's branch and its worktree where a decision wants them, and proving that they are
//! there: the tree, ignored files, and whatever an agent committed by itself.
//!
//! Which commit that is, is not known here.

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::CommitId;
use kapi_git::publish::PublishError;
use kapi_git::restore::{Recommit, RestoreError};
use kapi_git::workspace::Workspace;
use kapi_machine::watch::Watch;
use kapi_run::workshop::Workshop;
use kapi_run::{failure, workshop};

use crate::perform::{Refused, WorkflowPlace};
use crate::record::run_name::effect_name;
use crate::rules::effect::{Effect, KeptChange, Restoration};
use crate::rules::outcome::{Outcome, RestorationReport};

/// Puts branch and worktree where they belong.
pub(super) fn restore(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    wanted: &Restoration,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let head = workshop::commit_id(&wanted.head)?;
    let workspace =
        workshop.workspace(&world.place, &wanted.branch, &wanted.first, &wanted.head)?;
    let name = format!("kept-{}", effect_name(&effect.id));
    let to = match &wanted.keep {
        None => head.clone(),
        Some(keep) => kept(&workshop, &workspace, &head, keep, &name)?,
    };
    // Where it stays, this proves that nobody else has moved it.
    let moved = workshop.repository.publish_from(&workspace, &head, &to);
    moved.map_err(|error| refused(&error))?;
    let restored = workshop.repository.restore_workspace(&workspace, &to);
    let restored = restored.map_err(|error| Refused {
        may_pass: !matches!(error, RestoreError::LeftOver { .. }),
        ..Refused::lasting_error(&error)
    })?;
    Ok(Outcome::Restored(RestorationReport {
        commit: to.to_string(),
        tree: restored.tree.to_string(),
        n_removed: restored.n_removed,
    }))
}

/// Makes the commit that is put on the branch.
fn kept(
    workshop: &Workshop,
    workspace: &Workspace,
    head: &CommitId,
    keep: &KeptChange,
    name: &str,
) -> Result<CommitId, Refused> {
    let plan = CandidatePlan {
        name: workshop::ref_part(name)?,
        message: keep.message.clone(),
        author: workshop::author(),
        at_unix_seconds: keep.at_s,
    };
    let commits = Recommit {
        files: &workshop::commit_id(&keep.commit)?,
        parent: head,
    };
    let made = workshop.repository.recommit(workspace, commits, &plan);
    made.map_err(|error| failure::plain(&error).into())
}

/// A branch that somebody moved is theirs to put back; everything else may pass.
fn refused(error: &PublishError) -> Refused {
    let hint = match error {
        PublishError::BranchMoved {
            branch, expected, ..
        } => Some(format!(
            "keep what was put there under another name, put the branch back with `git branch \
             --force {branch} {expected}`, then resume."
        )),
        _ => None,
    };
    let mut refused = Refused::lasting_error(error);
    refused.may_pass = hint.is_none();
    refused.failure.hint = hint.or(refused.failure.hint);
    refused
}
