//! The trees of commits, each asked of git once: a commit of a full id never has another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::Repository;
use crate::command::GitError;
use crate::id::{CommitId, TreeId};

/// The most that are remembered; the rest is asked again.
const TREES_MAX: usize = 100_000;

/// What was learned, shared by the copies of one repository.
#[derive(Debug, Clone, Default)]
pub(super) struct CommitTrees {
    known: Arc<Mutex<BTreeMap<CommitId, TreeId>>>,
}

impl CommitTrees {
    fn get(&self, commit: &CommitId) -> Option<TreeId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(commit).cloned()
    }

    fn keep(&self, commit: &CommitId, tree: &TreeId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TREES_MAX {
            let before = known.insert(commit.clone(), tree.clone());
            debug_assert!(
                before.is_none_or(|before| before == *tree),
                "a commit has one tree"
            );
        }
    }
}

impl Repository {
    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        if let Some(tree) = self.trees.get(commit) {
            return Ok(tree);
        }
        let peeled = format!("{commit}^{{tree}}");
        let text = self
            .call("rev-parse")
            .args(["--verify", "--quiet", &peeled])
            .text()?;
        let tree = TreeId::parse(&text).map_err(|_malformed| GitError::Unexpected {
            subcommand: "rev-parse".to_owned(),
        })?;
        self.trees.keep(commit, &tree);
        Ok(tree)
    }

    /// Learns the trees of commits, all at once: [`Repository::tree_of`] then knows them.
    ///
    /// What is not here is passed over; whoever needs it is told then.
    pub fn learn_trees(&self, commits: &BTreeSet<CommitId>) -> Result<(), GitError> {
        let unknown = commits
            .iter()
            .filter(|commit| self.trees.get(commit).is_none());
        let unknown: Vec<&CommitId> = unknown.take(TREES_MAX).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let asked = unknown.iter().map(|commit| format!("{commit}^{{tree}}\n"));
        let asked: String = asked.collect();
        let call = self.call("cat-file");
        let call = call.arg("--batch-check=%(objectname) %(objecttype)");
        let told = call.stdin(asked.into_bytes()).text()?;
        for (commit, line) in unknown.into_iter().zip(told.lines()) {
            let tree = line.strip_suffix(" tree");
            if let Some(tree) = tree.and_then(|tree| TreeId::parse(tree).ok()) {
                self.trees.keep(commit, &tree);
            }
        }
        Ok(())
    }
}
