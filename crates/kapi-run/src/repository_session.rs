//! The repository and the goal's worktree, opened for one effect.
//!
//! Opening adopts what an earlier call made, so that it can be done again at every effect.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_git::author::Author;
use kapi_git::candidate::Candidate;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::command::Git;
use kapi_git::id::{CommitId, RefPart, TreeId};
use kapi_git::own_commits::{OwnCommit, OwnCommitsPlan};
use kapi_git::private_view::{PrivateFiles, PrivateViewPlan};
use kapi_git::reachable::{HistoryDepth, ReachablePlan, ReachableStore};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspacePlan};
use kapi_sys::cancel::Cancel;
use kapi_sys::process;

use crate::confine::GitView;
use crate::failure;
use crate::goal_paths::GoalPaths;
use crate::host_grants::HostGrants;

/// Who the candidate commits are by.
const AUTHOR_NAME: &str = "Kapi";
/// The address of that author; a name that cannot receive mail.
const AUTHOR_EMAIL: &str = "kapi@localhost";

/// Bytes of packs up to which a sandbox is lent the history of its base, and not the base alone.
const HISTORY_BYTES_MAX: u64 = 1 << 30;
/// How long another run may take to pack the same repository.
const STORE_WAIT_MS: u64 = 10 * 60 * 1000;
/// The wait between two tries to lock a repository.
const HOLD_WAIT: Duration = Duration::from_millis(20);
/// How often that is tried: ten minutes, in which a very large tree is checked out.
const HOLD_TRIES_MAX: u32 = 30_000;

/// An opened repository.
#[derive(Debug)]
pub struct RepositorySession {
    /// The repository itself.
    pub repository: Repository,
}

/// A view of git: what it shows, and to whom.
pub struct GitViewPlan<'a> {
    /// The git directory that is made.
    pub to: &'a Path,
    /// What it takes for the repository's own state.
    pub shown: &'a PrivateFiles<'a>,
    /// The commit that is checked out in it.
    pub commit: &'a CommitId,
    /// Where its files are for programs.
    pub shown_at: ShownAt<'a>,
    /// Where the objects are that sandboxes share.
    pub stores: &'a Path,
}

impl RepositorySession {
    /// Opens the project's repository.
    pub fn open(grants: &HostGrants, project: &Path, cancel: &Cancel) -> Result<Self, Failure> {
        let git = find_git(grants, cancel)?;
        let repository =
            Repository::discover(&git, project).map_err(|error| failure::plain(&error))?;
        Ok(Self { repository })
    }

    /// Makes or adopts the goal's worktree; one that has to be made holds the files of `content`.
    pub fn workspace(
        &self,
        location: &GoalPaths,
        branch: &str,
        base: &str,
        content: &str,
    ) -> Result<GitWorkspace, Failure> {
        // What an agent leaves may have a setuid bit and our user id: nobody else may come near it.
        for dir in [location.worktree.parent(), Some(location.scratch.as_path())]
            .into_iter()
            .flatten()
        {
            let mut builder = fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(dir);
            made.map_err(|error| failure::file("create", dir, &error))?;
        }
        let plan = WorkspacePlan {
            goal: ref_part(&location.ref_name)?,
            branch: branch.to_owned(),
            base: commit_id(base)?,
            content: commit_id(content)?,
            path: location.worktree.clone(),
        };
        let _held = hold(self.repository.common_dir())?;
        self.repository
            .create_workspace(&plan)
            .map_err(|error| Failure {
                hint: error.hint(),
                ..failure::plain(&error)
            })
    }

    /// Fills a directory with a commit's files, and an empty file where the view of git is mounted.
    pub fn checkout(&self, plan: &CheckoutPlan<'_>) -> Result<PathBuf, Failure> {
        self.repository
            .checkout(plan)
            .map_err(|error| failure::plain(&error))?;
        let mount_point = plan.to.join(".git");
        fs::File::create(&mount_point)
            .map_err(|error| failure::file("create", &mount_point, &error))?;
        Ok(plan.to.to_path_buf())
    }

