//! Our workspace: a layer over the tree, changed in a sandbox, read and committed on the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::make::{git, paths};
use super::{BenchRepository, Changes};
use crate::bench::launcher::remove_all;
use crate::bench::sandbox::{self, Overlay};
use crate::bench::{BenchDirectory, part};

/// One instant branch.
#[derive(Debug)]
pub(super) struct LayeredBranch<'a> {
    location: &'a BenchDirectory,
    tree: &'a BenchRepository,
    name: String,
    dir: PathBuf,
}

impl<'a> LayeredBranch<'a> {
    /// Names it; nothing is made yet.
    pub(super) fn new(location: &'a BenchDirectory, tree: &'a BenchRepository, name: &str) -> Self {
        Self {
            location,
            tree,
            name: name.to_owned(),
            dir: tree.beside.join("layers").join(name),
        }
    }

    /// Makes the layer and the branch.
    pub(super) fn create(&self) -> anyhow::Result<Duration> {
        let (took, _) = self.measure(&["create", "PROJECT", "LAYER", &self.name])?;
        Ok(took)
    }

    /// Changes files in a sandbox, as an agent would.
    pub(super) fn change(&self, changes: &Changes) -> anyhow::Result<()> {
        let [changed, new, deleted] = paths(changes);
        let mut words = vec!["cd /workspace".to_owned()];
        let line = |command: &str, path: &Path| format!("{command} {}", path.display());
        words.extend(
            changed
                .iter()
                .chain(&new)
                .map(|path| line("echo changed >>", path)),
        );
        words.extend(deleted.iter().map(|path| line("rm", path)));
        self.inside(&words.join(" && "))
    }

    /// Runs a script in a sandbox with this workspace.
    pub(super) fn inside(&self, script: &str) -> anyhow::Result<()> {
        let overlay = Overlay::of(&self.tree.root, &self.dir);
        let shell = sandbox::kapi(self.location, Some(&overlay), &["/bin/sh", "-euc", script]);
        shell.read().map(drop)
    }

    /// Commits what was changed.
    pub(super) fn commit(&self, n_changed: usize) -> anyhow::Result<Duration> {
        let (took, found) = self.measure(&["commit", "PROJECT", "LAYER", &self.name])?;
        let n_found = found.split(' ').nth(1);
        ensure!(
            n_found == Some(&n_changed.to_string()),
            "commit {n_changed} changes: {found}"
        );
        Ok(took)
    }

    /// Makes the frozen base of what was committed: one commit further than the one there is.
    pub(super) fn freeze(&self) -> anyhow::Result<Duration> {
        let (took, depth) = self.measure(&["freeze", "PROJECT", "LAYER", &self.name])?;
        ensure!(depth != "1", "make a base of the difference");
        Ok(took)
    }

    /// Returns the tree that was committed.
    pub(super) fn tree(&self) -> anyhow::Result<String> {
        let commit = format!("refs/kapi/{}/turn-1^{{tree}}", self.name);
        git(self.tree, &["rev-parse", &commit])
    }

    /// Finds what was changed.
    pub(super) fn extract(&self, n_changed: usize) -> anyhow::Result<Duration> {
        let (took, found) = self.measure(&["extract", "PROJECT", "LAYER"])?;
        ensure!(
            found == n_changed.to_string(),
            "find {n_changed} changes: {found}"
        );
        Ok(took)
    }

    /// Removes layer, branch and refs.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        let refs = git(
            self.tree,
            &[
                "for-each-ref",
                "--format=%(refname)",
                &format!("refs/kapi/{}", self.name),
                &format!("refs/heads/bench/{}", self.name),
            ],
        )?;
        for name in refs.lines() {
            git(self.tree, &["update-ref", "-d", name])?;
        }
        remove_all(&self.dir)
    }

    /// Runs one part of the product and returns its time and what it found.
    fn measure(&self, words: &[&str]) -> anyhow::Result<(Duration, String)> {
        let (project, layer) = (self.tree.root.to_string_lossy(), self.dir.to_string_lossy());
        let words = words.iter().map(|&word| match word {
            "PROJECT" => &*project,
            "LAYER" => &*layer,
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let reported = part::invocation(self.location, &self.tree.beside, &words).read()?;
        let (nanoseconds, found) = reported
            .trim()
            .split_once(' ')
            .context("read what was measured")?;
        let nanoseconds = nanoseconds.parse().context("read what was measured")?;
        Ok((Duration::from_nanos(nanoseconds), found.to_owned()))
    }
}
