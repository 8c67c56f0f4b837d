//! Applying one commit to another head without moving any branch: a landing that is only tried.
//!
//! The commit that comes of it is named, so that nothing takes it away before it is decided about.

use super::{LandError, LandPlan, LandTarget};
use crate::id::{CommitId, RefPart, TreeId};
use crate::repository::Repository;
use crate::workspace::goal_ref;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReapplyOutcome {
    /// A commit on the head, on no branch.
    Applied {
        /// It.
        commit: CommitId,
        /// Its tree.
        tree: TreeId,
    },
    /// It does not fit what the head has beyond its base.
    Conflicted {
        /// The first of the paths, sorted.
        paths: Vec<std::path::PathBuf>,
    },
}

impl Repository {
    /// Makes what a plan would put on its branch, names it below the owner, and moves nothing.
    ///
    /// A function of its arguments, so that doing it twice gives the same commit.
    pub fn reapply(
        &self,
        plan: &LandPlan<'_>,
        name: &RefPart,
    ) -> Result<ReapplyOutcome, LandError> {
        self.check_carried(plan)?;
        let (commit, tree) = match self.target(plan)? {
            LandTarget::Commit(commit, tree) => (commit, tree),
            LandTarget::Conflicts(paths) => return Ok(ReapplyOutcome::Conflicted { paths }),
        };
        let name = format!("{}/{name}", goal_ref(plan.owner));
        if self.ref_value(&name)?.as_ref() != Some(&commit) {
            self.change_refs(&[format!("update {name} {commit}")], &[&name])?;
        }
        Ok(ReapplyOutcome::Applied { commit, tree })
    }
}
