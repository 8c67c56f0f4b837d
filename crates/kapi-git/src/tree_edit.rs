//! A tree with some of its paths changed, made in an index of our own.
//!
//! Touches no working tree and no ref.

use std::path::{Path, PathBuf};

use crate::change::TreeFile;
use crate::changed_file::FileMode;
use crate::checkout::line;
use crate::command::GitError;
use crate::id::TreeId;
use crate::owned_dir;
use crate::scratch::Scratch;

/// What a path is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeEdit {
    /// There is nothing at this path, nor below it.
    Gone(PathBuf),
    /// There is this file.
    File(TreeFile),
}

impl Scratch<'_> {
    /// Returns a tree with some paths changed.
    pub(crate) fn edited(&self, treeish: &str, edits: &[TreeEdit]) -> Result<TreeId, GitError> {
        owned_dir::wipe(&self.index()).map_err(|_left| GitError::Unexpected {
            subcommand: "read-tree".to_owned(),
        })?;
        self.call("read-tree").arg(treeish).done()?;
        let zeros = "0".repeat(self.repository().object_format().n_digits());
        let mut script = Vec::new();
        // What goes comes first: a file may stand where a directory was, and the reverse.
        for edit in edits {
            match edit {
                TreeEdit::Gone(path) => line(&mut script, "0", &zeros, path),
                TreeEdit::File(file) => line(&mut script, "0", &zeros, &file.path),
            }
        }
        for edit in edits {
            if let TreeEdit::File(file) = edit {
                line(&mut script, &file.mode, &file.object, &file.path);
            }
        }
        let call = self.call("update-index").args(["-z", "--index-info"]);
        call.stdin(script).done()?;
        self.write_tree()
    }

    /// Writes a file's content, and returns what stands for it in a tree.
    pub(crate) fn stored(
        &self,
        path: &Path,
        mode: FileMode,
        content: &[u8],
    ) -> Result<TreeFile, GitError> {
        let call = self.call("hash-object");
        let call = call.args(["-w", "--no-filters", "--stdin"]);
        Ok(TreeFile {
            mode: mode.as_str().to_owned(),
            object: call.stdin(content.to_vec()).text()?,
            path: path.to_path_buf(),
        })
    }
}
