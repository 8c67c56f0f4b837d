//! A branch goes to a remote, by the person's own credentials, from the host and never by force.
//!
//! Nothing a sandbox wrote is believed or run: hooks are off, and the configuration is the
//! person's, which no sandbox can write. Knows nothing of goals, forges or pull requests beyond
//! the address that a remote prints.

mod answer;
mod trial;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use kapi_core::quote::shell_word;
use kapi_sys::process::ProcessEnd;

use self::answer::{pull_request_url, tip_of, without_credentials};
use crate::command::{GitCall, GitError, GitExit};
use crate::id::CommitId;
use crate::ref_name::branch_ref;
use crate::repository::Repository;

/// A remote, and how long and as whom to talk to it.
#[derive(Debug, Clone, Copy)]
pub struct Remote<'a> {
    /// The name of a remote that the repository has (`origin`); never an address.
    pub name: &'a str,
    /// The person's environment: where their credentials and settings are found.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// The longest that one conversation with the remote may take.
    pub timeout: Duration,
}

/// The push to make.
#[derive(Debug, Clone, Copy)]
pub struct PushPlan<'a> {
    /// Where to.
    pub remote: Remote<'a>,
    /// The local branch, without `refs/heads/`.
    pub branch: &'a str,
    /// Its name over there.
    pub remote_branch: &'a str,
}

/// A push that the remote was seen to have taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushReceipt {
    /// The commit that the remote's branch is at.
    pub commit: CommitId,
    /// What the push did there.
    pub change: RemoteChange,
    /// The page for a pull request, if the remote printed its address; foreign, but only of
    /// printable characters and a web address.
    pub pull_request_url: Option<String>,
}

/// What a push did to the remote's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteChange {
    /// The branch is new there.
    Created,
    /// It moved on from this commit.
    Advanced {
        /// Where it was.
        from: CommitId,
    },
    /// It was there already; nothing was sent.
    Unchanged,
}

/// A push that did not happen, or cannot be proved.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The repository has no remote of that name.
    #[error("find remote {name:?}")]
    NoSuchRemote {
        /// The name.
        name: String,
    },
    /// Not a branch name.
    #[error("use {branch:?} as a branch name")]
    InvalidBranch {
        /// The name.
        branch: String,
    },
    /// There is no such local branch.
    #[error("find branch {branch}")]
    NoSuchBranch {
        /// The name.
        branch: String,
    },
    /// The remote's branch holds work that the local one does not; nothing was sent.
    #[error(
        "push {branch}: the remote branch is at {remote_commit}, which is not part of {commit}"
    )]
    Diverged {
        /// The name over there.
        branch: String,
        /// The local commit.
        commit: CommitId,
        /// The remote's commit.
        remote_commit: CommitId,
    },
    /// The remote refused or could not be reached.
    #[error("{doing} remote {name}: exit code {code}: {message}")]
    Remote {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The remote.
        name: String,
        /// The exit code of git.
        code: i32,
        /// What git and the remote said, without credentials; foreign text.
        message: String,
    },
    /// The remote took too long.
    #[error("{doing} remote {name}: no end after {} s", timeout.as_secs())]
    TimedOut {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The remote.
        name: String,
        /// How long it was given.
        timeout: Duration,
    },
    /// The remote said yes, and then did not have the commit.
    #[error("find {commit} at branch {branch} of the remote after the push")]
    Unverified {
        /// The name over there.
        branch: String,
        /// What was pushed.
        commit: CommitId,
        /// What is there.
        remote_commit: Option<CommitId>,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The commit that a branch goes on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushStart {
    /// The commit to start from.
    pub commit: CommitId,
    /// Which one it is.
    pub origin: StartOrigin,
    /// What the local branch holds and `commit` does not: work that was never pushed while the
    /// remote's branch went another way. Keep it before anything moves the branch.
    pub left_behind: Option<CommitId>,
    /// Why the remote could not be asked; `commit` may then be out of date.
    pub unreached: Option<String>,
}

/// Where the commit to start from was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOrigin {
    /// The remote's branch, as it is now.
    Remote,
    /// The remote's branch as it was when it was last asked.
    LastKnownRemote,
    /// The local branch, which holds all of the remote's or has no counterpart there.
    Local,
    /// There is no such branch yet.
    Base,
}

impl PushPlan<'_> {
    /// Returns the line with which a person can push by hand.
    #[must_use]
    pub fn command_line(&self, repository: &Repository) -> String {
        let refspec = format!("{}:{}", self.branch, self.remote_branch);
        let top_level = repository.top_level().to_string_lossy();
        let words = ["git", "-C", &top_level, "push", self.remote.name, &refspec];
        words.map(shell_word).join(" ")
    }
}

