//! Which change a person means by a commit, a branch or a range.
//!
//! Only reads. A branch is compared with where it left the line it came from, so that what happened
//! there since is no part of the change.

use crate::command::GitError;
use crate::id::CommitId;
use crate::repository::{Repository, RepositoryError};

/// The names under which the line that others come from is looked for, the surest first.
const DEFAULT_BRANCHES: &[&str] = &["refs/remotes/origin/HEAD", "main", "master", "trunk"];

/// A change between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRange {
    /// Where it begins.
    pub base: CommitId,
    /// Where it ends.
    pub commit: CommitId,
}

impl CommitRange {
    /// Returns the range that begins and ends at one commit: no change.
    #[must_use]
    pub fn at(commit: &CommitId) -> Self {
        Self {
            base: commit.clone(),
            commit: commit.clone(),
        }
    }
}

/// A change that cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum CommitRangeError {
    /// A name that is no commit.
    #[error(transparent)]
    Name(#[from] RepositoryError),
    /// A commit without one before it.
    #[error("find what {commit} is a change of: it is the first commit")]
    First {
        /// The commit.
        commit: CommitId,
    },
    /// The commit before it was not fetched.
    #[error(
        "find what {commit} is a change of: this clone is shallow and lacks the commit before it"
    )]
    Shallow {
        /// The commit.
        commit: CommitId,
    },
    /// Two commits with nothing in common.
    #[error("compare {one} with {other}: no common ancestor of theirs is here")]
    Unrelated {
        /// The one.
        one: CommitId,
        /// The other.
        other: CommitId,
        /// Whether one may not have been fetched.
        is_shallow: bool,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl CommitRangeError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::First { .. } => Some("commit the change on top of it, and prove that commit."),
            Self::Shallow { .. }
            | Self::Unrelated {
                is_shallow: true, ..
            } => Some(
                "fetch the history with `git fetch --unshallow`; in CI, check out with the whole \
                 history.",
            ),
            Self::Unrelated {
                is_shallow: false, ..
            } => Some("name the commit that it is to be compared with: `A..B`."),
            Self::Name(_) | Self::Git(_) => None,
        }
    }
}

impl Repository {
    /// Returns the change that `A..B`, `A...B`, a branch or a commit names.
    ///
    /// What is neither a range nor given a base is compared with where it left the default branch, and
    /// a commit of that branch with the one before it.
    pub fn range(&self, target: &str, base: Option<&str>) -> Result<CommitRange, CommitRangeError> {
        let split = target.split_once("...").or(target.split_once(".."));
        if let Some((from, to)) = split {
            let named =
                |name: &str| self.resolve_commit(if name.is_empty() { "HEAD" } else { name });
            let (from, commit) = (named(from)?, named(to)?);
            let base = if target.contains("...") {
                self.common(&from, &commit)?
            } else {
                from
            };
            return Ok(CommitRange { base, commit });
        }
        let commit = self.resolve_commit(target)?;
        if let Some(base) = base {
            let base = self.common(&self.resolve_commit(base)?, &commit)?;
            return Ok(CommitRange { base, commit });
        }
        let base = self.left_default_branch(&commit)?;
        Ok(CommitRange { base, commit })
    }

    /// Returns what a commit says of itself.
    pub fn message_of(&self, commit: &CommitId) -> Result<String, GitError> {
        let call = self.call("log").args(["-1", "--format=%B"]);
        call.arg(commit.as_str()).text()
    }

    /// Returns when a commit was authored, in seconds since the epoch.
    pub fn authored_at(&self, commit: &CommitId) -> Result<i64, GitError> {
        let call = self.call("log").args(["-1", "--format=%at"]);
        let said = call.arg(commit.as_str()).text()?;
        said.trim().parse().map_err(|_| GitError::Unexpected {
            subcommand: "log".to_owned(),
        })
    }

    fn left_default_branch(&self, commit: &CommitId) -> Result<CommitId, CommitRangeError> {
        for name in DEFAULT_BRANCHES {
            let Ok(tip) = self.resolve_commit(name) else {
                continue;
            };
            if let Some(common) = self.merge_base(&tip, commit)?
                && common != *commit
            {
                return Ok(common);
            }
        }
        let before = self.resolve_commit(&format!("{commit}^"));
        before.map_err(|_| {
            let commit = commit.clone();
            if self.is_shallow() {
                CommitRangeError::Shallow { commit }
            } else {
                CommitRangeError::First { commit }
            }
        })
    }

    /// Tells whether history was left out when it was cloned.
    pub(crate) fn is_shallow(&self) -> bool {
        self.common_dir().join("shallow").exists()
    }

    fn common(&self, one: &CommitId, other: &CommitId) -> Result<CommitId, CommitRangeError> {
        self.merge_base(one, other)?
            .ok_or_else(|| CommitRangeError::Unrelated {
                one: one.clone(),
                other: other.clone(),
                is_shallow: self.is_shallow(),
            })
    }

    pub(crate) fn merge_base(
        &self,
        one: &CommitId,
        other: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let call = self.call("merge-base");
        let ended = call.args([one.as_str(), other.as_str()]).exit()?;
        if ended.code != 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&ended.stdout);
        Ok(CommitId::parse(text.trim()).ok())
    }
}
