//! Delivering a proved branch: the remote is tried before the work, and pushed to after it.
//!
//! By the person's own credentials, from the host and never by force. May be repeated.

use std::path::Path;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_git::push::{PushPlan, Remote};
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use crate::rules::delivery::Delivery;

/// The longest one conversation with a remote may take.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(120);

/// A push that the remote was seen to have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredBranch {
    /// The commit that the remote's branch is at.
    pub commit: String,
    /// The page for a pull request, if the remote printed its address.
    pub page: Option<String>,
}

/// Checks that a branch could be pushed, and returns the remote's address.
///
/// # Errors
/// When there is no such remote, it cannot be reached, or it refuses who pushes.
pub fn check(
    grants: &HostGrants,
    project: &Path,
    delivery: &Delivery,
    branch: &str,
) -> Result<String, Failure> {
    let repo = RepositorySession::open(grants, project, &Cancel::new())?;
    let plan = plan(grants, delivery, branch);
    let tried = repo.repository.try_push(&plan);
    let address = tried.and_then(|()| repo.repository.remote_address(&plan.remote));
    address.map_err(|error| Failure {
        message: failure::chain(&error),
        hint: Some(format!(
            "`git remote -v` lists the remotes, `git push --dry-run {}` shows whether you may push \
             there; or leave out the delivery.",
            delivery.remote
        )),
    })
}

/// Returns a remote's address.
///
/// # Errors
/// When there is no such remote.
pub fn address(
    grants: &HostGrants,
    project: &Path,
    delivery: &Delivery,
) -> Result<String, Failure> {
    let repo = RepositorySession::open(grants, project, &Cancel::new())?;
    let remote = plan(grants, delivery, "").remote;
    let address = repo.repository.remote_address(&remote);
    address.map_err(|error| failure::plain(&error))
}

/// Pushes a branch, and checks that the remote has it.
///
/// # Errors
/// When the remote refuses or cannot be reached; with the line that pushes by hand.
pub fn push(
    grants: &HostGrants,
    project: &Path,
    delivery: &Delivery,
    branch: &str,
) -> Result<DeliveredBranch, Failure> {
    let repo = RepositorySession::open(grants, project, &Cancel::new())?;
    let plan = plan(grants, delivery, branch);
    let pushed = repo.repository.push(&plan).map_err(|error| Failure {
        message: failure::chain(&error),
        hint: Some(format!(
            "the branch is here; push it with `{}`.",
            plan.command_line(&repo.repository)
        )),
    })?;
    Ok(DeliveredBranch {
        commit: pushed.commit.to_string(),
        page: pushed.pull_request_url,
    })
}

fn plan<'a>(grants: &'a HostGrants, delivery: &'a Delivery, branch: &'a str) -> PushPlan<'a> {
    PushPlan {
        remote: Remote {
            name: &delivery.remote,
            environment: &grants.env,
            timeout: REMOTE_TIMEOUT,
        },
        branch,
        remote_branch: branch,
    }
}
