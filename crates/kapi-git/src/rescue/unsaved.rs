//! Whether a workspace has files that are in no commit.
//!
//! Reads the files as a candidate would, so nothing that an agent left there runs; what a commit cannot
//! hold does not count. Git is not asked where the index of the last candidate says that nothing was
//! touched since.

use super::RescueError;
use crate::id::{CommitId, TreeId};
use crate::repository::Repository;
use crate::sweep;
use crate::workspace::GitWorkspace;

impl Repository {
    /// Tells whether the files of a workspace differ from those of `known`. Makes and changes nothing,
    /// but for the caches of the workspace.
    pub fn has_unsaved(
        &self,
        workspace: &GitWorkspace,
        known: &CommitId,
    ) -> Result<bool, RescueError> {
        match self.indexed_tree(workspace)? {
            Some(tree) => Ok(tree != self.tree_of(known)?.as_str()),
            None => Ok(self.unsaved_tree(workspace, known)?.is_some()),
        }
    }

    /// Returns the tree of a workspace's files when it differs from that of `known`.
    pub(super) fn unsaved_tree(
        &self,
        workspace: &GitWorkspace,
        known: &CommitId,
    ) -> Result<Option<TreeId>, RescueError> {
        // Looked at from `known`, not from the base: mostly nothing differs, and nothing is staged.
        let at_known = GitWorkspace {
            base: known.clone(),
            ..workspace.clone()
        };
        let tree = self.snapshot(&at_known)?.tree;
        Ok((tree != self.tree_of(known)?).then_some(tree))
    }

    /// Returns the tree that the index of a workspace holds if its files are surely those, but for what
    /// git ignores; nothing when git has to look. Its objects may be gone.
    fn indexed_tree(&self, workspace: &GitWorkspace) -> Result<Option<String>, RescueError> {
        workspace.check_in_place()?;
        let Some(compared) = self.compared(&workspace.index(), &workspace.path) else {
            return Ok(None);
        };
        if compared.suspects.is_empty() {
            return Ok(Some(compared.tree));
        }
        // Git waits for ever on a pipe that it opens by name.
        let is_safe = || sweep::sweep(&workspace.path).is_empty();
        if !compared.suspects.changed.is_empty() || !is_safe() {
            return Ok(None);
        }
        let scratch = workspace.scratch(self)?;
        let left = compared
            .suspects
            .without_ignored(scratch.call("check-ignore"))?;
        Ok(left.is_empty().then_some(compared.tree))
    }
}
