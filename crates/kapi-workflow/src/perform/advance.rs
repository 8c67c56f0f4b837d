//! Moving the integration branch to a proved commit.
//!
//! What is refused says where the branch is shown and what the person can do there; the branch never
//! moves past a checkout that would not follow.

use kapi_git::advance::{Advance, AdvanceError, AdvancePlan};
use kapi_machine::watch::Watch;
use kapi_run::workshop;
use kapi_run::workshop::Workshop;

use crate::perform::{Refused, WorkflowPlace};
use crate::rules::effect::{Advancing, Effect};
use crate::rules::outcome::Outcome;

/// Moves the branch.
pub(super) fn advance(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    step: &Advancing,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let (from, to) = (
        workshop::commit_id(&step.from)?,
        workshop::commit_id(&step.to)?,
    );
    let advanced = workshop.repository.advance_integration(&AdvancePlan {
        branch: step.target,
        from: &from,
        to: &to,
        checkout: step.checkout,
    });
    Ok(match advanced.map_err(|error| refused(&error, step))? {
        Advance::Done { brought } => Outcome::Advanced {
            at: step.to.clone(),
            brought: brought.map(|path| path.display().to_string()),
        },
        Advance::Moved { found } => Outcome::Moved {
            found: found.map(|commit| commit.to_string()),
        },
    })
}

/// Returns the refusal of a step, with what the person can do about it.
fn refused(error: &AdvanceError, step: &Advancing) -> Refused {
    let (branch, to) = (step.target, &step.to);
    let hint = match error {
        AdvanceError::NotOnBase { .. } => Some(format!(
            "what was proved was made on another history of {branch}: plan it anew."
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
    let mut refused = Refused {
        may_pass: error.may_pass(),
        ..Refused::lasting_error(error)
    };
    refused.failure.hint = hint.or(refused.failure.hint);
    refused
}
