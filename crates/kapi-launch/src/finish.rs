//! After the agent: its work as a commit on the branch, and the branch at the remote.
//!
//! Made on the host, from files that an agent wrote: nothing of them runs, and what a commit
//! cannot hold is reported. May be repeated.

use std::error::Error;
use std::path::Path;

use kapi_git::candidate::{Candidate, CandidatePlan};
use kapi_git::change::ChangeKind;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::layer::Layer;
use kapi_git::layer::commit::LayerPlan;
use kapi_git::own_commits::{OwnCommit, OwnCommitsPlan};
use kapi_git::publish::PublishError;
use kapi_git::push::{PushPlan, Remote};
use kapi_git::ref_name::is_held;
use kapi_git::repository::Repository;
use kapi_git::rescue::{KapiRef, RescueName};
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};
use serde::Serialize;

use super::branch::REMOTE_TIMEOUT;
use super::error::{LaunchError, LaunchErrorKind};
use super::merging;
use super::paths::SandboxPaths;
use super::prepare::{self, ReadyWorkspace};
use super::record::{BranchRecord, SandboxRecord};

/// How many names beside a branch that moved are tried.
const ASIDE_MAX: usize = 99;

/// One path of a commit or layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedPathView {
    /// The path; bytes that are no text are replaced.
    pub path: String,
    /// What happened to it: `added`, `modified`, `deleted`, `mode`, `type`, `replaced`.
    pub change: &'static str,
}

/// What a commit came to.
#[derive(Debug, Default)]
pub(crate) struct LaunchCommit {
    /// The commit, unless nothing had changed.
    pub(crate) commit: Option<CommitId>,
    pub(crate) changed: Vec<ChangedPathView>,
    pub(crate) left_out: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// The branch that was made because the named one had moved, and how that is told.
    pub(crate) landed: Option<(String, LaunchError)>,
}

/// The work in a sandbox's workspace, and where it is recorded.
#[derive(Clone, Copy)]
pub(crate) struct SandboxWork<'a> {
    /// The repository.
    pub(crate) repo: &'a RepositorySession,
    /// The workspace.
    pub(crate) ready: &'a ReadyWorkspace,
    /// The sandbox's record.
    pub(crate) record: &'a SandboxRecord,
}

/// A branch that moves forward, from one commit to another.
#[derive(Clone, Copy)]
struct BranchMove<'a> {
    branch: &'a BranchRecord,
    from: &'a CommitId,
    to: &'a CommitId,
}

