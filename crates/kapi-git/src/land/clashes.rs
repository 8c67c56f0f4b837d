//! Which of several commits do not fit one another, foreseen by real merges of every pair.
//!
//! No worktree is made and no ref moves, and what the merges write is thrown away. A pair that
//! merges may still be wrong together, and three that fit in pairs may not fit at once: only the
//! merged tree and its checks tell.

use std::path::{Path, PathBuf};

use crate::id::CommitId;
use crate::land::LandError;
use crate::land::merge::MergeOutcome;
use crate::owned_dir;
use crate::repository::Repository;
use crate::scratch::Objects;

/// Two commits that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The place of the one among the commits.
    pub one: usize,
    /// The place of the other, which is the later.
    pub other: usize,
    /// The first of the paths where they do not, sorted.
    pub paths: Vec<PathBuf>,
}

impl Repository {
    /// Merges every pair of these commits, and returns the pairs that do not fit, in their order.
    ///
    /// `scratch` is a directory of ours for git's own files; nothing is left in it.
    ///
    /// # Errors
    /// When two have no commit in common; when git is too old or fails.
    pub fn clashes(&self, commits: &[CommitId], scratch: &Path) -> Result<Vec<Clash>, LandError> {
        let merges = self.merging(scratch, Objects::Private)?;
        let mut clashes = Vec::new();
        let locations = 0..commits.len();
        let pairs =
            locations.flat_map(|one| (one + 1..commits.len()).map(move |other| (one, other)));
        for (one, other) in pairs {
            let (Some(ours), Some(theirs)) = (commits.get(one), commits.get(other)) else {
                continue;
            };
            if let MergeOutcome::Conflicts(conflict) = merges.merged(ours, theirs)? {
                let paths = conflict.path_list();
                clashes.push(Clash { one, other, paths });
            }
        }
        owned_dir::wipe(scratch)?;
        Ok(clashes)
    }
}
