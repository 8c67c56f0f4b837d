//! Applying a change to what was kept since it was made: a commit on no branch, or a conflict.
//!
//! Whether it is still a gain there is measured elsewhere.

use kapi_git::land::reapply::ReapplyOutcome;
use kapi_git::land::{Carries, LandPlan};
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::{self, RepositorySession};

use crate::perform::{EffectRefusal, WorkflowEnvironment, clear, land, scratch};
use crate::rules::effect::{Reapplication, WorkflowEffect};
use crate::rules::outcome::{ProposedCommit, WorkflowOutcome};

/// Applies a change.
pub(super) fn reapply(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    wanted: &Reapplication,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let (head, parent, commit) = (
        repository_session::commit_id(&wanted.head)?,
        repository_session::commit_id(&wanted.parent)?,
        repository_session::commit_id(&wanted.commit)?,
    );
    let plan = LandPlan {
        owner: &repository_session::ref_part(&world.location.ref_name)?,
        branch: &wanted.branch,
        head: &head,
        base: &parent,
        commit: &commit,
        carries: Carries::One,
        message: &wanted.message,
        author: &repository_session::person(&repo.repository, &world.grants),
        at_unix_seconds: wanted.at_s,
        scratch: &scratch,
    };
    let name = repository_session::ref_part(&wanted.name)?;
    let applied = repo.repository.reapply(&plan, &name);
    clear(&scratch);
    let applied = applied.map_err(|error| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(&error)
    })?;
    Ok(match applied {
        ReapplyOutcome::Applied { commit, tree } => {
            WorkflowOutcome::Reapplied(Box::new(ProposedCommit {
                changed: land::changed(&repo, &head, &commit)?,
                commit: commit.to_string(),
                tree: tree.to_string(),
                left_out: Vec::new(),
            }))
        }
        ReapplyOutcome::Conflicted { paths } => WorkflowOutcome::Conflicted {
            paths: paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        },
    })
}
