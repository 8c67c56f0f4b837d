//! What a launch finds before it decides anything: the repository, the mode, an earlier launch.
//!
//! Only reads.

use std::path::Path;

use kapi_git::repository::{Repository, RepositoryError};
use kapi_sys::cancel::Cancel;

use super::error::{Kind, LaunchError};
use super::mode::{self, Chosen, Ground};
use super::plan::LaunchPlan;
use super::record::Record;
use crate::book::Book;
use crate::workshop::{self, Workshop};

/// What is there before anything is decided.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) workshop: Option<Workshop>,
    pub(crate) chosen: Chosen,
    pub(crate) earlier: Option<Record>,
}

impl Scene {
    pub(crate) fn of(book: &Book, plan: &LaunchPlan) -> Result<Self, LaunchError> {
        if plan.place.dir().starts_with(&plan.project) {
            return Err(LaunchError::new(
                Kind::Usage,
                format!("{} holds Kapi's own state", plan.project.display()),
                "launch it on a directory further down.",
            ));
        }
        let (ground, workshop) = ground(book, &plan.project)?;
        let branch = plan.branch.as_ref().map(|branch| branch.name.as_str());
        let chosen = mode::choose(plan.mode, branch, &ground, plan.level)?;
        let earlier = Record::load(&plan.place)?;
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
) -> Result<(Ground, Option<Workshop>), LaunchError> {
    let git = workshop::find_git(book, &Cancel::new())?;
    let repository = match Repository::discover(&git, project) {
        Ok(repository) => repository,
        Err(RepositoryError::NotARepository { .. } | RepositoryError::Bare { .. }) => {
            return Ok((Ground::Plain, None));
        }
        Err(RepositoryError::NoCommit { .. }) => return Ok((Ground::Unborn, None)),
        Err(error) => return Err(LaunchError::failed(&error)),
    };
    let top = repository.top_level().to_path_buf();
    let is_top = std::fs::canonicalize(&top).is_ok_and(|top| top == project);
    if is_top {
        Ok((Ground::Repository, Some(Workshop { repository })))
    } else {
        Ok((Ground::Below(top), None))
    }
}
