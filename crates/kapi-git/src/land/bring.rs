//! Bringing the worktree of a branch into step after the branch moved.
//!
//! Only files that are exactly those of the commit before are written over. Whatever else is there
//! is a person's, and stays.

use crate::candidate::{CandidateError, CandidatePlan};
use crate::id::CommitId;
use crate::owned_dir;
use crate::repository::Repository;
use crate::workspace::GitWorkspace;

/// What became of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutOutcome {
    /// Its files are those of the branch.
    InStep,
    /// There are changes in it that are in no commit; all of it was left as it is.
    LeftDirty,
    /// The directory is gone or is something else now.
    LeftMissing,
}

impl Repository {
    /// Gives a worktree whose files are those of `from` the files of `to`. Repeating it is fine.
    ///
    /// A call that was cut off half-way is gone on with; what the files were then is kept under
    /// `kept` first.
    pub fn bring_workspace(
        &self,
        workspace: &GitWorkspace,
        from: &CommitId,
        to: &CommitId,
        kept: &CandidatePlan,
    ) -> Result<CheckoutOutcome, CandidateError> {
        if workspace.check_in_place().is_err() {
            return Ok(CheckoutOutcome::LeftMissing);
        }
        let mark = workspace.admin_dir.join("kapi").join("bringing");
        let begun = format!("{from} {to}\n");
        let was_cut_off = std::fs::read(&mark).is_ok_and(|text| text == begun.as_bytes());
        let after = self.tree_of(to)?;
        if was_cut_off {
            self.rescue(workspace, kept, &after)?;
        } else {
            let files = self.snapshot(workspace)?.tree;
            if files != after && files != self.tree_of(from)? {
                return Ok(CheckoutOutcome::LeftDirty);
            }
        }
        owned_dir::replace(&mark, begun.as_bytes())?;
        let scratch = workspace.scratch(self)?;
        scratch.fill(to.as_str())?;
        workspace.disarm_submodules(&scratch)?;
        workspace.share_index(self, &scratch)?;
        owned_dir::wipe(&mark)?;
        Ok(CheckoutOutcome::InStep)
    }
}