impl SandboxWork<'_> {
    /// Commits the workspace and moves the branch to the commit.
    pub(crate) fn commit(
        &self,
        grants: &HostGrants,
        location: &SandboxPaths,
        message: &str,
        now_ms: i64,
    ) -> Result<LaunchCommit, LaunchError> {
        let Self { ready, record, .. } = self;
        let (Some(branch), Some(workspace)) = (&record.branch, &ready.workspace) else {
            return Ok(LaunchCommit::default());
        };
        let plan = CandidatePlan {
            name: repository_session::ref_part("commit")?,
            message: message.to_owned(),
            author: repository_session::person(&self.repo.repository, grants),
            at_unix_seconds: now_ms.div_euclid(1000),
        };
        let mut made = LaunchCommit::default();
        let own = self.own_commits(location, branch, &mut made)?;
        let candidate = self.candidate(workspace, &plan, &own, &mut made)?;
        repository_session::tell_left_out(&candidate, &mut |text| made.notes.push(text));
        made.left_out = candidate
            .refused
            .iter()
            .map(|refused| format!("{}: {}", refused.path.display(), refused.why))
            .collect();
        let (commit, changes) = match &branch.merging {
            None if candidate.changed.is_empty() => return Ok(made),
            None => (candidate.commit, candidate.changed),
            Some(merge) => {
                let resolved = merging::resolved(self.repo, record, merge, &candidate, &plan)?;
                made.notes.extend(resolved.notes);
                (resolved.commit, resolved.changed)
            }
        };
        made.changed = changes
            .iter()
            .map(|change| changed(&change.path, change_word(change.kind)))
            .collect();
        if let Some(moved) = self.publish(location, branch, workspace, &commit)? {
            let landed = self.aside(branch, &moved, &commit)?;
            // One that is held back nobody works on: where it was taken away, it is made again.
            let is_again = is_held(&branch.name) && landed.0 == branch.name;
            made.landed = (!is_again).then_some(landed);
        }
        made.commit = Some(commit);
        Ok(made)
    }

    /// Makes a commit of what a workspace holds now, without moving any branch.
    pub(crate) fn snapshot(
        &self,
        name: &str,
        now_ms: i64,
    ) -> Result<Option<Candidate>, LaunchError> {
        let Self { ready, record, .. } = self;
        let (Some(_), Some(workspace)) = (&record.branch, &ready.workspace) else {
            return Ok(None);
        };
        let plan = CandidatePlan {
            name: repository_session::ref_part(name)?,
            message: format!("kapi: what sandbox {} holds\n", record.id),
            author: repository_session::author(),
            at_unix_seconds: now_ms.div_euclid(1000),
        };
        let mut made = LaunchCommit::default();
        self.candidate(workspace, &plan, &[], &mut made).map(Some)
    }

    /// Returns the commits that the agent made by itself, where the branch gets them.
    fn own_commits(
        &self,
        location: &SandboxPaths,
        branch: &BranchRecord,
        made: &mut LaunchCommit,
    ) -> Result<Vec<OwnCommit>, LaunchError> {
        if !branch.keep_commits {
            return Ok(Vec::new());
        }
        let plan = OwnCommitsPlan {
            view: &location.git_view(),
            scratch: &location.dir().join("own-commits"),
            base: &repository_session::commit_id(&branch.start)?,
        };
        let mut tell = |text| made.notes.push(text);
        Ok(self.repo.own_commits(&plan, &mut tell))
    }

    fn candidate(
        &self,
        workspace: &GitWorkspace,
        plan: &CandidatePlan,
        own: &[OwnCommit],
        made: &mut LaunchCommit,
    ) -> Result<Candidate, LaunchError> {
        let Self { repo, ready, .. } = self;
        let Some(layer) = &ready.layer else {
            return repo
                .repository
                .commit_candidate_after(workspace, plan, own)
                .map_err(|error| LaunchError::failed(&error));
        };
        let layer_plan = LayerPlan {
            layer,
            lower: &ready.lower,
            workspace,
            candidate: plan,
            own,
        };
        let found = repo
            .repository
            .commit_layer(&layer_plan)
            .map_err(|error| LaunchError::failed(&error))?;
        for note in &found.notes {
            made.notes.push(format!(
                "Check {}: {}.",
                note.path.display(),
                about(note.about)
            ));
        }
        Ok(found.candidate)
    }

    /// Gives a commit a branch of its own beside the one that somebody moved.
    fn aside(
        &self,
        branch: &BranchRecord,
        moved: &str,
        commit: &CommitId,
    ) -> Result<(String, LaunchError), LaunchError> {
        let name = &branch.name;
        // One that was deleted is free again.
        let names = std::iter::once(name.clone())
            .chain((1..=ASIDE_MAX).map(|n| format!("{name}-kapi-{n}")));
        let landed = self.repo.repository.land_aside(names, commit);
        let landed = landed.map_err(|error| LaunchError::failed(&error))?;
        let landed = landed.ok_or_else(|| {
            LaunchError::new(
                LaunchErrorKind::Failed,
                format!("find a free name beside branch {name}"),
                format!(
                    "the commit is {commit}; make a branch of it with `git branch <name> {commit}`."
                ),
            )
        })?;
        let error = LaunchError::new(
            LaunchErrorKind::Denied,
            format!("{moved} while the agent worked; its work is on branch {landed}"),
            format!(
                "`git rebase {name} {landed}` puts it on top of {name}; `git merge {landed}` there \
                 merges it, and `--branch {landed} --merge {name}` lets an agent resolve conflicts."
            ),
        );
        Ok((landed, error))
    }

    /// Moves the branch to the commit, from where it was when the launch began and from nowhere else;
    /// where somebody moved it meanwhile, says so and leaves it.
    fn publish(
        &self,
        location: &SandboxPaths,
        branch: &BranchRecord,
        workspace: &GitWorkspace,
        to: &CommitId,
    ) -> Result<Option<String>, LaunchError> {
        let repository = &self.repo.repository;
        let moved = unless_moved(repository.publish(workspace, to))?;
        let (Some(_), Some(local)) = (&branch.stand_in, &branch.local) else {
            return Ok(moved);
        };
        let local = repository_session::commit_id(local)?;
        if local.as_str() == branch.start {
            let mut own = workspace.clone();
            own.branch.clone_from(&branch.name);
            return unless_moved(repository.publish(&own, to));
        }
        let spare;
        let layer = match &self.ready.layer {
            Some(layer) => layer,
            None => {
                spare = prepare::open_layer(location)?;
                &spare
            }
        };
        let moved = BranchMove {
            branch,
            from: &local,
            to,
        };
        let forwarded = forward(repository, layer, location, &moved);
        forwarded
            .map_err(|error| LaunchError::from(failure::plain(error.as_ref())))
            .and_then(unless_moved)
    }
}

