//! What a clean-up knows of repositories: asked once for all that is in each.
//!
//! A thousand sandboxes take as many git processes as one. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_git::id::CommitId;
use kapi_git::owned_dir;
use kapi_git::repository::Repository;
use kapi_git::rescue::batch::Refs;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_sys::cancel::Cancel;

use crate::error::LaunchError;
use crate::record::{BranchRecord, SandboxRecord, WorkspaceKind};

/// What is to be known of some repositories, by project.
#[derive(Debug, Default)]
pub(crate) struct RepositoryQuestions {
    projects: BTreeMap<PathBuf, ProjectQuestions>,
}

/// What is to be known of one.
#[derive(Debug, Default)]
struct ProjectQuestions {
    /// Commits that may be pushed or merged.
    arrived: BTreeSet<CommitId>,
    /// Branches that may be merged, each with its last commit that is on record.
    branches: BTreeMap<String, Option<CommitId>>,
    /// Where it may be tried whether merging them would bring anything.
    scratch: PathBuf,
    /// Commits that files are compared with.
    compared: BTreeSet<CommitId>,
}

/// What is known of the repositories.
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
    /// Where the branches are that were asked for, or were when they were last on record.
    tips: BTreeMap<String, CommitId>,
    /// Those of the tips of which what is checked out holds everything.
    held: Result<BTreeSet<CommitId>, LaunchError>,
}

impl RepositoryQuestions {
    /// Asks whether a branch is merged; one that is gone was at `last`.
    pub(crate) fn branch(&mut self, project: &Path, branch: &str, last: &str) {
        let of_project = self.projects.entry(project.to_path_buf()).or_default();
        let last = CommitId::parse(last).ok();
        of_project.branches.insert(branch.to_owned(), last);
    }

    /// Says where it may be tried whether a merge would bring anything.
    pub(crate) fn scratch(&mut self, project: &Path, scratch: PathBuf) {
        let of_project = self.projects.entry(project.to_path_buf()).or_default();
        of_project.scratch = scratch;
    }

    /// Says that files will be compared with a commit; what is no commit is told where that is done.
    pub(crate) fn compared(&mut self, project: &Path, commit: &str) {
        let of_project = self.projects.entry(project.to_path_buf()).or_default();
        of_project.compared.extend(CommitId::parse(commit).ok());
    }

    /// Asks what has to be known of a sandbox.
    fn sandbox(&mut self, record: &SandboxRecord) {
        let Some(branch) = record.branch.as_ref().filter(|_| record.project.is_dir()) else {
            return;
        };
        let of_project = self.projects.entry(record.project.clone()).or_default();
        let commit = branch.commit.as_ref();
        let commit = commit.and_then(|commit| CommitId::parse(commit).ok());
        of_project.arrived.extend(commit);
        if record.made == WorkspaceKind::Checkout {
            let known = branch.commit.as_ref().unwrap_or(&branch.start);
            self.compared(&record.project, known);
        }
    }
}

impl KnownRepositories {
    /// Asks the repositories of these sandboxes.
    pub(crate) fn of<'a>(
        grants: &HostGrants,
        records: impl Iterator<Item = &'a SandboxRecord>,
    ) -> Self {
        let mut questions = RepositoryQuestions::default();
        records.for_each(|record| questions.sandbox(record));
        Self::asked(grants, &questions)
    }

    /// Asks the repositories all that is to be known.
    pub(crate) fn asked(grants: &HostGrants, questions: &RepositoryQuestions) -> Self {
        let projects = questions.projects.iter().map(|(project, questions)| {
            let ground = KnownRepository::of(grants, project, questions);
            (project.clone(), ground)
        });
        Self {
            projects: projects.collect(),
        }
    }

    /// Returns what is known of a project's repository.
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
        questions: &ProjectQuestions,
    ) -> Result<Self, LaunchError> {
        let repo = RepositorySession::open(grants, project, &Cancel::new())?;
        let repository = &repo.repository;
        let failed = |error: &dyn std::error::Error| LaunchError::failed(error);
        let needs_refs = !questions.arrived.is_empty() || !questions.branches.is_empty();
        let refs = match needs_refs {
            true => repository.refs().map_err(|error| failed(&error))?,
            false => Refs::default(),
        };
        let head_branch = repository.head_branch();
        let head_branch = head_branch.map_err(|error| failed(&error))?;
        let on_record = questions.arrived.iter();
        let on_record = on_record.chain(questions.branches.values().flatten());
        let on_record: Vec<CommitId> = on_record.cloned().collect();
        let there = repository.present(&on_record);
        let there = there.map_err(|error| failed(&error))?;
        let arrived = there.intersection(&questions.arrived).cloned().collect();
        let arrived = repository.arrived(&refs, &arrived);
        let arrived = arrived.map_err(|error| failed(&error))?;
        let tips = questions.branches.iter().filter_map(|(branch, last)| {
            let last = last.as_ref().filter(|last| there.contains(last));
            let tip = refs.0.get(&format!("refs/heads/{branch}")).or(last)?;
            Some((branch.clone(), tip.clone()))
        });
        let tips: BTreeMap<String, CommitId> = tips.collect();
        let held = held(repository, &tips, &questions.scratch);
        let mut compared = questions.compared.clone();
        compared.extend(tips.values().cloned());
        let learned = repository.learn_trees(&compared);
        learned.map_err(|error| failed(&error))?;
        Ok(Self {
            repo,
            head_branch,
            arrived,
            tips,
            held,
        })
    }

    /// Returns where a branch is that was asked for, or was.
    pub(crate) fn tip(&self, branch: &str) -> Option<&CommitId> {
        self.tips.get(branch)
    }

    /// Tells whether what is checked out holds everything that the tip of a branch brings.
    pub(crate) fn is_merged(&self, tip: &CommitId) -> Result<bool, LaunchError> {
        match &self.held {
            Ok(held) => Ok(held.contains(tip)),
            Err(error) => Err(error.clone()),
        }
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

/// Returns those of the tips of which what is checked out holds everything.
fn held(
    repository: &Repository,
    tips: &BTreeMap<String, CommitId>,
    scratch: &Path,
) -> Result<BTreeSet<CommitId>, LaunchError> {
    let tips: BTreeSet<CommitId> = tips.values().cloned().collect();
    if tips.is_empty() {
        return Ok(tips);
    }
    let head = repository.resolve_commit("HEAD");
    let head = head.map_err(|error| LaunchError::failed(&error))?;
    let held = repository.held_by(&head, &tips, scratch);
    drop(owned_dir::wipe(scratch));
    held.map_err(|error| LaunchError::failed(&error))
}
