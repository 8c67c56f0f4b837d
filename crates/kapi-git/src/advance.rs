//! Moving the integration branch, by compare and swap and to nothing but what goes on from it.
//!
//! The branch is the person's. One that is checked out stays where it is, unless its checkout is clean
//! and may be brought along: then index and files are switched first and the branch after them, so that
//! whatever was cut off in between is gone on with by doing it again. Knows nothing of workflows.

use std::path::{Path, PathBuf};

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};

use crate::command::GitError;
use crate::id::CommitId;
use crate::ref_name::branch_ref;
use crate::repository::{Repository, RepositoryError, path_of};

/// The most names of files that an error says.
const NAMES_MAX: usize = 10;

/// What a git directory has while an operation is not finished, and what the operation is called.
const UNFINISHED: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("index.lock", "another git command"),
];

/// Where the integration branch is to go.
#[derive(Debug, Clone, Copy)]
pub struct AdvancePlan<'a> {
    /// The branch.
    pub branch: IntegrationBranch,
    /// Where it has to be.
    pub from: &'a CommitId,
    /// Where it goes: a commit that goes on from there.
    pub to: &'a CommitId,
    /// What is done about its checkout.
    pub checkout: CheckoutRule,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// The branch is there.
    Done {
        /// The checkout that shows it.
        brought: Option<PathBuf>,
    },
    /// Somebody moved or deleted it; nothing was changed.
    Moved {
        /// Where it is; `None` when it is gone.
        found: Option<CommitId>,
    },
}

/// Why the integration branch stays where it is.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// The commit does not go on from where the branch is.
    #[error("move branch {branch} to {to}: that does not build on {from}")]
    NotOnBase {
        /// The branch.
        branch: IntegrationBranch,
        /// Where it has to be.
        from: CommitId,
        /// Where it should go.
        to: CommitId,
    },
    /// It is checked out, and the checkout may not be touched.
    #[error("move branch {branch}: it is checked out in {}", paths(checkouts))]
    CheckedOut {
        /// The branch.
        branch: IntegrationBranch,
        /// Where.
        checkouts: Vec<PathBuf>,
    },
    /// Its checkout has changes that are in no commit.
    #[error("bring {} along with branch {branch}: not committed are {}", checkout.display(), paths(names))]
    Dirty {
        /// The branch.
        branch: IntegrationBranch,
        /// The checkout.
        checkout: PathBuf,
        /// The first of the paths.
        names: Vec<PathBuf>,
    },
    /// Its checkout has files that no commit holds where the new commit has files.
    #[error("bring {} along with branch {branch}: untracked and in the way are {}", checkout.display(), paths(names))]
    InTheWay {
        /// The branch.
        branch: IntegrationBranch,
        /// The checkout.
        checkout: PathBuf,
        /// The first of the paths.
        names: Vec<PathBuf>,
    },
    /// Something is under way in its checkout.
    #[error("bring {} along with branch {branch}: {what} is not finished there", checkout.display())]
    Unfinished {
        /// The branch.
        branch: IntegrationBranch,
        /// The checkout.
        checkout: PathBuf,
        /// What.
        what: &'static str,
    },
    /// Files of the commit pass through programs of the person's, which are not run here.
    #[error("bring {} along with branch {branch}: {to} has attributes that name filters", checkout.display())]
    Filtered {
        /// The branch.
        branch: IntegrationBranch,
        /// The checkout.
        checkout: PathBuf,
        /// The commit.
        to: CommitId,
    },
    /// The checkout could not be opened.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl AdvanceError {
    /// Tells whether the same may succeed later, with nobody doing anything about it.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::NotOnBase { .. }
            | Self::CheckedOut { .. }
            | Self::Dirty { .. }
            | Self::InTheWay { .. }
            | Self::Unfinished { .. }
            | Self::Filtered { .. }
            | Self::Repository(_) => false,
            Self::Git(_) => true,
        }
    }
}

impl Repository {
    /// Moves the integration branch as planned. Repeating it is fine.
    pub fn advance_integration(&self, plan: &AdvancePlan<'_>) -> Result<Advance, AdvanceError> {
        let branch = plan.branch;
        if !self.is_ancestor(plan.from, plan.to)? {
            return Err(AdvanceError::NotOnBase {
                branch,
                from: plan.from.clone(),
                to: plan.to.clone(),
            });
        }
        let mut checkouts = self.checkouts_of(&branch_ref(branch.as_str()))?;
        checkouts.retain(|checkout| checkout.is_dir());
        let found = self.ref_value(&branch_ref(branch.as_str()))?;
        if found.as_ref() == Some(plan.to) {
            let brought = checkouts.pop();
            return Ok(Advance::Done { brought });
        }
        if found.as_ref() != Some(plan.from) {
            return Ok(Advance::Moved { found });
        }
        match (checkouts.as_slice(), plan.checkout) {
            ([], _) => self.swap(plan),
            ([only], CheckoutRule::BringClean) => self.advance_with(plan, only),
            (_, CheckoutRule::Refuse | CheckoutRule::BringClean) => {
                Err(AdvanceError::CheckedOut { branch, checkouts })
            }
        }
    }

