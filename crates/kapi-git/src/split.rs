//! Independent branches of what some commits on one branch changed: parts with no file in common, that
//! together are the branch.
//!
//! Renames are a file that goes and one that comes. Touches no working tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::candidate::CandidatePlan;
use crate::command::GitError;
use crate::id::{CommitId, RefPart, TreeId};
use crate::owned_dir::{self, DirError};
use crate::ref_name::branch_ref;
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};
use crate::tree_edit::TreeEdit;
use crate::workspace::goal_ref;

/// What is taken apart, and into what.
#[derive(Debug, Clone, Copy)]
pub struct SplitPlan<'a> {
    /// Whose branches they are, as in `refs/kapi/<owner>/`.
    pub owner: &'a RefPart,
    /// The commit that each part begins at.
    pub base: &'a CommitId,
    /// The commit that they are together.
    pub head: &'a CommitId,
    /// The parts.
    pub parts: &'a [PartPlan],
    /// A directory for an index.
    pub scratch: &'a Path,
}

/// One part.
#[derive(Debug, Clone)]
pub struct PartPlan {
    /// The branch to make, without `refs/heads/`.
    pub branch: String,
    /// Its commit, and the name of a ref of the owner beside the branch.
    pub commit: CandidatePlan,
    /// The commits whose paths it takes, as these are in the end.
    pub commits: Vec<CommitId>,
}

/// A branch that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartBranch {
    /// Its name.
    pub branch: String,
    /// Its commit.
    pub commit: CommitId,
}

/// Something that cannot be taken apart.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// Two parts have a path in common.
    #[error("split {head}: both {one} and {other} change {}", path.display())]
    Shared {
        /// What is taken apart.
        head: CommitId,
        /// The path.
        path: PathBuf,
        /// One branch.
        one: String,
        /// Another.
        other: String,
    },
    /// No part has a path that the whole changes.
    #[error("split {head}: no part changes {}", path.display())]
    Uncovered {
        /// What is taken apart.
        head: CommitId,
        /// The path.
        path: PathBuf,
    },
    /// Together the parts are something else.
    #[error("split {head}: together its parts are the tree {found}")]
    OtherTree {
        /// What is taken apart.
        head: CommitId,
        /// The tree that they are.
        found: TreeId,
    },
    /// A branch of this name is somebody else's.
    #[error("create branch {branch}: it exists already at {at}")]
    BranchExists {
        /// The name.
        branch: String,
        /// Where it is.
        at: CommitId,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl SplitError {
    /// Tells whether the same may succeed later, with nobody doing anything about it.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Dir(_) | Self::Git(_))
    }
}

impl Repository {
    /// Makes a branch for each part that comes to something, once it is proved that together they are
    /// the whole. Repeating it is fine.
    pub fn split(&self, plan: &SplitPlan<'_>) -> Result<Vec<PartBranch>, SplitError> {
        let paths = self.paths_of_parts(plan)?;
        owned_dir::create(plan.scratch)?;
        let scratch = Scratch::prepare(self, plan.scratch, plan.scratch, Objects::Shared)?;
        let everything: BTreeSet<PathBuf> = paths.iter().flatten().cloned().collect();
        let found = self.with_paths(&scratch, plan, &everything)?;
        if found != self.tree_of(plan.head)? {
            let head = plan.head.clone();
            return Err(SplitError::OtherTree { head, found });
        }
        let mut branches = Vec::new();
        for (part, paths) in plan.parts.iter().zip(&paths) {
            if paths.is_empty() {
                continue;
            }
            let tree = self.with_paths(&scratch, plan, paths)?;
            let commit = self.write_commit(plan.base, &part.commit, &tree)?;
            self.name_part(plan.owner, part, &commit)?;
            branches.push(PartBranch {
                branch: part.branch.clone(),
                commit,
            });
        }
        Ok(branches)
    }

    /// Returns the paths of each part that the whole changes: each in one part, and none left over.
    fn paths_of_parts(&self, plan: &SplitPlan<'_>) -> Result<Vec<BTreeSet<PathBuf>>, SplitError> {
        let whole = self.changes(plan.base, plan.head)?;
        let whole: BTreeSet<PathBuf> = whole.into_iter().map(|change| change.path).collect();
        let mut owners: BTreeMap<PathBuf, &str> = BTreeMap::new();
        let mut all = Vec::new();
        for part in plan.parts {
            let own = self.paths_of(part, &whole)?;
            let shared = own.iter().find_map(|path| Some((path, *owners.get(path)?)));
            if let Some((path, other)) = shared {
                return Err(SplitError::Shared {
                    head: plan.head.clone(),
                    path: path.clone(),
                    one: other.to_owned(),
                    other: part.branch.clone(),
                });
            }
            owners.extend(own.iter().map(|path| (path.clone(), part.branch.as_str())));
            all.push(own);
        }
        match whole.into_iter().find(|path| !owners.contains_key(path)) {
            None => Ok(all),
            Some(path) => Err(SplitError::Uncovered {
                head: plan.head.clone(),
                path,
            }),
        }
    }

    /// Returns the paths that the commits of a part change, of those that the whole changes.
    fn paths_of(
        &self,
        part: &PartPlan,
        whole: &BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let mut own = BTreeSet::new();
        for commit in &part.commits {
            let parent = self.resolve_parent(commit)?;
            let changed = self.changes(&parent, commit)?;
            let changed = changed.into_iter().map(|change| change.path);
            own.extend(changed.filter(|path| whole.contains(path)));
        }
        Ok(own)
    }

    fn resolve_parent(&self, commit: &CommitId) -> Result<CommitId, GitError> {
        let spec = format!("{commit}^");
        let text = self.call("rev-parse").args(["--verify", &spec]).text()?;
        CommitId::parse(&text).map_err(|_malformed| GitError::Unexpected {
            subcommand: "rev-parse".to_owned(),
        })
    }

    /// Returns the tree of the base with some paths as they are in the head.
    fn with_paths(
        &self,
        scratch: &Scratch<'_>,
        plan: &SplitPlan<'_>,
        paths: &BTreeSet<PathBuf>,
    ) -> Result<TreeId, GitError> {
        let entries = self.entries(plan.head.as_str(), &[])?;
        let there = entries.into_iter();
        let there = there.filter(|entry| paths.contains(&entry.path));
        let mut edits: Vec<TreeEdit> = paths.iter().cloned().map(TreeEdit::Gone).collect();
        edits.extend(there.map(TreeEdit::File));
        scratch.edited(plan.base.as_str(), &edits)
    }

    /// Makes the branch, and a ref of the owner beside it by which it is known to be Kapi's.
    fn name_part(
        &self,
        owner: &RefPart,
        part: &PartPlan,
        commit: &CommitId,
    ) -> Result<(), SplitError> {
        let branch = branch_ref(&part.branch);
        let own = format!("{}/{}", goal_ref(owner), part.commit.name);
        for name in [&own, &branch] {
            match self.ref_value(name)? {
                Some(at) if at == *commit => {}
                Some(at) => {
                    let branch = part.branch.clone();
                    return Err(SplitError::BranchExists { branch, at });
                }
                None => self.change_refs(&[format!("create {name} {commit}")], &[name])?,
            }
        }
        Ok(())
    }
}
