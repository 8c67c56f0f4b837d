//! Weighing a commit.

use kapi_machine::watch::Watch;
use crate::rules::effect::Effect;
use crate::rules::outcome::Outcome;

use crate::perform::{Refused, WorkflowPlace};
use kapi_run::workshop::Workshop;

/// Weighs it.
pub(super) fn weigh(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    commit: &str,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let found = workshop.repository.resolve_commit(commit);
    let found = found.map_err(|error| Refused::lasting_error(&error))?;
    Ok(Outcome::Weighed {
        bytes: found.as_str().len(),
    })
}
