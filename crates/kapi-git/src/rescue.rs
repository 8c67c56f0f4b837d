//! What a clean-up must know before it removes anything, and how work comes back afterwards.
//!
//! Removes only what is provably a goal's own, and no commit without another ref that holds it:
//! a rescue ref is written first. Decides nothing about age or wishes; those are the caller's.

pub mod batch;

mod owned;
mod unsaved;

use std::path::PathBuf;

use crate::author::Author;
use crate::candidate::CandidateError;
use crate::command::GitError;
use crate::id::{CommitId, ObjectIdError, RefPart};
use crate::owned_dir::DirError;
use crate::ref_name::{HELD_REFS, branch_ref};
use crate::repository::Repository;
use crate::workspace::{GitWorkspace, WorkspaceError};

/// Below which all refs of Kapi are.
const KAPI_REFS: &str = "refs/kapi";

/// Below which rescued commits are kept.
const RESCUE_REFS: &str = "refs/kapi/rescue";

/// How many commits may be rescued under one name and date.
const SAME_NAMES_MAX: u32 = 1000;

/// The name under which something is rescued.
#[derive(Debug, Clone, Copy)]
pub struct RescueName<'a> {
    /// What it is, such as a goal's name or a branch with dashes for slashes.
    pub name: &'a RefPart,
    /// The day, such as `2026-08-23`.
    pub date: &'a RefPart,
}

/// Who makes a commit, and when.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    /// Author and committer.
    pub author: &'a Author,
    /// Seconds since the Unix epoch, UTC.
    pub at_unix_seconds: i64,
}

/// A commit that is kept by a ref of Kapi's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescuedCommit {
    /// The commit.
    pub commit: CommitId,
    /// The full name of the ref.
    pub ref_name: String,
    /// The line that makes a branch of it again.
    pub restore_line: String,
}

/// Where the work of a commit can be found, besides the branch it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkLocation {
    /// It is part of what is checked out in the person's repository.
    pub is_in_head: bool,
    /// The local branches that hold it, without `refs/heads/`, and those that are held back.
    pub branches: Vec<String>,
    /// The remotes' branches that are known to hold it, as `origin/main`.
    pub remote_branches: Vec<String>,
    /// HEAD holds a commit with the same change, as after a squash or rebase of one commit.
    pub is_in_head_otherwise: bool,
}

impl WorkLocation {
    /// Tells whether the commit stays when the branch goes.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_in_head || !self.branches.is_empty() || !self.remote_branches.is_empty()
    }

    /// Tells whether a remote has it.
    #[must_use]
    pub fn is_pushed(&self) -> bool {
        !self.remote_branches.is_empty()
    }

    /// Tells whether its change has arrived in what the person works on.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.is_in_head || self.is_in_head_otherwise
    }
}

/// One ref of Kapi's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KapiRef {
    /// Its full name.
    pub name: String,
    /// Where it is.
    pub commit: CommitId,
    /// When its commit was made, in seconds since the Unix epoch.
    pub committed_at_unix_seconds: i64,
}