    /// Makes or finds what a sandbox is lent of the repository: what its base reaches, and of a
    /// very large one the base alone. Other branches, stashes and lost commits are not in it.
    pub(crate) fn store(&self, stores: &Path, base: &CommitId) -> Result<ReachableStore, Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let packed = self
            .repository
            .packed_bytes()
            .map_err(|error| failed(&error))?;
        let plan = ReachablePlan {
            stores,
            base,
            history: if packed > HISTORY_BYTES_MAX {
                HistoryDepth::CommitOnly
            } else {
                HistoryDepth::Full
            },
            wait_ms: STORE_WAIT_MS,
        };
        self.repository
            .reachable_store(&plan)
            .map_err(|error| failed(&error))
    }

    /// Returns the commits that an agent made by itself, where they are to be kept; none where they
    /// cannot be taken, which is told, because its files are what counts.
    pub fn own_commits(
        &self,
        plan: &OwnCommitsPlan<'_>,
        tell: &mut dyn FnMut(String),
    ) -> Vec<OwnCommit> {
        self.repository.own_commits(plan).unwrap_or_else(|error| {
            tell(format!(
                "failed to {}; the work becomes one commit",
                failure::chain(&error)
            ));
            Vec::new()
        })
    }

    /// Makes a throw-away git directory that shows a commit, and the variables that lead to it.
    ///
    /// Inside a sandbox a file over the workspace's `.git` leads to it; without one, variables do,
    /// so that an agent that commits by itself moves no branch of the repository either way.
    pub fn git_view(
        &self,
        plan: &GitViewPlan<'_>,
    ) -> Result<(GitView, Vec<(OsString, OsString)>), Failure> {
        let GitViewPlan {
            to,
            shown,
            commit,
            shown_at,
            stores,
        } = *plan;
        let store = self.store(stores, shown.base)?;
        let object_dirs = store.object_dirs.clone();
        let (inside, objects_inside) = match shown_at {
            ShownAt::Inside => {
                let objects = (0..object_dirs.len())
                    .map(GitView::objects_inside)
                    .collect();
                (GitView::git_dir_inside(), objects)
            }
            ShownAt::Host { .. } => (to.to_path_buf(), object_dirs.clone()),
        };
        let plan = PrivateViewPlan {
            to,
            inside: &inside,
            objects_inside: &objects_inside,
            shown,
            commit,
            author: &author(),
        };
        let view = self
            .repository
            .private_view(&plan, &store)
            .map_err(|error| failure::plain(&error))?;
        let mut env = view.environment;
        if let ShownAt::Host { work_tree } = shown_at {
            env.push(("GIT_DIR".into(), view.git_dir.clone().into_os_string()));
            env.push(("GIT_WORK_TREE".into(), work_tree.as_os_str().to_owned()));
        }
        Ok((
            GitView {
                git_dir: view.git_dir,
                link: view.link,
                object_dirs,
            },
            env,
        ))
    }
}

/// Where a program sees its view of the repository.
#[derive(Debug, Clone, Copy)]
pub enum ShownAt<'a> {
    /// At the paths of a native sandbox.
    Inside,
    /// At its host paths, for this working tree.
    Host {
        /// The working tree.
        work_tree: &'a Path,
    },
}

impl<'a> ShownAt<'a> {
    /// Returns where a level shows it.
    pub const fn of(level: SandboxLevel, work_tree: &'a Path) -> Self {
        match level {
            SandboxLevel::Native | SandboxLevel::Podman => Self::Inside,
            SandboxLevel::None => Self::Host { work_tree },
        }
    }
}

/// Keeps other runs from making or listing worktrees of a repository until it is dropped: git fails
/// on the half-made worktree of another process.
///
/// The directory itself is locked, so the repository does not change.
fn hold(common_dir: &Path) -> Result<fs::File, Failure> {
    let failed = |error: &io::Error| failure::file("lock", common_dir, error);
    let directory = fs::File::open(common_dir).map_err(|error| failed(&error))?;
    for _ in 0..HOLD_TRIES_MAX {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(HOLD_WAIT),
            Err(fs::TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
    Err(Failure {
        message: format!("lock {}, held by another run", common_dir.display()),
        hint: Some("wait for the other run to create its worktree, then resume.".to_owned()),
    })
}

/// Returns whose commits a person's work is: their own, as git knows them here; Kapi's where it does
/// not.
#[must_use]
pub fn person(repository: &Repository, grants: &HostGrants) -> Author {
    repository.person(&grants.env).unwrap_or_else(author)
}

/// Tells which of the agent's own commits are not among those before a candidate, where any are not.
pub fn tell_left_out(candidate: &Candidate, tell: &mut dyn FnMut(String)) {
    match candidate.own_left_out {
        0 => {}
        1 => tell("One of the agent's own commits contains what cannot be committed; its other changes are in the next.".to_owned()),
        n => tell(format!("{n} of the agent's own commits contain what cannot be committed; their other changes are in the next ones.")),
    }
}

/// Returns the identity of Kapi's commits.
pub fn author() -> Author {
    Author {
        name: AUTHOR_NAME.to_owned(),
        email: AUTHOR_EMAIL.to_owned(),
    }
}

/// Finds git on the host.
pub fn find_git(grants: &HostGrants, cancel: &Cancel) -> Result<Git, Failure> {
    let binary =
        process::find_in_path(OsStr::new("git"), &grants.path_variable()).ok_or_else(|| {
            Failure {
                message: "find git on PATH".to_owned(),
                hint: Some("install git 2.34 or newer.".to_owned()),
            }
        })?;
    Git::open(&binary, cancel).map_err(|error| failure::plain(&error))
}

/// Reads a commit id that core carries as text.
pub fn commit_id(text: &str) -> Result<CommitId, Failure> {
    CommitId::parse(text).map_err(|error| failure::plain(&error))
}

/// Reads a tree id that core carries as text.
pub fn tree_id(text: &str) -> Result<TreeId, Failure> {
    TreeId::parse(text).map_err(|error| failure::plain(&error))
}

/// Reads a component of a ref name.
pub fn ref_part(text: &str) -> Result<RefPart, Failure> {
    RefPart::parse(text).map_err(|error| failure::plain(&error))
}