impl Repository {
    /// Pushes a branch and checks that the remote has it.
    ///
    /// The remote is asked first: a branch there that is not part of ours is [`PushError::Diverged`].
    /// Between that and the push the remote itself refuses whatever is no fast-forward.
    pub fn push(&self, plan: &PushPlan<'_>) -> Result<PushReceipt, PushError> {
        self.check_names(&plan.remote, &[plan.branch, plan.remote_branch])?;
        let no_such = || PushError::NoSuchBranch {
            branch: plan.branch.to_owned(),
        };
        let commit = self.ref_value(&branch_ref(plan.branch))?;
        let commit = commit.ok_or_else(no_such)?;
        let there = self.remote_tip(&plan.remote, plan.remote_branch)?;
        if there.as_ref() == Some(&commit) {
            return Ok(PushReceipt {
                commit,
                change: RemoteChange::Unchanged,
                pull_request_url: None,
            });
        }
        if let Some(tip) = &there {
            self.fetch_tip(&plan.remote, plan.remote_branch, tip)?;
            if !self.is_ancestor(tip, &commit)? {
                return Err(PushError::Diverged {
                    branch: plan.remote_branch.to_owned(),
                    commit,
                    remote_commit: tip.clone(),
                });
            }
        }
        let refspec = format!("{commit}:{}", branch_ref(plan.remote_branch));
        let call = self
            .outward_call(&plan.remote, "push")?
            .args(["--porcelain", "--no-verify", "--"])
            .args([plan.remote.name, &refspec]);
        let exit = self.converse(&plan.remote, "push to", call)?;
        let now = self.remote_tip(&plan.remote, plan.remote_branch)?;
        if now.as_ref() != Some(&commit) {
            return Err(PushError::Unverified {
                branch: plan.remote_branch.to_owned(),
                commit,
                remote_commit: now,
            });
        }
        let change = there.map_or(RemoteChange::Created, |from| RemoteChange::Advanced {
            from,
        });
        Ok(PushReceipt {
            commit,
            change,
            pull_request_url: pull_request_url(&exit.stderr),
        })
    }

    /// Finds the commit that work on `branch` goes on from: the remote's, else ours, else `base`.
    ///
    /// A remote that cannot be reached is no error but is said. No ref of the person's changes.
    pub fn continue_from(
        &self,
        remote: &Remote<'_>,
        branch: &str,
        base: &CommitId,
    ) -> Result<PushStart, PushError> {
        if !self.is_valid_branch(branch)? {
            return Err(PushError::InvalidBranch {
                branch: branch.to_owned(),
            });
        }
        let local = self.ref_value(&branch_ref(branch))?;
        let asked = self.check_names(remote, &[branch]).and_then(|()| {
            let tip = self.remote_tip(remote, branch)?;
            if let Some(tip) = &tip {
                self.fetch_tip(remote, branch, tip)?;
            }
            Ok(tip)
        });
        let (there, unreached) = match asked {
            Ok(tip) => (tip.map(|tip| (tip, StartOrigin::Remote)), None),
            Err(error @ PushError::Git(_)) => return Err(error),
            Err(error) => {
                let known = format!("refs/remotes/{}/{branch}", remote.name);
                let known = self.ref_value(&known)?;
                let known = known.map(|tip| (tip, StartOrigin::LastKnownRemote));
                (known, Some(error.to_string()))
            }
        };
        let start = |commit: &CommitId, origin, left_behind: Option<&CommitId>| PushStart {
            commit: commit.clone(),
            origin,
            left_behind: left_behind.cloned(),
            unreached,
        };
        Ok(match (&there, &local) {
            (None, None) => start(base, StartOrigin::Base, None),
            (None, Some(local)) => start(local, StartOrigin::Local, None),
            (Some((tip, origin)), None) => start(tip, *origin, None),
            (Some((tip, origin)), Some(local)) => {
                if self.is_ancestor(local, tip)? {
                    start(tip, *origin, None)
                } else if self.is_ancestor(tip, local)? {
                    start(local, StartOrigin::Local, None)
                } else {
                    start(tip, *origin, Some(local))
                }
            }
        })
    }

    /// Tells whether all of `older` is part of `newer`: it is that commit, or within its history.
    pub fn is_ancestor(&self, older: &CommitId, newer: &CommitId) -> Result<bool, GitError> {
        let call = self.call("merge-base").arg("--is-ancestor");
        call.args([older.as_str(), newer.as_str()]).holds()
    }

