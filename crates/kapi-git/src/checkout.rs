//! A clean copy of a commit's files, with protected paths as they are in the base.
//!
//! Leaves no trace in the repository: no worktree, no index, no object. The directory holds no
//! git data at all.

pub(crate) mod submodules;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::diff::DiffError;
use crate::id::{CommitId, TreeId};
use crate::owned_dir::{self, DirError};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};

/// Files that decide how others are written; nested ones too, because each holds for its directory.
pub(crate) const ATTRIBUTES: &str = "**/.gitattributes";

/// The files to write, and where.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutPlan<'a> {
    /// The commit whose files are wanted.
    pub commit: &'a CommitId,
    /// Where protected paths are taken from.
    pub base: &'a CommitId,
    /// The protected paths: in the result they are exactly as in the base.
    pub protect: &'a [String],
    /// The directory to fill: missing, empty, or made by an earlier checkout (and then wiped).
    pub to: &'a Path,
}

/// A checkout that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// A protected path pattern is wrong, or git failed on it.
    #[error(transparent)]
    Protect(#[from] DiffError),
    /// A checkout in which more was made than is searched for protected paths.
    #[error("look for protected paths in {}: it is too large", path.display())]
    TooManyEntries {
        /// The checkout.
        path: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repository {
    /// Fills a directory with a commit's files and returns the tree that they are.
    ///
    /// The tree is the commit's own unless a protected path had changed. Protected files have the
    /// bytes that a checkout of the base gives, whatever the commit's attributes say. Submodules have
    /// their content where the person has it checked out. Remove the directory with
    /// [`owned_dir::discard`].
    pub fn checkout(&self, plan: &CheckoutPlan<'_>) -> Result<TreeId, CheckoutError> {
        let beside = owned_dir::prepare(plan.to)?;
        let scratch = Scratch::prepare(self, &beside, plan.to, Objects::Private)?;
        if self.is_as_protected(plan)? {
            scratch.fill(plan.commit.as_str())?;
            self.fill_submodules(plan)?;
            return Ok(self.tree_of(plan.commit)?);
        }
        scratch.call("read-tree").arg(plan.commit.as_str()).done()?;
        let tampered = self.entries_matching(plan.commit, plan.protect)?;
        let original = self.entries_matching(plan.base, plan.protect)?;
        if tampered != original {
            let mut script = Vec::new();
            for entry in &tampered {
                let zeros = "0".repeat(entry.object.len());
                line(&mut script, "0", &zeros, &entry.path);
            }
            for entry in &original {
                line(&mut script, &entry.mode, &entry.object, &entry.path);
            }
            // This replaces a file that stands where the base has a directory, too.
            let call = scratch.call("update-index").args(["-z", "--index-info"]);
            call.stdin(script).done()?;
        }
        let tree = scratch.write_tree()?;
        owned_dir::wipe(&scratch.index())?;
        scratch.fill(tree.as_str())?;
        // The commit's attributes decided how all of that was written, protected files too.
        self.put_back(plan, &beside, &original)?;
        self.fill_submodules(plan)?;
        Ok(tree)
    }

    /// Tells whether a plain checkout of the commit has the protected paths as one of the base has them:
    /// neither they nor what decides how files are written differ.
    fn is_as_protected(&self, plan: &CheckoutPlan<'_>) -> Result<bool, CheckoutError> {
        if plan.protect.is_empty() || plan.base == plan.commit {
            return Ok(true);
        }
        let attributes = ATTRIBUTES.to_owned();
        let patterns = [plan.protect, &[attributes]].concat();
        let changed = self.protected_changes(plan.base, plan.commit, &patterns)?;
        Ok(changed.is_empty())
    }
}

/// Adds a line of the `update-index --index-info` language.
pub(crate) fn line(script: &mut Vec<u8>, mode: &str, object: &str, path: &Path) {
    script.extend_from_slice(format!("{mode} {object}\t").as_bytes());
    script.extend_from_slice(path.as_os_str().as_bytes());
    script.push(0);
}
