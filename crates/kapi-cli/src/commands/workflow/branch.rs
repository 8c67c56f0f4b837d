//! Whether a plan's branch could be made at all: a branch named `docs` keeps git from making any
//! `docs/…`.
//!
//! Told before anything is spent on it, with the command that helps. Knows names only.

use kapi_core::integration_branch::IntegrationBranch;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_workflow::rules::branch::BranchType;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::naming;
use crate::workflow::located::LocatedWorkflow;

/// Refuses to go on to where a branch of this type is made, if git could not make it.
pub(crate) fn check(
    context: &Context,
    found: &LocatedWorkflow<'_>,
    branch_type: BranchType,
) -> Result<(), Error> {
    let kind = branch_type.as_str();
    let grants = context.grants(&Config::unconfigured());
    let survey = RepositorySurvey::of(&grants, found.project.layout.root());
    let survey = survey.map_err(|failure| Error::world(&failure))?;
    naming::check_type(kind, &survey).map_err(|mut error| {
        error.exit = Exit::Denied;
        error
    })
}

/// Returns a note where work begins beside the integration branch: what is there is not in its base.
pub(crate) fn beside_integration(
    survey: &RepositorySurvey,
    base: &str,
) -> Result<Option<String>, Error> {
    let world = |failure| Error::world(&failure);
    let Some(tip) = survey.integration_branch().map_err(world)? else {
        return Ok(None);
    };
    if survey.contains(base, &tip).map_err(world)? {
        return Ok(None);
    }
    let branch = IntegrationBranch::DEV;
    Ok(Some(format!(
        "Branch {branch} has work that this does not include; start from it with `--base {branch}`."
    )))
}

/// Returns a note for each type of branch that could not be made, beside the one that is looked at
/// anyway.
pub(crate) fn notes(survey: &RepositorySurvey) -> Vec<String> {
    let kinds = BranchType::ALL.iter().map(|kind| kind.as_str());
    let blocked = kinds.filter(|kind| naming::check_type(kind, survey).is_err());
    blocked
        .map(|kind| {
            format!(
                "The local branch {kind:?} prevents every branch {kind}/…: rename it with `git \
                 branch -m {kind} {kind}-old` before a plan of that type can run."
            )
        })
        .collect()
}
