//! What is in the person's checkout and in no commit.
//!
//! Git says it. It is spared looking at every file when comparing what the index notes of each
//! with what is there leaves few to look at, or none.

use std::path::{Path, PathBuf};
use std::thread;

use super::index_file::IndexFile;
use super::suspects::{self, STACK_BYTES, Suspects};
use super::{Dirt, Repository, path_of};
use crate::command::{GitCall, GitError};

/// The most bytes of paths that one command is given.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

/// Extensions of an index that say nothing about what its entries are.
const HARMLESS: [&[u8; 4]; 6] = [b"TREE", b"EOIE", b"IEOT", b"UNTR", b"FSMN", b"REUC"];

/// Files that were compared with an index.
#[derive(Debug)]
pub(crate) struct ComparedFiles {
    /// The tree that the index holds.
    pub(crate) tree: String,
    /// What of the files may differ from it.
    pub(crate) suspects: Suspects,
}

impl Repository {
    /// Counts what is in the person's checkout and in no commit.
    ///
    /// Reads only: the index is not refreshed, and no filter of the repository runs, so a file
    /// that a filter would change may be counted as modified.
    pub fn dirt(&self) -> Result<Dirt, GitError> {
        let suspects = match self.suspects()? {
            Some(suspects) => suspects.without_ignored(self.checkout_call("check-ignore"))?,
            None => return self.status(&[]),
        };
        let n_bytes: usize = suspects.iter().map(|path| path.as_os_str().len() + 1).sum();
        match suspects.len() {
            0 => Ok(Dirt::default()),
            _ if n_bytes > ARGUMENT_BYTES_MAX => self.status(&[]),
            _ => self.status(&suspects),
        }
    }

    /// Returns what may be dirt; nothing when all of it may be.
    fn suspects(&self) -> Result<Option<Suspects>, GitError> {
        let Some((index, staged)) = self.plain_index(&self.git_dir.join("index")) else {
            return Ok(None);
        };
        let Ok(head) = self.resolve_commit("HEAD") else {
            return Ok(None);
        };
        // Git takes as long to name the tree as it takes to look at a thousand files.
        thread::scope(|scope| {
            let find = || suspects::find(&self.top_level, &index, self.format);
            let found = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, find);
            let is_head = self.tree_of(&head)?.as_str() == staged;
            // A thread that died or never began has found nothing that can be relied on.
            let found = found.ok().and_then(|thread| thread.join().ok());
            Ok(found.flatten().filter(|_| is_head))
        })
    }

    /// Compares files with an index, which holds exactly one tree; nothing when git has to look.
    pub(crate) fn compared(&self, index: &Path, top: &Path) -> Option<ComparedFiles> {
        let (index, tree) = self.plain_index(index)?;
        let suspects = suspects::find(top, &index, self.format)?;
        Some(ComparedFiles { tree, suspects })
    }

    /// Returns an index that can be read without git, and the tree that it holds.
    fn plain_index(&self, path: &Path) -> Option<(IndexFile, String)> {
        let index = IndexFile::read(path, self.format)?;
        let is_plain = index.has_only(&HARMLESS) && index.entries().all(|entry| entry.is_whole());
        let tree = index.tree().filter(|_| is_plain)?;
        Some((index, tree))
    }

    /// Asks git about some paths, or about all.
    fn status(&self, paths: &[PathBuf]) -> Result<Dirt, GitError> {
        let listed = self
            .checkout_call("status")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args([
                "--porcelain=v1",
                "-z",
                "--no-renames",
                "--untracked-files=normal",
            ])
            .args(["--ignore-submodules=all", "--"])
            .args(paths)
            .bytes()?;
        let mut dirt = Dirt::default();
        for entry in listed.split(|&b| b == 0).filter(|entry| entry.len() > 3) {
            let (marks, path) = entry.split_at(3);
            match marks {
                b"?? " => dirt.untracked += 1,
                [x, y, _] => {
                    dirt.staged += usize::from(*x != b' ');
                    dirt.modified += usize::from(*y != b' ');
                }
                _ => continue,
            }
            if dirt.names.len() < Dirt::NAMES_MAX {
                dirt.names.push(path_of(path));
            }
        }
        Ok(dirt)
    }

    /// Returns a command that sees the person's checkout and index.
    pub(crate) fn checkout_call(&self, subcommand: &str) -> GitCall<'_> {
        self.git
            .call(&self.top_level, subcommand)
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", &self.top_level)
            .settings(&self.disarmed)
    }
}
