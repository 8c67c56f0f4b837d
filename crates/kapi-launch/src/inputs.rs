//! What a launch finds before it decides anything: the repository, the mode, an earlier launch.
//!
//! Only reads.

use std::path::Path;

use kapi_git::repository::{Repository, RepositoryError};
use kapi_run::book::Book;
use kapi_run::workshop;
use kapi_run::workshop::Workshop;
use kapi_sys::cancel::Cancel;

use super::error::{LaunchError, LaunchErrorKind};
use super::mode::{self, ChosenMode, ProjectGit};
use super::plan::LaunchPlan;
use super::record::SandboxRecord;

/// What is there before anything is decided.
#[derive(Debug)]
pub(crate) struct LaunchInputs {
    pub(crate) workshop: Option<Workshop>,
    pub(crate) chosen: ChosenMode,
    pub(crate) earlier: Option<SandboxRecord>,
}

impl LaunchInputs {
    pub(crate) fn of(book: &Book, plan: &LaunchPlan) -> Result<Self, LaunchError> {
        if plan.place.dir().starts_with(&plan.project) {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                format!("{} contains Kapi's own state", plan.project.display()),
                "launch it on a subdirectory.",
            ));
        }
        let (ground, workshop) = ground(book, &plan.project)?;
        let branch = plan.branch.as_ref().map(|branch| branch.name.as_str());
        let chosen = mode::choose(plan.mode, branch, &ground, plan.level)?;
        let earlier = SandboxRecord::load(&plan.place)?;
        Ok(Self {
            workshop,
            chosen,
            earlier,
        })
    }
}

/// Returns what git knows of a project, and the repository if the project is its top.
pub(crate) fn ground(
    book: &Book,
    project: &Path,
) -> Result<(ProjectGit, Option<Workshop>), LaunchError> {
    let git = workshop::find_git(book, &Cancel::new())?;
    let repository = match Repository::discover(&git, project) {
        Ok(repository) => repository,
        Err(RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. }) => {
            return Ok((ProjectGit::Plain, None));
        }
        Err(RepositoryError::NoCommit { .. }) => return Ok((ProjectGit::Unborn, None)),
        Err(error) => return Err(LaunchError::failed(&error)),
    };
    let top = repository.top_level().to_path_buf();
    let is_top = std::fs::canonicalize(&top).is_ok_and(|top| top == project);
    if is_top {
        Ok((ProjectGit::Repository, Some(Workshop { repository })))
    } else {
        Ok((ProjectGit::Below(top), None))
    }
}
