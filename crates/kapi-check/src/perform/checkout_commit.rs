//! A commit of a person's checkout as it stands, for checks to be run on.
//!
//! Made below `refs/kapi` with an index of Kapi's own: HEAD, index, stash and files stay as they are.

use std::path::Path;

use kapi_core::failure::Failure;
use kapi_git::candidate::CandidatePlan;
use kapi_git::in_place::CheckoutInPlace;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::{self, RepositorySession};
use kapi_sys::cancel::Cancel;

/// What is committed, and as what.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutWork<'a> {
    /// The top level of the repository.
    pub project: &'a Path,
    /// The commit that the work began at.
    pub base: &'a str,
    /// A directory of Kapi's own for the index.
    pub index_dir: &'a Path,
    /// Whose commit it is, below `refs/kapi`.
    pub owner: &'a str,
    /// The last part of its ref.
    pub name: &'a str,
    /// The first line of its message.
    pub subject: &'a str,
    /// When it is from, in seconds since the Unix epoch.
    pub at_s: i64,
}

/// A commit of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutCommit {
    /// The commit.
    pub commit: String,
    /// Its files.
    pub tree: String,
}

/// Commits the work.
///
/// # Errors
/// When git fails, or a name cannot be part of a ref.
pub fn commit(
    grants: &HostGrants,
    work: &CheckoutWork<'_>,
    cancel: &Cancel,
) -> Result<CheckoutCommit, Failure> {
    let session = RepositorySession::open(grants, work.project, cancel)?;
    let plan = CandidatePlan {
        name: repository_session::ref_part(work.name)?,
        message: format!("{}\n", work.subject),
        author: repository_session::author(),
        at_unix_seconds: work.at_s,
    };
    let in_place = CheckoutInPlace {
        base: &repository_session::commit_id(work.base)?,
        index_dir: work.index_dir,
    };
    let owner = repository_session::ref_part(work.owner)?;
    let made = session
        .repository
        .commit_in_place(in_place, &owner, &plan)
        .map_err(|error| failure::plain(&error))?;
    Ok(CheckoutCommit {
        commit: made.commit.to_string(),
        tree: made.tree.to_string(),
    })
}
