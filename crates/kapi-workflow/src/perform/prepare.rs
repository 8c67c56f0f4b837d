//! Making a workflow's branch and its worktree.
//!
//! A branch that is somebody else's is never touched: another, more specific name is taken. Which
//! name was taken is kept before the branch is made, so that a repeated effect finds its own.

use std::fs;

use kapi_core::failure::Failure;
use kapi_core::usage::Usage;
use kapi_git::id::CommitId;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::{failure, repository_session};

use crate::perform::{EffectRefusal, WorkflowEnvironment, cancelled, verify};
use crate::rules::effect::{Verification, WorkflowEffect};
use crate::rules::outcome::WorkflowOutcome;

/// How many names are tried.
const NAMES_MAX: u32 = 9;
/// The file that keeps the name.
const FILE: &str = "branch";

/// A branch that is made.
pub(super) struct NewBranch<'a> {
    /// Its name, as long as that is free.
    pub(super) name: &'a str,
    /// The commit it begins at.
    pub(super) base: &'a str,
}

/// Makes the branch at its base and a worktree of it, or finds them, and runs the checks there. One that
/// cannot work is told before a task is begun.
pub(super) fn prepare(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    branch: &NewBranch<'_>,
    checks: &Verification,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let &NewBranch { name: branch, base } = branch;
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let owner = repository_session::ref_part(&world.location.ref_name)?;
    let recorded = repo.repository.recorded_base(&owner);
    let recorded = recorded.map_err(|error| failure::plain(&error))?;
    let run_dir = RunDir::open(&world.location.runs, &format!("{}-branch", effect.workflow))?;
    let kept = fs::read_to_string(run_dir.file(FILE)).ok();
    let name = match (&recorded, kept) {
        (Some(_), Some(kept)) => still_ours(&repo, kept, base)?,
        (Some(_), None) => still_ours(&repo, branch.to_owned(), base)?,
        (None, kept) => {
            let first = kept.unwrap_or_else(|| branch.to_owned());
            let name = free_name(&repo, &first, branch, effect.workflow.index())?;
            run_dir.keep(FILE, name.as_bytes())?;
            name
        }
    };
    let made = repo.workspace(&world.location, &name, base, base);
    let workspace = made.map_err(EffectRefusal::lasting)?;
    let mut baseline = None;
    if !checks.commands.is_empty() {
        let report = verify::of_base(location, effect, checks, &name, watch)?;
        let Some(report) = report else {
            return Ok(cancelled(Usage::default()));
        };
        baseline = Some(Box::new(report));
    }
    Ok(WorkflowOutcome::Prepared {
        branch: name,
        worktree: workspace.path.display().to_string(),
        baseline,
    })
}

/// Returns the branch that was made, unless somebody else's has its name by now.
fn still_ours(repo: &RepositorySession, name: String, base: &str) -> Result<String, EffectRefusal> {
    let found = at(repo, &name)?;
    match found {
        Some(commit) if commit.as_str() != base => Err(EffectRefusal::lasting(Failure {
            message: format!("use branch {name}: it is at {commit}, but was created at {base}"),
            hint: Some(format!(
                "reset it with `git branch --force {name} {base}`, or rename it."
            )),
        })),
        Some(_) | None => Ok(name),
    }
}

/// Returns the first name that is free, the most telling one last.
fn free_name(
    repo: &RepositorySession,
    first: &str,
    branch: &str,
    index: u32,
) -> Result<String, EffectRefusal> {
    let mut names = vec![
        first.to_owned(),
        branch.to_owned(),
        format!("{branch}-{index:03}"),
    ];
    names.extend((2..=NAMES_MAX).map(|number| format!("{branch}-{index:03}-{number}")));
    for name in names {
        let is_free = repo.repository.branch_is_free(&name);
        if is_free.map_err(|error| failure::plain(&error))? {
            return Ok(name);
        }
    }
    Err(EffectRefusal::lasting(Failure {
        message: format!("find a free name for branch {branch}"),
        hint: Some("rename or delete branches of that name.".to_owned()),
    }))
}

fn at(repo: &RepositorySession, branch: &str) -> Result<Option<CommitId>, EffectRefusal> {
    let name = format!("refs/heads/{branch}");
    let found = repo.repository.refs_at(&name);
    let found = found.map_err(|error| failure::plain(&error))?;
    let mut found = found.into_iter().filter(|(other, _)| *other == name);
    Ok(found.next().map(|(_, commit)| commit))
}
