//! Commits of the person's own checkout as it stands, made with an index of Kapi's own.
//!
//! Nothing of the person's changes: neither HEAD nor index, stash, branch or file, nor the mode of
//! one. What git ignores is no part of it, as in a candidate.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::candidate::{
    Candidate, CandidateError, CandidatePlan, StagedFiles, WorkspaceSnapshot, check,
};
use crate::command::GitError;
use crate::id::{CommitId, RefPart};
use crate::refused_path::{RefusalReason, RefusedPath};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};
use crate::workspace::files::submodules;
use crate::workspace::goal_ref;

/// The person's checkout, as it is committed.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutInPlace<'a> {
    /// The commit that the result is made on.
    pub base: &'a CommitId,
    /// A directory of Kapi's own for the index; what is in it is a cache.
    pub index_dir: &'a Path,
}

impl Repository {
    /// Commits the files of the person's checkout on its base and names the commit below the
    /// goal's refs. The same files give the same commit.
    pub fn commit_in_place(
        &self,
        checkout: CheckoutInPlace<'_>,
        goal: &RefPart,
        plan: &CandidatePlan,
    ) -> Result<Candidate, CandidateError> {
        check(plan)?;
        let WorkspaceSnapshot { tree, refused } = self.snapshot_in_place(checkout)?;
        let commit = self.commit_for(goal, checkout.base, plan, &tree)?;
        let changed = self.tree_changes(checkout.base, tree.as_str())?;
        Ok(Candidate {
            commit,
            tree,
            changed,
            refused,
            own_left_out: 0,
        })
    }

    /// Returns the commit that work in the person's checkout begins at: the base where nothing is
    /// changed, and otherwise a commit of the changes on it, which no ref names yet.
    pub fn start_in_place(
        &self,
        checkout: CheckoutInPlace<'_>,
        plan: &CandidatePlan,
    ) -> Result<CommitId, CandidateError> {
        check(plan)?;
        let tree = self.snapshot_in_place(checkout)?.tree;
        if tree == self.tree_of(checkout.base)? {
            return Ok(checkout.base.clone());
        }
        Ok(self.write_commit(checkout.base, plan, &tree)?)
    }

    /// Returns the files of the person's checkout that are not as a commit has them.
    pub fn changed_in_place(
        &self,
        checkout: CheckoutInPlace<'_>,
        commit: &CommitId,
    ) -> Result<Vec<PathBuf>, CandidateError> {
        let tree = self.snapshot_in_place(checkout)?.tree;
        let changed = self.tree_changes(commit, tree.as_str())?;
        Ok(changed.into_iter().map(|change| change.path).collect())
    }

    /// Keeps the commit that a goal begins at by a ref of the goal's; repeating it is fine.
    pub fn hold_base(&self, goal: &RefPart, base: &CommitId) -> Result<(), GitError> {
        let name = format!("{}/base", goal_ref(goal));
        if self.ref_value(&name)?.as_ref() == Some(base) {
            return Ok(());
        }
        self.change_refs(&[format!("create {name} {base}")], &[&name])
    }

    fn snapshot_in_place(
        &self,
        checkout: CheckoutInPlace<'_>,
    ) -> Result<WorkspaceSnapshot, CandidateError> {
        let root = self.top_level();
        let scratch = Scratch::prepare(self, checkout.index_dir, root, Objects::Shared)?;
        scratch.index_commit(checkout.base)?;
        let files = StagedFiles {
            scratch: &scratch,
            root,
            base: checkout.base,
        };
        self.stage(files, self.changed_submodules(&scratch, checkout.base)?)
    }

    /// Returns the submodules that are not as the base has them: nothing in them is taken.
    fn changed_submodules(
        &self,
        scratch: &Scratch<'_>,
        base: &CommitId,
    ) -> Result<BTreeSet<RefusedPath>, CandidateError> {
        let mut refused = BTreeSet::new();
        for path in submodules(scratch)? {
            let place = self.top_level().join(&path);
            // One that is not checked out has no commit and no files.
            let inner = place.join(".git").exists();
            let inner = inner.then(|| Self::discover(self.git(), &place).ok());
            let Some(inner) = inner.flatten() else {
                continue;
            };
            let mut recorded = OsString::from(format!("{base}:"));
            recorded.push(&path);
            let call = self.call("rev-parse").args(["--verify", "--quiet"]);
            let recorded = call.arg(recorded).text()?;
            let head = inner.resolve_commit("HEAD").ok();
            let is_recorded = head.is_some_and(|head| head.as_str() == recorded.trim());
            if !is_recorded || !inner.dirt()?.is_clean() {
                refused.insert(RefusedPath {
                    path,
                    why: RefusalReason::InSubmodule,
                });
            }
        }
        Ok(refused)
    }
}