/// Something that could not be rescued, or may not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// The goal made no such thing.
    #[error("remove {what}: goal {goal} did not create it")]
    NotOurs {
        /// A branch or a path.
        what: String,
        /// The goal that was named.
        goal: RefPart,
    },
    /// The branch is in use.
    #[error("remove branch {branch}: it is checked out at {}", at.display())]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The worktree.
        at: PathBuf,
    },
    /// A person locked the worktree.
    #[error("remove the worktree {}: it is locked", path.display())]
    Locked {
        /// The worktree.
        path: PathBuf,
    },
    /// The ref is another commit than the caller saw.
    #[error("remove {name}: it is no longer at {expected}")]
    Moved {
        /// The ref.
        name: String,
        /// Where it was seen.
        expected: CommitId,
    },
    /// Too many rescues under one name.
    #[error("keep {commit}: {SAME_NAMES_MAX} commits are kept under {name}")]
    TooMany {
        /// The commit.
        commit: CommitId,
        /// The name.
        name: String,
    },
    /// Git gave something that is no name of ours.
    #[error(transparent)]
    Id(#[from] ObjectIdError),
    /// The files of a workspace could not be read.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The workspace is not in its place.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file or directory could not be read or removed.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Returns where the work of `commit` is held, leaving out the branch it is asked for.
    ///
    /// Asks no remote: what is known of them is what the last fetch or push saw.
    pub fn state(&self, commit: &CommitId, branch: &str) -> Result<WorkLocation, GitError> {
        let own = branch_ref(branch);
        let contains = format!("--contains={commit}");
        let text = self
            .call("for-each-ref")
            .args([contains.as_str(), "--format=%(refname)", "--"])
            .args(["refs/heads", "refs/remotes", HELD_REFS])
            .text()?;
        let mut state = WorkLocation::default();
        for name in text.lines().filter(|name| *name != own) {
            if let Some(name) = name.strip_prefix("refs/heads/") {
                state.branches.push(name.to_owned());
            } else if let Some(name) = name.strip_prefix("refs/remotes/") {
                state.remote_branches.push(name.to_owned());
            } else {
                state.branches.push(name.to_owned());
            }
        }
        // On the branch itself HEAD proves nothing.
        if self.head_branch()?.as_deref() != Some(branch) {
            let head = CommitId::parse(&self.call("rev-parse").args(["--verify", "HEAD"]).text()?);
            if let Ok(head) = head {
                state.is_in_head = self.is_ancestor(commit, &head)?;
                state.is_in_head_otherwise = !state.is_in_head && self.is_picked(commit, &head)?;
            }
        }
        Ok(state)
    }

    /// Keeps a commit under a rescue ref of its own.
    ///
    /// Keeping the same commit twice under one name gives the same ref.
    pub fn keep_commit(
        &self,
        plan: RescueName<'_>,
        commit: &CommitId,
    ) -> Result<RescuedCommit, RescueError> {
        let first = format!("{RESCUE_REFS}/{}-{}", plan.name, plan.date);
        for n in 1..=SAME_NAMES_MAX {
            let ref_name = if n == 1 {
                first.clone()
            } else {
                format!("{first}-{n}")
            };
            if self.holds(&ref_name, commit)? {
                let restore_line = format!("git branch {} {ref_name}", plan.name);
                return Ok(RescuedCommit {
                    commit: commit.clone(),
                    ref_name,
                    restore_line,
                });
            }
        }
        Err(RescueError::TooMany {
            commit: commit.clone(),
            name: first,
        })
    }

    /// Makes a ref that holds `commit`; tells whether it does, for there may be one by this name.
    fn holds(&self, ref_name: &str, commit: &CommitId) -> Result<bool, GitError> {
        if let Some(there) = self.ref_value(ref_name)? {
            return Ok(there == *commit);
        }
        let made = self.change_refs(&[format!("create {ref_name} {commit}")], &[]);
        match self.ref_value(ref_name)? {
            Some(there) => Ok(there == *commit),
            None => made.map(|()| false),
        }
    }

    /// Keeps the files of a workspace when they differ from `known`, as a commit on top of it.
    pub fn keep_files(
        &self,
        workspace: &GitWorkspace,
        known: &CommitId,
        name: RescueName<'_>,
        by: &Signature<'_>,
    ) -> Result<Option<RescuedCommit>, RescueError> {
        let Some(tree) = self.unsaved_tree(workspace, known)? else {
            return Ok(None);
        };
        let date = format!("@{} +0000", by.at_unix_seconds);
        let message = format!("kapi: files rescued from {}\n", workspace.branch);
        let mut call =
            self.call("commit-tree")
                .args([tree.as_str(), "-p", known.as_str(), "-F", "-"]);
        for role in ["AUTHOR", "COMMITTER"] {
            call = call
                .env(&format!("GIT_{role}_NAME"), &by.author.name)
                .env(&format!("GIT_{role}_EMAIL"), &by.author.email)
                .env(&format!("GIT_{role}_DATE"), &date);
        }
        let commit = CommitId::parse(&call.stdin(message.into_bytes()).text()?)?;
        self.keep_commit(name, &commit).map(Some)
    }

    /// Returns all refs below `refs/kapi/`, by name.
    pub fn kapi_refs(&self) -> Result<Vec<KapiRef>, RescueError> {
        let format = "--format=%(objectname) %(committerdate:unix) %(refname)";
        let text = self
            .call("for-each-ref")
            .args([format, "--", KAPI_REFS])
            .text()?;
        let unexpected = || GitError::Unexpected {
            subcommand: "for-each-ref".to_owned(),
        };
        let mut found = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let (Some(commit), Some(at), Some(name)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(unexpected().into());
            };
            found.push(KapiRef {
                name: name.to_owned(),
                commit: CommitId::parse(commit)?,
                // A ref that somebody set to something else than a commit has no such date.
                committed_at_unix_seconds: at.parse().unwrap_or_default(),
            });
        }
        Ok(found)
    }

    /// Removes refs of Kapi's that are still where the caller saw them, all or none.
    ///
    /// The commits may be lost by this; whoever calls has looked at [`Repository::state`].
    pub fn remove_kapi_refs(&self, refs: &[KapiRef]) -> Result<(), RescueError> {
        let mut changes = Vec::new();
        for KapiRef { name, commit, .. } in refs {
            let is_ours = name
                .strip_prefix(KAPI_REFS)
                .is_some_and(|rest| rest.starts_with('/'));
            if !is_ours || name.contains(char::is_whitespace) {
                let goal = RefPart::parse("none")?;
                let what = name.clone();
                return Err(RescueError::NotOurs { what, goal });
            }
            match self.ref_value(name)? {
                Some(there) if there == *commit => {
                    changes.push(format!("delete {name} {commit}"));
                }
                None => {}
                Some(_) => {
                    return Err(RescueError::Moved {
                        name: name.clone(),
                        expected: commit.clone(),
                    });
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        Ok(self.change_refs(&changes, &[])?)
    }

    /// Tells whether `head` holds a commit that makes the same change as `commit`.
    fn is_picked(&self, commit: &CommitId, head: &CommitId) -> Result<bool, GitError> {
        let parent = format!("{commit}^");
        let asked = self
            .call("cherry")
            .args([head.as_str(), commit.as_str(), parent.as_str()])
            .exit()?;
        // A commit without a parent is compared with nothing.
        Ok(asked.code == 0 && asked.stdout.starts_with(b"- "))
    }
}
