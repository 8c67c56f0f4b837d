//! Making a branch for each independent part of what a workflow kept.
//!
//! Which commits belong together is not known here; that the parts are the whole is proved.

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::CommitId;
use kapi_git::split::{PartPlan, SplitPlan};
use kapi_machine::watch::Watch;
use kapi_run::workshop;
use kapi_run::workshop::Workshop;

use crate::perform::{Refused, WorkflowPlace, clear, scratch};
use crate::rules::branch::PartBranch;
use crate::rules::effect::{Effect, Split};
use crate::rules::outcome::Outcome;

/// Makes the branches.
pub(super) fn split(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    wanted: &Split,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let mut parts = Vec::new();
    for (n, part) in (1..).zip(&wanted.parts) {
        let commits = part
            .commits
            .iter()
            .map(|commit| workshop::commit_id(commit));
        let commits: Result<Vec<CommitId>, _> = commits.collect();
        parts.push(PartPlan {
            branch: part.branch.clone(),
            commit: CandidatePlan {
                name: workshop::ref_part(&format!("part-{n}"))?,
                message: part.message.clone(),
                author: workshop::author(),
                at_unix_seconds: wanted.at_s,
            },
            commits: commits?,
        });
    }
    let (base, head) = (
        workshop::commit_id(&wanted.base)?,
        workshop::commit_id(&wanted.head)?,
    );
    let plan = SplitPlan {
        owner: &workshop::ref_part(&world.place.ref_name)?,
        base: &base,
        head: &head,
        parts: &parts,
        scratch: &scratch.join("index"),
    };
    let made = workshop.repository.split(&plan);
    clear(&scratch);
    let made = made.map_err(|error| Refused {
        may_pass: error.may_pass(),
        ..Refused::lasting_error(&error)
    })?;
    let branches = made.into_iter().map(|made| PartBranch {
        branch: made.branch,
        commit: made.commit.to_string(),
    });
    Ok(Outcome::Split {
        branches: branches.collect(),
    })
}
