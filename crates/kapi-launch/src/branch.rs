//! The branch of a launch: where it begins, what is made for it, what goes when it is over.
//!
//! A branch that exists is the person's: the work is done on a stand-in, and the branch moves
//! forward once, when there is a commit for it. Nothing here pushes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kapi_git::id::{CommitId, RefPart};
use kapi_git::layer::Layer;
use kapi_git::push::{PushStart, Remote, StartOrigin};
use kapi_git::ref_name::branch_ref;
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};
use kapi_run::goal_paths::GoalPaths;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_run::repository_session::RepositorySession;
use kapi_status::file::timestamp;

use super::error::{LaunchError, LaunchErrorKind};
use super::paths::SandboxPaths;
use super::plan::BranchPlan;
use super::record::{BranchRecord, SandboxRecord};

/// The longest one conversation with a remote may take.
pub(crate) const REMOTE_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest HEAD of a worktree that is read.
const HEAD_BYTES_MAX: u64 = 4096;
/// How many worktrees are looked at for a checked-out branch.
const WORKTREES_MAX: usize = 10_000;

/// Where a branch begins.
#[derive(Debug, Clone)]
pub(crate) struct BranchStart {
    /// The commit to start from.
    pub(crate) start: CommitId,
    /// What the branch is at here, if it exists.
    pub(crate) local: Option<CommitId>,
    /// What the branch leaves behind: a commit of an earlier launch, to be kept first.
    pub(crate) set_aside: Option<CommitId>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Whether a remote may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteQuery {
    /// It is asked, and its commits are fetched.
    Remote,
    /// Only what is known here counts.
    Nobody,
}

/// Finds where a branch begins: at the remote's state, ours, or the base.
pub(crate) fn beginning(
    repository: &Repository,
    plan: &BranchPlan,
    grants: &HostGrants,
    record: Option<&SandboxRecord>,
    ask: RemoteQuery,
) -> Result<BranchStart, LaunchError> {
    check_names(repository, plan)?;
    let base = base(repository, plan)?;
    let local = local(repository, &plan.name);
    let remote = Remote {
        name: &plan.remote,
        environment: &grants.env,
        timeout: REMOTE_TIMEOUT,
    };
    let mut notes = Vec::new();
    let mut left = None;
    let start = match ask {
        RemoteQuery::Remote => repository
            .continue_from(&remote, &plan.remote_name, &base)
            .map_err(|error| LaunchError::failed(&error))?,
        RemoteQuery::Nobody => PushStart {
            commit: local.clone().unwrap_or_else(|| base.clone()),
            origin: StartOrigin::Local,
            left_behind: None,
            unreached: None,
        },
    };
    if let Some(why) = start.unreached.as_ref().filter(|why| !is_no_remote(why)) {
        let why = why.lines().next().unwrap_or_default();
        notes.push(format!("The remote was not checked: failed to {why}."));
    }
    let there = matches!(
        start.origin,
        StartOrigin::Remote | StartOrigin::LastKnownRemote
    );
    let start = match (there.then_some(start.commit), &local) {
        (None, None) => base.clone(),
        (None, Some(local)) => local.clone(),
        (Some(there), None) => there,
        (Some(there), Some(local)) => {
            let failed = |error| LaunchError::failed(&error);
            if repository.is_ancestor(&there, local).map_err(failed)? {
                local.clone()
            } else {
                if !repository.is_ancestor(local, &there).map_err(failed)? {
                    notes.push(set_aside(plan, local, record)?);
                    left = Some(local.clone());
                }
                there
            }
        }
    };
    if local.is_some() && plan.base.is_some() && start != base {
        notes.push(format!(
            "Branch {} exists, so `--base-branch` has no effect.",
            plan.name
        ));
    }
    Ok(BranchStart {
        start,
        local,
        set_aside: left,
        notes,
    })
}

/// Leaves a branch's own commits behind only when a launch of this sandbox made all of them.
fn set_aside(
    plan: &BranchPlan,
    local: &CommitId,
    record: Option<&SandboxRecord>,
) -> Result<String, LaunchError> {
    let made = record.and_then(|record| record.branch.as_ref()?.commit.clone());
    if made.as_deref() == Some(local.as_str()) {
        return Ok(format!(
            "Branch {} at {} was rewritten, so the launch continues from there; the commit \
             {local} of the last launch is kept under refs/kapi/rescue.",
            plan.remote_name, plan.remote
        ));
    }
    Err(LaunchError::new(
        LaunchErrorKind::Denied,
        format!(
            "branch {} here and {} at {} hold different work",
            plan.name, plan.remote_name, plan.remote
        ),
        "merge the two first, or name another `--branch`.",
    ))
}

fn is_no_remote(why: &str) -> bool {
    why.starts_with("find remote")
}

fn check_names(repository: &Repository, plan: &BranchPlan) -> Result<(), LaunchError> {
    for name in [&plan.name, &plan.remote_name] {
        let is_valid = repository.is_valid_branch(name);
        if !is_valid.map_err(|error| LaunchError::failed(&error))? {
            return Err(LaunchError::new(
                LaunchErrorKind::Usage,
                format!("{name:?} is not a branch name"),
                "choose a name that `git check-ref-format --branch` accepts.",
            ));
        }
    }
    Ok(())
}

fn base(repository: &Repository, plan: &BranchPlan) -> Result<CommitId, LaunchError> {
    let revision = plan.base.as_deref().unwrap_or("HEAD");
    commit_of(
        repository,
        revision,
        &plan.remote,
        "to start the branch from",
    )
}

/// Returns the commit that a person names, also by a branch that only a remote has; `use_of_it` says in
/// an error what it is for.
pub(crate) fn commit_of(
    repository: &Repository,
    revision: &str,
    remote: &str,
    use_of_it: &str,
) -> Result<CommitId, LaunchError> {
    let there = format!("refs/remotes/{remote}/{revision}");
    let found = repository
        .resolve_commit(revision)
        .or_else(|_| repository.resolve_commit(&there));
    found.map_err(|_not_found| {
        LaunchError::new(
            LaunchErrorKind::Usage,
            format!("find commit {revision:?} {use_of_it}"),
            "give a branch, tag or commit of this repository; run `git fetch` for those of a remote.",
        )
    })
}

/// Returns the commit of a local branch, if there is one.
pub fn local(repository: &Repository, branch: &str) -> Option<CommitId> {
    repository.resolve_commit(&branch_ref(branch)).ok()
}

/// Refuses a branch that somebody works on: it would move under their files.
pub fn refuse_checked_out(
    repository: &Repository,
    branch: &str,
    own: &Path,
) -> Result<(), LaunchError> {
    let head = repository.head_branch();
    let head = head.map_err(|error| LaunchError::failed(&error))?;
    let at = if head.as_deref() == Some(branch) {
        Some(repository.top_level().display().to_string())
    } else {
        elsewhere(repository.common_dir(), branch, own)
    };
    match at {
        None => Ok(()),
        Some(at) => Err(LaunchError::new(
            LaunchErrorKind::Denied,
            format!("branch {branch} is checked out at {at}"),
            "name another `--branch`, or switch branches there.",
        )),
    }
}

/// Returns another worktree, or the main one, where a branch is checked out.
pub(crate) fn elsewhere(common_dir: &Path, branch: &str, own: &Path) -> Option<String> {
    let wanted = format!("ref: {}", branch_ref(branch));
    let is_on =
        |dir: &Path| small_text(&dir.join("HEAD")).is_some_and(|head| head.trim_end() == wanted);
    if is_on(common_dir) {
        return Some("the main worktree".to_owned());
    }
    let worktrees = fs::read_dir(common_dir.join("worktrees")).ok()?;
    for entry in worktrees.take(WORKTREES_MAX).flatten() {
        let at = small_text(&entry.path().join("gitdir")).unwrap_or_default();
        let at = at.trim_end().trim_end_matches("/.git").to_owned();
        if Path::new(&at) != own && is_on(&entry.path()) {
            return Some(at);
        }
    }
    None
}

fn small_text(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > HEAD_BYTES_MAX {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Makes what the record names, or finds it as an earlier call left it.
pub(crate) fn claim(
    repo: &RepositorySession,
    layer: Option<&Layer>,
    location: &SandboxPaths,
    record: &BranchRecord,
) -> Result<GitWorkspace, LaunchError> {
    let own_branch = record.stand_in.as_ref().unwrap_or(&record.name);
    let repository = &repo.repository;
    let Some(layer) = layer else {
        let goal_location = GoalPaths {
            project: repository.top_level().to_path_buf(),
            ref_name: record.refs.clone(),
            worktree: location.worktree(),
            runs: location.runs(),
            hidden: location.blank(),
            scratch: location.dir(),
            stores: location.stores(),
        };
        return Ok(repo.workspace(&goal_location, own_branch, &record.start, &record.start)?);
    };
    let start = repository_session::commit_id(&record.start)?;
    let plan = WorkspacePlan {
        goal: repository_session::ref_part(&record.refs)?,
        branch: own_branch.clone(),
        base: start.clone(),
        content: start,
        path: location.worktree(),
    };
    repository.claim_layer(layer, &plan).map_err(|error| {
        let failure = kapi_run::failure::plain(&error);
        LaunchError {
            hint: error.hint(),
            ..failure.into()
        }
    })
}

/// Returns the name under which something of a branch is rescued today.
pub(crate) fn rescue_parts(branch: &str, now_ms: i64) -> Result<(RefPart, RefPart), LaunchError> {
    let plain: String = branch
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(80)
        .collect();
    let plain = plain.trim_start_matches('-');
    let name = if plain.is_empty() { "branch" } else { plain };
    let date: String = timestamp(now_ms).chars().take(10).collect();
    Ok((
        repository_session::ref_part(name)?,
        repository_session::ref_part(&date)?,
    ))
}