    /// Moves the branch alone.
    fn swap(&self, plan: &AdvancePlan<'_>) -> Result<Advance, AdvanceError> {
        let name = branch_ref(plan.branch.as_str());
        let change = format!("update {name} {} {}", plan.to, plan.from);
        // Whoever holds the ref's lock is somebody else, and alive for all we know.
        let changed = self.change_refs(&[change], &[]);
        let found = self.ref_value(&name)?;
        if found.as_ref() == Some(plan.to) {
            return Ok(Advance::Done { brought: None });
        }
        if found.as_ref() == Some(plan.from) {
            changed?;
        }
        Ok(Advance::Moved { found })
    }

    /// Switches index and files of the checkout, then moves the branch.
    fn advance_with(&self, plan: &AdvancePlan<'_>, path: &Path) -> Result<Advance, AdvanceError> {
        let checkout = Self::discover(self.git(), path)?;
        let (branch, at) = (plan.branch, || path.to_path_buf());
        let is_there = |(name, _): &&(&str, &str)| checkout.git_dir().join(name).exists();
        if let Some((_, what)) = UNFINISHED.iter().find(is_there) {
            let checkout = at();
            return Err(AdvanceError::Unfinished {
                branch,
                checkout,
                what,
            });
        }
        let dirt = checkout.dirt()?;
        let was_switched = dirt.staged > 0 && checkout.is_staged(plan.to)?;
        if dirt.modified > 0 || (dirt.staged > 0 && !was_switched) {
            let (checkout, names) = (at(), first(dirt.names));
            return Err(AdvanceError::Dirty {
                branch,
                checkout,
                names,
            });
        }
        if !was_switched {
            let names = first(checkout.in_the_way(plan, path)?);
            if !names.is_empty() {
                let checkout = at();
                return Err(AdvanceError::InTheWay {
                    branch,
                    checkout,
                    names,
                });
            }
            if checkout.names_filters(plan.to)? {
                let (checkout, to) = (at(), plan.to.clone());
                return Err(AdvanceError::Filtered {
                    branch,
                    checkout,
                    to,
                });
            }
            checkout.switch(plan.from, plan.to)?;
        }
        let advanced = self.swap(plan)?;
        if let Advance::Moved { .. } = advanced {
            checkout.switch(plan.to, plan.from)?;
            return Ok(advanced);
        }
        Ok(Advance::Done {
            brought: Some(at()),
        })
    }

    /// Gives an index and files that are those of one commit those of another; git refuses where a file
    /// is something else.
    fn switch(&self, from: &CommitId, to: &CommitId) -> Result<(), GitError> {
        let refresh = self.checkout_call("update-index");
        refresh
            .args(["-q", "--refresh", "--ignore-submodules"])
            .exit()?;
        let switch = self.checkout_call("read-tree").args(["-m", "-u"]);
        switch.args([from.as_str(), to.as_str()]).done()
    }

    /// Tells whether the index holds a commit's files and nothing else.
    fn is_staged(&self, commit: &CommitId) -> Result<bool, GitError> {
        let call = self.checkout_call("diff-index");
        let call = call.args(["--cached", "--quiet", "--ignore-submodules=none"]);
        Ok(call.args([commit.as_str(), "--"]).exit()?.code == 0)
    }

    /// Returns the paths that a commit has anew and that are there already, ignored ones included.
    fn in_the_way(&self, plan: &AdvancePlan<'_>, path: &Path) -> Result<Vec<PathBuf>, GitError> {
        let call = self.call("diff-tree").args(["-r", "-z", "--name-only"]);
        let call = call.args(["--no-renames", "--diff-filter=A"]);
        let names = call.args([plan.from.as_str(), plan.to.as_str()]).bytes()?;
        let names = names.split(|&b| b == 0).filter(|name| !name.is_empty());
        let names = names.map(path_of);
        Ok(names
            .filter(|name| path.join(name).symlink_metadata().is_ok())
            .collect())
    }

    /// Tells whether a commit's attributes name filters: programs of the person's configuration, of
    /// which none is run here.
    fn names_filters(&self, commit: &CommitId) -> Result<bool, GitError> {
        let call = self.call("grep").args(["-q", "-I", "-F", "-e", "filter="]);
        let call = call.args([commit.as_str(), "--", ":(glob)**/.gitattributes"]);
        let exit = call.exit()?;
        match exit.code {
            0 => Ok(true),
            1 => Ok(false),
            code => Err(GitError::Exit {
                subcommand: "grep".to_owned(),
                code,
                stderr: exit.stderr,
            }),
        }
    }
}

fn first(mut names: Vec<PathBuf>) -> Vec<PathBuf> {
    names.truncate(NAMES_MAX);
    names
}

fn paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}
