//! What is in the person's checkout and in no commit.
//!
//! Git says it. It is spared looking at every file when comparing what the index notes of each
//! with what is there leaves few to look at, or none.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;

use super::index_file::IndexFile;
use super::suspects::{self, STACK_BYTES, Suspects, UnknownName};
use super::{Dirt, Repository, path_of};
use crate::check_ignore::check_ignore;
use crate::command::{GitCall, GitError};

/// The most bytes of paths that one command is given.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

/// Extensions of an index that say nothing about what its entries are.
const HARMLESS: [&[u8; 4]; 6] = [b"TREE", b"EOIE", b"IEOT", b"UNTR", b"FSMN", b"REUC"];

impl Repository {
    /// Counts what is in the person's checkout and in no commit.
    ///
    /// Reads only: the index is not refreshed, and no filter of the repository runs, so a file
    /// that a filter would change may be counted as modified.
    pub fn dirt(&self) -> Result<Dirt, GitError> {
        let suspects = match self.suspects()? {
            Some(suspects) => self.without_ignored(suspects)?,
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
        let index = IndexFile::read(&self.git_dir.join("index"), self.format);
        let is_plain = |index: &IndexFile| {
            index.has_only(&HARMLESS) && index.entries().all(|entry| entry.is_whole())
        };
        let Some(index) = index.filter(is_plain) else {
            return Ok(None);
        };
        let (Some(staged), Ok(head)) = (index.tree(), self.resolve_commit("HEAD")) else {
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

    /// Returns the suspects less those that git ignores, and directories that hold nothing else.
    fn without_ignored(&self, suspects: Suspects) -> Result<Vec<PathBuf>, GitError> {
        let ignored = self.ignored(&suspects.unknown)?;
        let is_ignored = |unknown: &UnknownName| {
            let mut questions = unknown.questions.iter().map(|path| ignored.contains(path));
            let is_itself = questions.next() == Some(true);
            is_itself || (unknown.is_whole_directory && questions.all(|is_ignored| is_ignored))
        };
        let unknown = suspects.unknown.iter().filter(|found| !is_ignored(found));
        let mut left = suspects.changed;
        left.extend(unknown.map(|unknown| unknown.path.clone()));
        Ok(left)
    }

    fn ignored(&self, unknown: &[UnknownName]) -> Result<BTreeSet<PathBuf>, GitError> {
        let questions = unknown.iter().flat_map(|unknown| &unknown.questions);
        check_ignore(self.checkout_call("check-ignore"), questions)
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
