//! What a launch finds before it decides anything: the repository, the mode, an earlier launch.
//!
//! Only reads.

use std::path::Path;

use kapi_git::repository::{Repository, RepositoryError};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use super::error::{LaunchError, LaunchErrorKind};
use super::mode::{self, ChosenMode, ProjectGit};
use super::plan::LaunchPlan;
use super::record::SandboxRecord;

/// What is there before anything is decided.
#[derive(Debug)]
pub(crate) struct LaunchInputs {
    pub(crate) repo: Option<RepositorySession>,
    pub(crate) chosen: ChosenMode,
    pub(crate) earlier: Option<SandboxRecord>,
}

impl LaunchInputs {
    pub(crate) fn of(grants: &HostGrants, plan: &LaunchPlan) -> Result<Self, LaunchError> {
        if plan.location.dir().starts_with(&plan.project) {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                format!("{} contains Kapi's own state", plan.project.display()),
                "launch it on a subdirectory.",
            ));
        }
        if plan.project.to_str().is_none() {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                format!("the path {} is not UTF-8", plan.project.display()),
                "rename the directory: records of a launch are JSON, which holds no such path.",
            ));
        }
        let (ground, repo) = ground(grants, &plan.project)?;
        let branch = plan.branch.as_ref().map(|branch| branch.name.as_str());
        let chosen = mode::choose(plan.mode, branch, &ground, plan.level)?;
        let earlier = SandboxRecord::load(&plan.location)?;
        Ok(Self {
            repo,
            chosen,
            earlier,
        })
    }
}

/// Tells whether work on a project can be committed to a branch: it is the top of a repository that
/// has a commit.
#[must_use]
pub fn has_branches(grants: &HostGrants, project: &Path) -> bool {
    ground(grants, project).is_ok_and(|(ground, _)| ground == ProjectGit::Repository)
}

/// Returns what git knows of a project, and the repository if the project is its top.
pub(crate) fn ground(
    grants: &HostGrants,
    project: &Path,
) -> Result<(ProjectGit, Option<RepositorySession>), LaunchError> {
    let git = repository_session::find_git(grants, &Cancel::new())?;
    let repository = match Repository::discover(&git, project) {
        Ok(repository) => repository,
        Err(RepositoryError::NotARepository { .. }) => return Ok((ProjectGit::Plain, None)),
        // Its files are hooks and settings of git, which run programs of whoever uses it.
        Err(error @ RepositoryError::Bare { .. }) => {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                format!("failed to {error}"),
                "name a checkout of the repository.",
            ));
        }
        Err(RepositoryError::NoCommit { .. }) => return Ok((ProjectGit::Unborn, None)),
        Err(error) => return Err(LaunchError::failed(&error)),
    };
    let top = repository.top_level().to_path_buf();
    let is_top = std::fs::canonicalize(&top).is_ok_and(|top| top == project);
    if is_top {
        Ok((
            ProjectGit::Repository,
            Some(RepositorySession { repository }),
        ))
    } else {
        Ok((ProjectGit::Below(top), None))
    }
}
