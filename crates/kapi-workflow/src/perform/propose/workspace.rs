//! Where each of several agents works that propose at once: the first in the workflow's own worktree, the
//! others in one of their own for the length of their turn.
//!
//! What they made is a commit by then; what else they left is of no use to anybody.

use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_git::rescue::RescueName;
use kapi_goal::perform::real::RealWorld;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use crate::perform::EffectRefusal;
use crate::rules::effect::{Proposal, WorkflowEffect};

/// Returns by whose name a workspace is kept.
pub(super) fn owner(effect: &WorkflowEffect, proposal: &Proposal) -> Result<GoalId, EffectRefusal> {
    if proposal.place == 0 {
        return Ok(effect.workflow.clone());
    }
    let part = format!("E-{:03}", proposal.place);
    GoalId::part_of(&effect.workflow, &part, 1)
        .map_err(|error| EffectRefusal::lasting_error(&error))
}

/// Returns the branch that git inside seems to be on.
pub(super) fn branch(proposal: &Proposal) -> String {
    match proposal.place {
        0 => proposal.branch.clone(),
        place => format!("{}-try-{place}", proposal.branch),
    }
}

/// Removes a workspace that was made for one turn.
pub(super) fn remove(
    repo: &RepositorySession,
    world: &RealWorld<'_>,
    proposal: &Proposal,
) -> Result<(), Failure> {
    if proposal.place == 0 {
        return Ok(());
    }
    let owner = repository_session::ref_part(&world.location.ref_name)?;
    let first = repository_session::commit_id(&proposal.first)?;
    let failed = |error| failure::plain(&error);
    let repository = &repo.repository;
    repository
        .remove_worktree(&owner, &world.location.worktree)
        .map_err(failed)?;
    let rescue = RescueName {
        name: &owner,
        date: &repository_session::ref_part("try")?,
    };
    repository
        .remove_branch(&owner, &branch(proposal), &first, rescue)
        .map_err(failed)?;
    Ok(())
}
