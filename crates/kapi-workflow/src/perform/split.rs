//! Making a branch for each independent part of what a workflow kept.
//!
//! Which commits belong together is not known here; that the parts are the whole is proved.

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::CommitId;
use kapi_git::split::{PartPlan, SplitPlan};
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;

use crate::perform::{EffectRefusal, WorkflowEnvironment, clear, scratch};
use crate::rules::branch::PartBranch;
use crate::rules::effect::{Split, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;

/// Makes the branches.
pub(super) fn split(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    wanted: &Split,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let mut parts = Vec::new();
    for (n, part) in (1..).zip(&wanted.parts) {
        let commits = part
            .commits
            .iter()
            .map(|commit| repository_session::commit_id(commit));
        let commits: Result<Vec<CommitId>, _> = commits.collect();
        parts.push(PartPlan {
            branch: part.branch.clone(),
            commit: CandidatePlan {
                name: repository_session::ref_part(&format!("part-{n}"))?,
                message: part.message.clone(),
                author: repository_session::person(&repo.repository, &world.grants),
                at_unix_seconds: wanted.at_s,
            },
            commits: commits?,
        });
    }
    let (base, head) = (
        repository_session::commit_id(&wanted.base)?,
        repository_session::commit_id(&wanted.head)?,
    );
    let plan = SplitPlan {
        owner: &repository_session::ref_part(&world.location.ref_name)?,
        base: &base,
        head: &head,
        parts: &parts,
        scratch: &scratch.join("index"),
    };
    let made = repo.repository.split(&plan);
    clear(&scratch);
    let made = made.map_err(|error| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(&error)
    })?;
    let branches = made.into_iter().map(|made| PartBranch {
        branch: made.branch,
        commit: made.commit.to_string(),
    });
    Ok(WorkflowOutcome::Split {
        branches: branches.collect(),
    })
}
