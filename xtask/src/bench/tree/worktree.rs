//! The peer's workspace: a worktree of git's own.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::make::{IDENTITY, bare_git, git, paths};
use super::{BenchRepository, Changes};

const BRANCH: &str = "bench/worktree";

/// One worktree on a branch of its own.
#[derive(Debug)]
pub(super) struct Worktree<'a> {
    tree: &'a BenchRepository,
    pub(super) path: PathBuf,
}

impl<'a> Worktree<'a> {
    /// Makes it and returns how long that took.
    pub(super) fn create(tree: &'a BenchRepository) -> anyhow::Result<(Self, Duration)> {
        let path = tree.beside.join("worktree");
        let shown = path.to_string_lossy();
        let args = ["worktree", "add", "--quiet", "-b", BRANCH, &shown, "HEAD"];
        let started = Instant::now();
        git(tree, &args)?;
        let took = started.elapsed();
        Ok((Self { tree, path }, took))
    }

    /// Changes the same files as are changed in a layer, in the same way.
    pub(super) fn change(&self, changes: &Changes) -> anyhow::Result<()> {
        let [changed, new, deleted] = paths(changes);
        for path in changed.iter().chain(&new) {
            let at = self.path.join(path);
            let opened = OpenOptions::new().create(true).append(true).open(&at);
            let mut file = opened.with_context(|| format!("open {}", at.display()))?;
            file.write_all(b"changed\n")
                .with_context(|| format!("write {}", at.display()))?;
        }
        for path in deleted {
            let at = self.path.join(path);
            fs::remove_file(&at).with_context(|| format!("remove {}", at.display()))?;
        }
        Ok(())
    }

    /// Commits everything; returns the time and the tree.
    pub(super) fn commit(&self) -> anyhow::Result<(Duration, String)> {
        let commit = [&IDENTITY[..], &["commit", "--quiet", "--message=measured"]].concat();
        let started = Instant::now();
        bare_git(&self.path, &["add", "-A"])?;
        bare_git(&self.path, &commit)?;
        let took = started.elapsed();
        let tree = bare_git(&self.path, &["rev-parse", "HEAD^{tree}"])?;
        Ok((took, tree))
    }

    /// Asks git what changed.
    pub(super) fn status(&self, n_changed: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let reported = bare_git(&self.path, &["status", "--porcelain"])?;
        let took = started.elapsed();
        let n_found = reported.lines().count();
        ensure!(n_found == n_changed, "find {n_changed} changes: {n_found}");
        Ok(took)
    }

    /// Removes it with its branch.
    pub(super) fn remove(self) -> anyhow::Result<()> {
        let shown = self.path.to_string_lossy();
        git(self.tree, &["worktree", "remove", "--force", &shown])?;
        git(self.tree, &["branch", "--quiet", "-D", BRANCH])?;
        Ok(())
    }
}
