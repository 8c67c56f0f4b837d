//! Landing a task's commit on the workflow's branch, and bringing the worktree after it.
//!
//! The branch is what counts. A worktree in which a person has changed something stays as it is,
//! and that is said.

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::CommitId;
use kapi_git::land::bring::Brought;
use kapi_git::land::{self, Carries, LandError, LandPlan};
use kapi_git::workspace::Origin;
use kapi_goal::perform::real::RealWorld;
use kapi_machine::watch::{Activity, Watch};
use kapi_run::workshop::Workshop;
use kapi_run::{failure, workshop};

use crate::perform::{Refused, WorkflowPlace, clear, scratch};
use crate::record::run_name::effect_name;
use crate::rules::changed::Changed;
use crate::rules::effect::{Effect, Landing};
use crate::rules::outcome::Outcome;

/// Lands a commit.
pub(super) fn land(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    landing: &Landing,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let (head, base, commit) = (
        workshop::commit_id(&landing.head)?,
        workshop::commit_id(&landing.base)?,
        workshop::commit_id(&landing.commit)?,
    );
    let plan = LandPlan {
        owner: &workshop::ref_part(&world.place.ref_name)?,
        branch: &landing.branch,
        head: &head,
        base: &base,
        commit: &commit,
        carries: Carries::One,
        message: &landing.message,
        author: &workshop::author(),
        at_unix_seconds: landing.at_s,
        scratch: &scratch,
    };
    let landed = workshop.repository.land(&plan);
    clear(&scratch);
    let landed = landed.map_err(|error| refused(&error, landing))?;
    Ok(match landed {
        land::Landing::Landed {
            head: to,
            tree,
            is_merged,
        } => {
            if let Some(text) = left(&workshop, &world, effect, landing, &to) {
                (watch.notice)(Activity::Note { text });
            }
            Outcome::Landed {
                head: to.to_string(),
                tree: tree.to_string(),
                merged: is_merged,
                changed: changed(&workshop, &base, &commit)?,
            }
        }
        land::Landing::Conflicted { paths } => Outcome::Conflicted {
            paths: paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        },
    })
}

/// Returns the paths that a task's commit changed.
fn changed(workshop: &Workshop, base: &CommitId, commit: &CommitId) -> Result<Changed, Refused> {
    let everything = ["**".to_owned()];
    let found = workshop
        .repository
        .protected_changes(base, commit, &everything);
    let found = found.map_err(|error| failure::plain(&error))?;
    let paths = found.iter().map(|change| change.path.display().to_string());
    Ok(Changed::of(paths.collect()))
}

/// Returns the refusal of a landing, with the commands that bring a moved branch back and lose
/// nothing of what somebody put on it.
fn refused(error: &LandError, landing: &Landing) -> Refused {
    let LandError::BranchMoved {
        branch,
        expected,
        actual,
    } = error
    else {
        return Refused {
            may_pass: error.may_pass(),
            ..Refused::lasting_error(error)
        };
    };
    let worktree = &landing.worktree;
    let hint = match actual {
        None => format!("create it again with `git branch {branch} {expected}`, then resume."),
        Some(actual) => {
            let name: String = actual.as_str().chars().take(10).collect();
            format!(
                "save the new commits with `git branch kept-{name} {name}`, reset the branch \
                 with `git -C '{worktree}' reset --keep {expected}`, then resume; merge \
                 kept-{name} at the end."
            )
        }
    };
    let mut refused = Refused::lasting_error(error);
    refused.failure.hint = Some(hint);
    refused
}

/// Brings the worktree into step, and tells why it was left if it was.
fn left(
    workshop: &Workshop,
    world: &RealWorld<'_>,
    effect: &Effect,
    landing: &Landing,
    to: &CommitId,
) -> Option<String> {
    let worktree = &landing.worktree;
    match brought(workshop, world, effect, landing, to) {
        Ok(Brought::InStep) => None,
        Ok(Brought::LeftDirty) => Some(format!(
            "the worktree {worktree} has uncommitted changes and was left unchanged; branch {} \
             is at {to}",
            landing.branch
        )),
        Ok(Brought::LeftMissing) => Some(format!("the worktree {worktree} is gone")),
        Err(refused) => Some(format!(
            "the worktree {worktree} was not updated to {to}: failed to {}",
            refused.failure.message
        )),
    }
}

fn brought(
    workshop: &Workshop,
    world: &RealWorld<'_>,
    effect: &Effect,
    landing: &Landing,
    to: &CommitId,
) -> Result<Brought, Refused> {
    let from = workshop::commit_id(&landing.head)?;
    let owner = workshop::ref_part(&world.place.ref_name)?;
    let first = workshop.repository.recorded_base(&owner);
    let first = first.map_err(|error| failure::plain(&error))?;
    let first = first.as_ref().map_or(from.as_str(), CommitId::as_str);
    // One that somebody removed is made again, with the files as they are on the branch now.
    let workspace = workshop.workspace(&world.place, &landing.branch, first, to.as_str())?;
    if workspace.origin != Origin::Adopted {
        return Ok(Brought::InStep);
    }
    let kept = CandidatePlan {
        name: workshop::ref_part(&format!("rescue-{}", effect_name(&effect.id)))?,
        message: format!(
            "rescue: files of {} as they were when a landing was cut off\n",
            effect.workflow
        ),
        author: workshop::author(),
        at_unix_seconds: landing.at_s,
    };
    workshop
        .repository
        .bring_workspace(&workspace, &from, to, &kept)
        .map_err(|error| failure::plain(&error).into())
}
