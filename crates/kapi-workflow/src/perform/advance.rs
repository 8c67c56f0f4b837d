//! Moving the integration branch to a proved commit.
//!
//! What is refused says where the branch is shown and what the person can do there; the branch never
//! moves past a checkout that would not follow.

use kapi_git::advance::{Advance, AdvanceError, AdvancePlan};
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;

use crate::perform::{EffectRefusal, WorkflowEnvironment};
use crate::rules::effect::{Advancing, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;

/// Moves the branch.
pub(super) fn advance(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    step: &Advancing,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let (from, to) = (
        repository_session::commit_id(&step.from)?,
        repository_session::commit_id(&step.to)?,
    );
    let advanced = repo.repository.advance_integration(&AdvancePlan {
        branch: step.target,
        from: &from,
        to: &to,
        checkout: step.checkout,
    });
    Ok(match advanced.map_err(|error| refused(&error, step))? {
        Advance::Done { brought } => WorkflowOutcome::Advanced {
            at: step.to.clone(),
            brought: brought.map(|path| path.display().to_string()),
        },
        Advance::Moved { found } => WorkflowOutcome::Moved {
            found: found.map(|commit| commit.to_string()),
        },
    })
}

/// Returns the refusal of a step, with what the person can do about it.
fn refused(error: &AdvanceError, step: &Advancing) -> EffectRefusal {
    let (branch, to) = (step.target, &step.to);
    let hint = match error {
        AdvanceError::NotOnBase { .. } => Some(format!(
            "what was proved was made on another history of {branch}: plan it again."
        )),
        AdvanceError::CheckedOut { checkouts, .. } => {
            let path = checkouts.first().map(|path| path.display().to_string());
            let path = path.unwrap_or_default();
            Some(format!(
                "take the branch out of it with `git -C '{path}' switch --detach`, or move it there \
                 yourself with `git -C '{path}' merge --ff-only {to}`, then resume."
            ))
        }
        AdvanceError::Dirty { checkout, .. } | AdvanceError::InTheWay { checkout, .. } => {
            let path = checkout.display();
            Some(format!(
                "commit that, or put it away with `git -C '{path}' stash --all`, then resume."
            ))
        }
        AdvanceError::Unfinished { checkout, .. } => {
            let path = checkout.display();
            Some(format!(
                "finish it (`git -C '{path}' status` says how), then resume."
            ))
        }
        AdvanceError::Filtered { checkout, .. } => {
            let path = checkout.display();
            Some(format!(
                "move the branch there yourself with `git -C '{path}' merge --ff-only {to}`, then resume."
            ))
        }
        AdvanceError::Repository(_) | AdvanceError::Git(_) => None,
    };
    let mut refused = EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(error)
    };
    refused.failure.hint = hint.or(refused.failure.hint);
    refused
}
