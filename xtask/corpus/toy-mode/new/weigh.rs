//! Weighing a commit.

use kapi_machine::watch::EffectWatch;
use crate::rules::effect::WorkflowEffect;
use crate::rules::outcome::WorkflowOutcome;

use crate::perform::{EffectRefusal, WorkflowEnvironment};
use kapi_run::repository_session::RepositorySession;

/// Weighs it.
pub(super) fn weigh(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    commit: &str,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let found = repo.repository.resolve_commit(commit);
    let found = found.map_err(|error| EffectRefusal::lasting_error(&error))?;
    Ok(WorkflowOutcome::Weighed {
        bytes: found.as_str().len(),
    })
}
