//! Which commits of several ranges make the same change, told by git's own name of a change.
//!
//! The name leaves out line numbers and white space, so that a change is known again after a rebase
//! or a cherry-pick; it says nothing of two commits that do the same in other words.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::GitError;
use crate::id::CommitId;
use crate::repository::Repository;
use crate::repository::range::CommitRange;

/// A commit, with the name of what it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitChange {
    /// The commit.
    pub commit: CommitId,
    /// The change.
    pub change: String,
}

/// A change that several ranges make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameChange {
    /// The change.
    pub change: String,
    /// Who makes it, in the order of the ranges.
    pub made_by: Vec<Maker>,
}

/// A commit that makes a change, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// The place of its range among the ranges.
    pub range: usize,
    /// The commit.
    pub commit: CommitId,
}

impl Repository {
    /// Returns what the commits of a range change, the oldest first; merges and commits that change
    /// nothing are left out.
    pub fn patches(&self, range: &CommitRange) -> Result<Vec<CommitChange>, GitError> {
        let script = format!("{}\n^{}\n", range.commit, range.base);
        let order = ["--no-merges", "--topo-order", "--reverse"];
        let changes = self.changes_of(&order, script.as_bytes())?;
        let patch = |(change, commit): (String, String)| {
            let commit = CommitId::parse(&commit).map_err(|_malformed| GitError::Unexpected {
                subcommand: "patch-id".to_owned(),
            })?;
            Ok(CommitChange { commit, change })
        };
        changes.into_iter().map(patch).collect()
    }

    /// Returns the changes that more than one commit of these ranges makes. A commit that several
    /// ranges hold is one commit, and repeats nothing.
    pub fn same_changes(&self, ranges: &[CommitRange]) -> Result<Vec<SameChange>, GitError> {
        let mut by_change: BTreeMap<String, Vec<Maker>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (range, changed) in ranges.iter().enumerate() {
            let mut own = self.patches(changed)?;
            own.retain(|made| seen.insert(made.commit.clone()));
            for CommitChange { commit, change } in own {
                let makers = by_change.entry(change).or_default();
                makers.push(Maker { range, commit });
            }
        }
        let several = by_change.into_iter().filter(|(_, by)| by.len() > 1);
        let same = several.map(|(change, made_by)| SameChange { change, made_by });
        Ok(same.collect())
    }

    /// Returns those commits of `source` whose change `result` neither holds nor makes again: what a
    /// rebase or a row of cherry-picks left out or altered.
    ///
    /// # Errors
    /// When git fails.
    pub fn altered_or_lost(
        &self,
        source: &CommitRange,
        result: &CommitRange,
    ) -> Result<Vec<CommitId>, GitError> {
        let there = self.patches(result)?;
        let is_there = |patch: &CommitChange| {
            let is_same = |other: &CommitChange| other.change == patch.change;
            there.iter().any(is_same)
        };
        let own = self.patches(source)?.into_iter();
        let gone = own.filter(|patch| !is_there(patch));
        Ok(gone.map(|patch| patch.commit).collect())
    }
}
