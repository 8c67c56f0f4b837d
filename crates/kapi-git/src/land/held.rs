//! Which commits bring nothing that a head does not have already.
//!
//! Asks git once, however many there are. Moves no ref, and leaves nothing in the repository.

use std::collections::BTreeSet;
use std::path::Path;

use super::LandError;
use crate::diff::unexpected;
use crate::id::CommitId;
use crate::repository::Repository;
use crate::scratch::Objects;

/// The oldest git that tries many merges in one go.
const MANY_GIT_VERSION_MIN: (u32, u32) = (2, 39);
/// How git says of one of many merges that it is clean.
const CLEAN: &[u8] = b"1";

impl Repository {
    /// Returns those of the commits of which `head` holds everything: a merge would change no file, as
    /// where one is part of its history, or after a squash or a rebase. `scratch` is as in a
    /// [`super::LandPlan`].
    pub fn held_by(
        &self,
        head: &CommitId,
        commits: &BTreeSet<CommitId>,
        scratch: &Path,
    ) -> Result<BTreeSet<CommitId>, LandError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let found = self.git().version()?;
        if found < MANY_GIT_VERSION_MIN {
            let needed = MANY_GIT_VERSION_MIN;
            return Err(LandError::GitTooOld { found, needed });
        }
        let tree = self.tree_of(head)?;
        let scratch = self.merging(scratch, Objects::Private)?;
        let asked: String = commits
            .iter()
            .map(|commit| format!("{head} {commit}\n"))
            .collect();
        let call = scratch.merge_tree().args([
            "--no-messages",
            "--name-only",
            "--allow-unrelated-histories",
            "--stdin",
        ]);
        let told = call.stdin(asked.into_bytes()).bytes()?;
        let merges = clean_trees(&told);
        if merges.len() != commits.len() {
            return Err(unexpected().into());
        }
        let held = commits.iter().zip(merges);
        let held = held.filter(|(_, merged)| *merged == Some(tree.as_str().as_bytes()));
        Ok(held.map(|(commit, _)| commit.clone()).collect())
    }
}

/// Reads what git says of many merges: the tree of each that is clean.
fn clean_trees(told: &[u8]) -> Vec<Option<&[u8]>> {
    let mut fields = told.split(|&b| b == 0);
    let mut trees = Vec::new();
    while let (Some(status), Some(tree)) = (fields.next(), fields.next()) {
        trees.push((status == CLEAN).then_some(tree));
        // The paths that do not fit follow, and then an empty field.
        let _n_paths = fields.by_ref().take_while(|path| !path.is_empty()).count();
    }
    trees
}

#[cfg(test)]
mod tests {
    use super::clean_trees;

    #[test]
    fn each_merge_has_its_tree_or_its_conflicts() {
        let told = b"0\0aa\0one\0two\0\x001\0bb\0\x001\0cc\0\0";
        let expected = [None, Some(b"bb".as_slice()), Some(b"cc".as_slice())];
        assert_eq!(clean_trees(told), expected);
        assert_eq!(clean_trees(b""), Vec::<Option<&[u8]>>::new());
    }
}
