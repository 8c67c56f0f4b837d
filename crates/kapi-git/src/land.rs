//! Landing: a proved commit, or a range of them, goes on a branch of ours, by plumbing alone.
//!
//! No tree is checked out to merge, and no hook, filter or driver is run. What comes of it is a
//! function of the plan, so that doing it twice gives the same commit; the branch moves by compare
//! and swap. Knows nothing of tasks.

pub mod bring;
pub mod brought_in;
pub mod clashes;
mod held;
pub mod merge;
pub mod reapply;
pub mod source;
mod union;

use std::path::{Path, PathBuf};

use self::merge::MergeOutcome;
use crate::author::Author;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::id::{CommitId, RefPart, TreeId};
use crate::owned_dir::DirError;
use crate::ref_name::branch_ref;
use crate::repository::Repository;
use crate::scratch::Objects;
use crate::workspace::WorkspaceError;

/// The oldest git that merges without a working tree: major and minor version.
pub const MERGE_GIT_VERSION_MIN: (u32, u32) = (2, 38);

/// The most paths that a conflict names.
pub const CONFLICTS_MAX: usize = 200;

/// What is to land, and where.
#[derive(Debug, Clone, Copy)]
pub struct LandPlan<'a> {
    /// The owner of the branch, as it stands in `refs/kapi/<owner>/`.
    pub owner: &'a RefPart,
    /// The branch, without `refs/heads/`.
    pub branch: &'a str,
    /// Where the branch is.
    pub head: &'a CommitId,
    /// What the commit was made on.
    pub base: &'a CommitId,
    /// The commit.
    pub commit: &'a CommitId,
    /// What lands with it.
    pub carries: Carries,
    /// The message of a merged commit.
    pub message: &'a str,
    /// Author and committer of a merged commit.
    pub author: &'a Author,
    /// Its time, in seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
    /// A directory of ours for git's own files, made anew.
    pub scratch: &'a Path,
}

/// What of a history lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// The commit alone, which is one on its base. It becomes one commit on the branch: itself where
    /// the branch is at its base.
    One,
    /// Everything from the base to the commit. It becomes a merge of both: the branch's commit is its
    /// first parent, so each landing stays one step of the branch.
    Range {
        /// The most commits that it may be.
        commits_max: u32,
    },
}

/// What came of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandOutcome {
    /// The branch holds it.
    Landed {
        /// The branch's commit now.
        head: CommitId,
        /// Its tree.
        tree: TreeId,
        /// Whether it was merged with what the branch had beyond `base`.
        is_merged: bool,
    },
    /// It does not fit what the branch has beyond `base`; nothing was changed.
    Conflicted {
        /// The first of the paths, sorted.
        paths: Vec<PathBuf>,
    },
}

/// A commit that cannot land.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// The branch is not the owner's.
    #[error("move branch {branch}: {owner} did not create it")]
    NotOurs {
        /// The branch.
        branch: String,
        /// Who would own it.
        owner: RefPart,
    },
    /// Somebody moved or deleted the branch.
    #[error("move branch {branch} from {expected}: it is at {}", display(actual.as_ref()))]
    BranchMoved {
        /// The branch.
        branch: String,
        /// Where it should be.
        expected: CommitId,
        /// Where it is; `None` when it is gone.
        actual: Option<CommitId>,
    },
    /// What should land is not one commit on its base.
    #[error("land {commit}: it is not one commit on {base}")]
    NotOneCommit {
        /// The commit.
        commit: CommitId,
        /// Its base.
        base: CommitId,
    },
    /// What should land does not go on from its base.
    #[error("land {commit}: it does not descend from {base}")]
    NotOnBase {
        /// The commit.
        commit: CommitId,
        /// Its base.
        base: CommitId,
    },
    /// What should land is more than was agreed.
    #[error("land {commit}: there are more than {commits_max} commits since {base}")]
    TooManyCommits {
        /// The commit.
        commit: CommitId,
        /// Its base.
        base: CommitId,
        /// The most that may be.
        commits_max: u32,
    },
    /// The branch does not hold what the commit was made on.
    #[error("land on {head}: it does not contain {base}, on which the commit is based")]
    OtherHistory {
        /// The branch's commit.
        head: CommitId,
        /// The commit's base.
        base: CommitId,
    },
    /// What should be made again commit by commit has a merge.
    #[error(
        "apply {commit} commit by commit: {merge} is a merge, and its own changes would be lost"
    )]
    HasMerge {
        /// The commit.
        commit: CommitId,
        /// The first merge in it.
        merge: CommitId,
    },
    /// A conflict is settled without one of its paths.
    #[error("settle the conflict: there is no resolution for {}", path.display())]
    Unsettled {
        /// The path.
        path: PathBuf,
    },
    /// The installed git cannot merge without a working tree.
    #[error(
        "merge with git {}.{}: at least {}.{} is needed for that",
        found.0, found.1, needed.0, needed.1
    )]
    GitTooOld {
        /// The version.
        found: (u32, u32),
        /// The oldest that can.
        needed: (u32, u32),
    },
    /// The worktree could not be looked at or brought into step.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl LandError {
    /// Tells whether the same may succeed later, with nobody doing anything about it.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::NotOurs { .. }
            | Self::BranchMoved { .. }
            | Self::NotOneCommit { .. }
            | Self::NotOnBase { .. }
            | Self::TooManyCommits { .. }
            | Self::OtherHistory { .. }
            | Self::HasMerge { .. }
            | Self::Unsettled { .. }
            | Self::GitTooOld { .. } => false,
            Self::Workspace(_) | Self::Dir(_) | Self::Git(_) => true,
        }
    }
}

