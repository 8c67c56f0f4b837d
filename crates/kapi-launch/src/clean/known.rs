//! What a clean-up knows of repositories: asked once for all sandboxes of each.
//!
//! A thousand sandboxes take as many git processes as one. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use crate::error::LaunchError;
use crate::record::{BranchRecord, SandboxRecord};

/// What is known of the repositories of some sandboxes.
pub(crate) struct KnownRepositories {
    projects: BTreeMap<PathBuf, Result<KnownRepository, LaunchError>>,
}

/// What is known of one.
pub(crate) struct KnownRepository {
    pub(crate) repo: RepositorySession,
    /// The branch that is checked out.
    head_branch: Option<String>,
    /// Commits that are pushed or merged.
    arrived: BTreeSet<CommitId>,
}

impl KnownRepositories {
    /// Asks the repositories of these sandboxes.
    pub(crate) fn of<'a>(
        grants: &HostGrants,
        records: impl Iterator<Item = &'a SandboxRecord>,
    ) -> Self {
        let mut commits: BTreeMap<PathBuf, BTreeSet<CommitId>> = BTreeMap::new();
        for record in records {
            let Some(branch) = record.branch.as_ref().filter(|_| record.project.is_dir()) else {
                continue;
            };
            let of_project = commits.entry(record.project.clone()).or_default();
            let commit = branch.commit.as_ref();
            of_project.extend(commit.and_then(|commit| CommitId::parse(commit).ok()));
        }
        let projects = commits.into_iter().map(|(project, commits)| {
            let ground = KnownRepository::of(grants, &project, &commits);
            (project, ground)
        });
        Self {
            projects: projects.collect(),
        }
    }

    /// Returns what is known of a sandbox's repository.
    pub(crate) fn ground(&self, project: &Path) -> Result<&KnownRepository, LaunchError> {
        match self.projects.get(project) {
            Some(Ok(ground)) => Ok(ground),
            Some(Err(error)) => Err(error.clone()),
            None => Err(LaunchError::new(
                crate::error::LaunchErrorKind::Failed,
                format!("find the repository of {}", project.display()),
                "it did not exist when the cleanup started.",
            )),
        }
    }
}

impl KnownRepository {
    fn of(
        grants: &HostGrants,
        project: &Path,
        commits: &BTreeSet<CommitId>,
    ) -> Result<Self, LaunchError> {
        let repo = RepositorySession::open(grants, project, &Cancel::new())?;
        let repository = &repo.repository;
        let refs = repository.refs();
        let refs = refs.map_err(|error| LaunchError::failed(&error))?;
        let head_branch = repository.head_branch();
        let head_branch = head_branch.map_err(|error| LaunchError::failed(&error))?;
        let there = repository.present(&commits.iter().cloned().collect::<Vec<_>>());
        let there = there.map_err(|error| LaunchError::failed(&error))?;
        let arrived = repository.arrived(&refs, &there.into_iter().collect());
        let arrived = arrived.map_err(|error| LaunchError::failed(&error))?;
        Ok(Self {
            repo,
            head_branch,
            arrived,
        })
    }

    /// Tells whether the commit of a launch is pushed or merged.
    pub(crate) fn has_arrived(&self, branch: &BranchRecord) -> Result<bool, LaunchError> {
        let known = branch.commit.as_ref().unwrap_or(&branch.start);
        let known = repository_session::commit_id(known)?;
        if self.head_branch.as_deref() != Some(&branch.name) {
            return Ok(self.arrived.contains(&known));
        }
        // Being on the branch itself proves nothing.
        let state = self.repo.repository.state(&known, &branch.name);
        let state = state.map_err(|error| LaunchError::failed(&error))?;
        Ok(state.is_pushed() || state.is_merged())
    }
}