    /// Tells whether a commit is here.
    pub(crate) fn has_commit(&self, commit: &CommitId) -> Result<bool, GitError> {
        let peeled = format!("{commit}^{{commit}}");
        let exit = self.call("cat-file").args(["-e", &peeled]).exit()?;
        Ok(exit.code == 0)
    }

    fn check_names(&self, remote: &Remote<'_>, branches: &[&str]) -> Result<(), PushError> {
        for branch in branches {
            if !self.is_valid_branch(branch)? {
                return Err(PushError::InvalidBranch {
                    branch: (*branch).to_owned(),
                });
            }
        }
        let name = remote.name;
        // An address would go where no configuration of the person's names.
        let is_plain = !name.starts_with('-') && !name.contains(char::is_control);
        let key = format!("remote.{name}.url");
        let asked = || {
            self.remote_call(remote, "config")
                .args(["--get-all", &key])
                .exit()
        };
        if !is_plain || name.is_empty() || asked()?.code != 0 {
            return Err(PushError::NoSuchRemote {
                name: name.to_owned(),
            });
        }
        Ok(())
    }

    fn remote_tip(&self, remote: &Remote<'_>, branch: &str) -> Result<Option<CommitId>, PushError> {
        let name = branch_ref(branch);
        let call =
            self.outward_call(remote, "ls-remote")?
                .args(["--refs", "--", remote.name, &name]);
        let exit = self.converse(remote, "ask", call)?;
        Ok(tip_of(&exit.stdout, &name))
    }

    /// Brings the objects of a remote's branch here; no ref changes.
    fn fetch_tip(
        &self,
        remote: &Remote<'_>,
        branch: &str,
        tip: &CommitId,
    ) -> Result<(), PushError> {
        if self.has_commit(tip)? {
            return Ok(());
        }
        let call = self
            .outward_call(remote, "fetch")?
            .args(["--no-tags", "--no-write-fetch-head", "--refmap=", "--quiet"])
            .args(["--", remote.name, &branch_ref(branch)]);
        self.converse(remote, "fetch from", call).map(drop)
    }

    fn remote_call(&self, remote: &Remote<'_>, subcommand: &str) -> GitCall<'_> {
        // In the git directory, so that no file of a working tree is in reach.
        self.call(subcommand)
            .for_person(remote.environment)
            .deadline(remote.timeout)
    }

    /// Returns the same for a call that goes to the remote: where its address is a path, it means what
    /// it means to the person, who is in the working tree and not in the git directory.
    fn outward_call(
        &self,
        remote: &Remote<'_>,
        subcommand: &str,
    ) -> Result<GitCall<'_>, PushError> {
        let mut settings = Vec::new();
        for key in ["url", "pushurl"] {
            let key = format!("remote.{}.{key}", remote.name);
            let asked = self
                .remote_call(remote, "config")
                .args(["--get-all", &key])
                .exit()?;
            let text = String::from_utf8_lossy(&asked.stdout).into_owned();
            for address in text.lines().filter(|address| is_relative_path(address)) {
                let mut name = OsString::from("url.");
                name.push(self.top_level().join(address));
                name.push(".insteadOf");
                settings.push((name, OsString::from(address)));
            }
        }
        Ok(self.remote_call(remote, subcommand).settings(&settings))
    }

    fn converse(
        &self,
        remote: &Remote<'_>,
        doing: &'static str,
        call: GitCall<'_>,
    ) -> Result<GitExit, PushError> {
        let name = remote.name.to_owned();
        match call.exit() {
            Ok(exit) if exit.code == 0 => Ok(exit),
            Ok(exit) => Err(PushError::Remote {
                doing,
                name,
                code: exit.code,
                message: without_credentials(&exit.stderr),
            }),
            Err(GitError::Ended {
                end: ProcessEnd::DeadlinePassed,
                ..
            }) => Err(PushError::TimedOut {
                doing,
                name,
                timeout: remote.timeout,
            }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Tells whether an address is a path from where one stands, and not a host's or an absolute one.
fn is_relative_path(address: &str) -> bool {
    let before_slash = address.split('/').next().unwrap_or_default();
    !address.is_empty() && !address.starts_with('/') && !before_slash.contains(':')
}

#[cfg(test)]
mod tests {
    use super::is_relative_path;

    #[test]
    fn a_path_is_told_from_a_host() {
        for path in ["../origin.git", "origin.git", "./a:b", "a/b:c"] {
            assert!(is_relative_path(path), "{path}");
        }
        for other in [
            "/a",
            "https://a/b",
            "git@host:a/b",
            "host:a",
            "file:///a",
            "ext::x",
            "",
        ] {
            assert!(!is_relative_path(other), "{other}");
        }
    }
}