impl Repository {
    /// Puts what a plan carries on a branch of ours, see [`Carries`]. Repeating it is fine.
    pub fn land(&self, plan: &LandPlan<'_>) -> Result<LandOutcome, LandError> {
        if self.recorded_base(plan.owner)?.is_none() {
            return Err(LandError::NotOurs {
                branch: plan.branch.to_owned(),
                owner: plan.owner.clone(),
            });
        }
        self.check_carried(plan)?;
        let (target, tree) = match self.target(plan)? {
            LandTarget::Commit(commit, tree) => (commit, tree),
            LandTarget::Conflicts(paths) => return Ok(LandOutcome::Conflicted { paths }),
        };
        self.advance(plan, &target)?;
        Ok(LandOutcome::Landed {
            is_merged: target != *plan.commit && target != *plan.head,
            head: target,
            tree,
        })
    }

    /// Checks that what should land is what the plan says.
    fn check_carried(&self, plan: &LandPlan<'_>) -> Result<(), LandError> {
        let (commit, base) = (plan.commit.clone(), plan.base.clone());
        match plan.carries {
            Carries::One if self.parents(&commit)? != [base.as_str()] => {
                Err(LandError::NotOneCommit { commit, base })
            }
            Carries::Range { .. } if !self.is_ancestor(&base, &commit)? => {
                Err(LandError::NotOnBase { commit, base })
            }
            Carries::Range { commits_max }
                if self.has_more_than(&format!("{base}..{commit}"), commits_max)? =>
            {
                Err(LandError::TooManyCommits {
                    commit,
                    base,
                    commits_max,
                })
            }
            Carries::One | Carries::Range { .. } => Ok(()),
        }
    }

    /// Tells whether a range, `base..commit`, has more commits.
    pub(crate) fn has_more_than(&self, range: &str, commits_max: u32) -> Result<bool, GitError> {
        let one_more = u64::from(commits_max) + 1;
        let call = self.call("rev-list").arg(format!("--max-count={one_more}"));
        let text = call.args([range, "--"]).text()?;
        let n_commits = u64::try_from(text.lines().count()).unwrap_or(u64::MAX);
        Ok(n_commits > u64::from(commits_max))
    }

    /// Finds what the branch will be, and writes it without naming it.
    fn target(&self, plan: &LandPlan<'_>) -> Result<LandTarget, LandError> {
        if plan.carries == Carries::One && plan.head == plan.base {
            let tree = self.tree_of(plan.commit)?;
            return Ok(LandTarget::Commit(plan.commit.clone(), tree));
        }
        if self.is_ancestor(plan.commit, plan.head)? {
            let tree = self.tree_of(plan.head)?;
            return Ok(LandTarget::Commit(plan.head.clone(), tree));
        }
        if !self.is_ancestor(plan.base, plan.head)? {
            return Err(LandError::OtherHistory {
                head: plan.head.clone(),
                base: plan.base.clone(),
            });
        }
        let scratch = self.merging(plan.scratch, Objects::Shared)?;
        match scratch.merged(plan.head, plan.commit)? {
            MergeOutcome::Clean(tree) => {
                let commit = self.merged_commit(plan, &tree)?;
                Ok(LandTarget::Commit(commit, tree))
            }
            MergeOutcome::Conflicts(conflict) => Ok(LandTarget::Conflicts(conflict.path_list())),
        }
    }

    /// Moves the branch from the plan's head to `target`, unless it is there already.
    fn advance(&self, plan: &LandPlan<'_>, target: &CommitId) -> Result<(), LandError> {
        let name = branch_ref(plan.branch);
        let moved = |actual| LandError::BranchMoved {
            branch: plan.branch.to_owned(),
            expected: plan.head.clone(),
            actual,
        };
        let actual = self.ref_value(&name)?;
        if actual.as_ref() == Some(target) {
            return Ok(());
        }
        if actual.as_ref() != Some(plan.head) {
            return Err(moved(actual));
        }
        let change = format!("update {name} {target} {}", plan.head);
        let changed = self.change_refs(&[change], &[&name]);
        let actual = self.ref_value(&name)?;
        if actual.as_ref() == Some(target) {
            return Ok(());
        }
        changed?;
        Err(moved(actual))
    }

    fn merged_commit(&self, plan: &LandPlan<'_>, tree: &TreeId) -> Result<CommitId, GitError> {
        let at = utc(plan.at_unix_seconds);
        let parents: &[&CommitId] = match plan.carries {
            Carries::One => &[plan.head],
            Carries::Range { .. } => &[plan.head, plan.commit],
        };
        let commit = CommitObject {
            tree,
            parents,
            message: plan.message.as_bytes(),
            author: plan.author,
            authored: &at,
            committer: plan.author,
            committed: &at,
        };
        commit.write(self.call("commit-tree"))
    }

    /// Returns the parents of a commit, in order.
    pub(crate) fn parents(&self, commit: &CommitId) -> Result<Vec<String>, GitError> {
        let call = self.call("rev-list").args(["--parents", "-n", "1"]);
        let text = call.args([commit.as_str(), "--"]).text()?;
        Ok(text.split(' ').skip(1).map(str::to_owned).collect())
    }
}

enum LandTarget {
    Commit(CommitId, TreeId),
    Conflicts(Vec<PathBuf>),
}

fn display(commit: Option<&CommitId>) -> &str {
    commit.map_or("no commit", CommitId::as_str)
}
