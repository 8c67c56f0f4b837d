//! Landing a task's commit on the workflow's branch, and bringing the worktree after it.
//!
//! The branch is what counts. A worktree in which a person has changed something stays as it is,
//! and that is said.

use kapi_git::candidate::CandidatePlan;
use kapi_git::id::CommitId;
use kapi_git::land::bring::CheckoutOutcome;
use kapi_git::land::{self, Carries, LandError, LandPlan};
use kapi_git::workspace::WorkspaceOrigin;
use kapi_goal::perform::real::RealWorld;
use kapi_launch::clean::goals::{self, FileAttribution, GoalFiles};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use crate::perform::{EffectRefusal, WorkflowEnvironment, clear, scratch};
use crate::record::run_name::effect_name;
use crate::rules::changed::LandedPaths;
use crate::rules::effect::{WorkflowEffect, WorkflowLanding};
use crate::rules::outcome::WorkflowOutcome;

/// Lands a commit.
pub(super) fn land(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    landing: &WorkflowLanding,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let (head, base, commit) = (
        repository_session::commit_id(&landing.head)?,
        repository_session::commit_id(&landing.base)?,
        repository_session::commit_id(&landing.commit)?,
    );
    let changed = changed(&repo, &base, &commit)?;
    let outside = changed.outside(&landing.within);
    if !outside.is_empty() {
        clear(&scratch);
        return Ok(WorkflowOutcome::Strayed {
            paths: outside.into_iter().map(str::to_owned).collect(),
        });
    }
    let plan = LandPlan {
        owner: &repository_session::ref_part(&world.location.ref_name)?,
        branch: &landing.branch,
        head: &head,
        base: &base,
        commit: &commit,
        carries: Carries::One,
        message: &landing.message,
        author: &repository_session::person(&repo.repository, &world.grants),
        at_unix_seconds: landing.at_s,
        scratch: &scratch,
    };
    let landed = repo.repository.land(&plan);
    clear(&scratch);
    let landed = landed.map_err(|error| refused(&error, landing))?;
    // Landed or to be done again: nobody works on this goal's branch any more.
    retire(location, landing);
    Ok(match landed {
        land::LandOutcome::Landed {
            head: to,
            tree,
            is_merged,
        } => {
            if let Some(text) = left(&repo, &world, effect, landing, &to) {
                (watch.notice)(Activity::Note { text });
            }
            WorkflowOutcome::Landed {
                head: to.to_string(),
                tree: tree.to_string(),
                merged: is_merged,
                changed,
            }
        }
        land::LandOutcome::Conflicted { paths } => WorkflowOutcome::Conflicted {
            paths: paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        },
    })
}

/// Removes the worktree and the branch of a task's goal; its commits stay under its own refs. What
/// holds work that is in no commit stays, and goes with `kapi cleanup`.
fn retire(location: &WorkflowEnvironment<'_>, landing: &WorkflowLanding) {
    let Some(id) = &landing.goal else { return };
    let (Ok(goal), Ok(world)) = (location.project.load(id), (location.world)(id)) else {
        return;
    };
    let files = GoalFiles {
        whose: FileAttribution::Task {
            branch: goal.contract.branch.clone(),
        },
        name: id.to_string(),
        location: world.location,
        known: landing.commit.clone(),
        base: goal.contract.base.commit,
        stays: None,
    };
    drop(goals::remove(&world.grants, &files));
}

/// Returns the paths that differ between two commits.
pub(super) fn changed(
    repo: &RepositorySession,
    base: &CommitId,
    commit: &CommitId,
) -> Result<LandedPaths, EffectRefusal> {
    let everything = ["**".to_owned()];
    let found = repo.repository.protected_changes(base, commit, &everything);
    let found = found.map_err(|error| failure::plain(&error))?;
    let paths = found.iter().map(|change| change.path.display().to_string());
    Ok(LandedPaths::of(paths.collect()))
}

/// Returns the refusal of a landing, with the commands that bring a moved branch back and lose
/// nothing of what somebody put on it.
fn refused(error: &LandError, landing: &WorkflowLanding) -> EffectRefusal {
    let LandError::BranchMoved {
        branch,
        expected,
        actual,
    } = error
    else {
        return EffectRefusal {
            may_pass: error.may_pass(),
            ..EffectRefusal::lasting_error(error)
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
    let mut refused = EffectRefusal::lasting_error(error);
    refused.failure.hint = Some(hint);
    refused
}

/// Brings the worktree into step, and tells why it was left if it was.
fn left(
    repo: &RepositorySession,
    world: &RealWorld<'_>,
    effect: &WorkflowEffect,
    landing: &WorkflowLanding,
    to: &CommitId,
) -> Option<String> {
    let worktree = &landing.worktree;
    match brought(repo, world, effect, landing, to) {
        Ok(CheckoutOutcome::InStep) => None,
        Ok(CheckoutOutcome::LeftDirty) => Some(format!(
            "the worktree {worktree} has uncommitted changes and was left unchanged; branch {} \
             is at {to}",
            landing.branch
        )),
        Ok(CheckoutOutcome::LeftMissing) => Some(format!("the worktree {worktree} is gone")),
        Err(refused) => Some(format!(
            "the worktree {worktree} was not updated to {to}: failed to {}",
            refused.failure.message
        )),
    }
}

fn brought(
    repo: &RepositorySession,
    world: &RealWorld<'_>,
    effect: &WorkflowEffect,
    landing: &WorkflowLanding,
    to: &CommitId,
) -> Result<CheckoutOutcome, EffectRefusal> {
    let from = repository_session::commit_id(&landing.head)?;
    let owner = repository_session::ref_part(&world.location.ref_name)?;
    let first = repo.repository.recorded_base(&owner);
    let first = first.map_err(|error| failure::plain(&error))?;
    let first = first.as_ref().map_or(from.as_str(), CommitId::as_str);
    // One that somebody removed is made again, with the files as they are on the branch now.
    let workspace = repo.workspace(&world.location, &landing.branch, first, to.as_str())?;
    if workspace.origin != WorkspaceOrigin::Adopted {
        return Ok(CheckoutOutcome::InStep);
    }
    let kept = CandidatePlan {
        name: repository_session::ref_part(&format!("rescue-{}", effect_name(&effect.id)))?,
        message: format!(
            "rescue: files of {} as they were when a landing was cut off\n",
            effect.workflow
        ),
        author: repository_session::author(),
        at_unix_seconds: landing.at_s,
    };
    repo.repository
        .bring_workspace(&workspace, &from, to, &kept)
        .map_err(|error| failure::plain(&error).into())
}