/// Tells in words where a branch is that somebody moved or deleted; any other error is one.
fn unless_moved(published: Result<(), PublishError>) -> Result<Option<String>, LaunchError> {
    match published {
        Ok(()) => Ok(None),
        Err(PublishError::BranchMoved {
            branch,
            expected,
            actual: Some(actual),
        }) => Ok(Some(format!(
            "branch {branch} moved from {expected} to {actual}"
        ))),
        Err(PublishError::BranchMoved { branch, .. }) => {
            Ok(Some(format!("branch {branch} was deleted")))
        }
        Err(error) => Err(LaunchError::failed(&error)),
    }
}

/// Moves a branch that is behind the start of the launch, under a claim of where it was.
fn forward(
    repository: &Repository,
    layer: &Layer,
    location: &SandboxPaths,
    moved: &BranchMove<'_>,
) -> Result<Result<(), PublishError>, Box<dyn Error>> {
    let BranchMove { branch, from, to } = *moved;
    let stand_in = format!("{}-from", branch.refs);
    let plan = WorkspacePlan {
        goal: RefPart::parse(&stand_in)?,
        branch: format!("kapi/{stand_in}"),
        base: from.clone(),
        content: from.clone(),
        // No files: only the branch moves.
        path: location.dir().join("nowhere"),
    };
    let claimed = repository.claim_layer(layer, &plan)?;
    let mut mover = claimed.clone();
    mover.branch.clone_from(&branch.name);
    let published = repository.publish(&mover, to);
    let part = RefPart::parse("moved")?;
    let rescue = RescueName {
        name: &part,
        date: &part,
    };
    drop(repository.remove_branch(&plan.goal, &plan.branch, from, rescue)?);
    let prefix = format!("refs/kapi/{stand_in}/");
    let refs = repository.kapi_refs()?.into_iter();
    let refs: Vec<KapiRef> = refs
        .filter(|found| found.name.starts_with(&prefix))
        .collect();
    repository.remove_kapi_refs(&refs)?;
    Ok(published)
}

/// What a push came to.
#[derive(Debug)]
pub(crate) struct PushedTo {
    pub(crate) commit: String,
    pub(crate) pr_url: Option<String>,
}

/// Pushes the branch.
pub(crate) fn push(
    grants: &HostGrants,
    repo: &RepositorySession,
    branch: &BranchRecord,
) -> Result<PushedTo, LaunchError> {
    let plan = PushPlan {
        remote: Remote {
            name: &branch.remote,
            environment: &grants.env,
            timeout: REMOTE_TIMEOUT,
        },
        branch: &branch.name,
        remote_branch: &branch.remote_name,
    };
    let pushed = repo.repository.push(&plan).map_err(|error| {
        let line = plan.command_line(&repo.repository);
        LaunchError::new(
            LaunchErrorKind::Failed,
            failure::chain(&error),
            format!(
                "the commit is on branch {}; push it with `{line}`.",
                branch.name
            ),
        )
    })?;
    Ok(PushedTo {
        commit: pushed.commit.to_string(),
        pr_url: pushed.pull_request_url,
    })
}

pub(crate) fn changed(path: &Path, change: &'static str) -> ChangedPathView {
    ChangedPathView {
        path: path.to_string_lossy().into_owned(),
        change,
    }
}

pub(crate) const fn change_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "mode",
        ChangeKind::Type => "type",
    }
}

pub(crate) const fn about(about: kapi_git::layer::walk::WalkNoteKind) -> &'static str {
    use kapi_git::layer::walk::WalkNoteKind;
    match about {
        WalkNoteKind::SetId => "it would run with another user's rights and is merged without them",
        WalkNoteKind::AbsoluteLink => "a link to an absolute path",
        WalkNoteKind::EscapingLink => "a symbolic link that points outside the tree",
        WalkNoteKind::CaseCollision => "its name differs from another only in case",
    }
}
