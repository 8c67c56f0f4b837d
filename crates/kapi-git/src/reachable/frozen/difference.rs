//! One directory of a stack: what a commit changes in the files below.
//!
//! What is gone is hidden by a mark, a directory with all that was in it by one. Git writes the
//! files and notes what `stat` says of them; files that did not change are not looked at.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{INDEX, STACK_MAX};
use crate::change::{ChangeKind, PathChange};
use crate::command::GitError;
use crate::id::CommitId;
use crate::layer::beneath::DirectoryRoot;
use crate::owned_dir::{self, failed};
use crate::reachable::ReachableError;
use crate::reachable::boot::is_whole;
use crate::reachable::entry::{self, StoreEntries};
use crate::repository::Repository;
use crate::repository::index_file::IndexFile;
use crate::scratch::Scratch;

/// The most earlier bases that a commit is compared with.
const CANDIDATES_MAX: usize = 8;
/// So many changes that a whole directory is made.
const CHANGES_MAX: usize = 10_000;

/// A base that another is made of.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) name: String,
    dir: PathBuf,
    changes: Vec<PathChange>,
}

impl Repository {
    /// Finds the earlier base from which the fewest files change.
    pub(super) fn ground(
        &self,
        entries: &StoreEntries<'_>,
        settings: &str,
        commit: &CommitId,
    ) -> Result<Option<Ground>, ReachableError> {
        let mut listed = entries.list()?;
        listed.retain(|(name, _)| name.ends_with(settings) && is_whole(&entries.dir.join(name)));
        listed.sort_by_key(|(_, used_at)| std::cmp::Reverse(*used_at));
        let mut best: Option<Ground> = None;
        for (name, _) in listed.into_iter().take(CANDIDATES_MAX) {
            let Some(chain) = entries.whole_chain(&name)? else {
                continue;
            };
            // Upon a stack that is full, nothing is put; what lies at its ground is as good.
            let part = if chain.len() < STACK_MAX {
                chain.first()
            } else {
                chain.last()
            };
            let Some((name, earlier)) =
                part.and_then(|(name, _)| Some((name.clone(), entry::commit_of(name)?)))
            else {
                continue;
            };
            if !self.has_commit(&earlier)? {
                continue;
            }
            let changes = self.tree_changes(&earlier, commit.as_str())?;
            let fewest = best.as_ref().map_or(CHANGES_MAX, |best| best.changes.len());
            if changes.len() >= fewest || changes.iter().any(changes_rules) {
                continue;
            }
            best = Some(Ground {
                dir: entries.dir.join(&name),
                name,
                changes,
            });
        }
        Ok(best)
    }

    /// Fills a directory with what a commit changes, and the index with all that it holds.
    pub(super) fn add_difference(
        &self,
        scratch: &Scratch<'_>,
        files: &Path,
        commit: &CommitId,
        ground: &Ground,
    ) -> Result<(), ReachableError> {
        let (from, index) = (ground.dir.join(INDEX), scratch.index());
        fs::copy(&from, &index).map_err(failed("copy", &from))?;
        scratch.index_commit(commit)?;
        let mut written = Vec::new();
        for change in &ground.changes {
            if change.kind != ChangeKind::Deleted {
                written.extend_from_slice(change.path.as_os_str().as_bytes());
                written.push(0);
            }
        }
        if !written.is_empty() {
            let call = scratch.call("checkout-index");
            let call = call.args(["-u", "-f", "-q", "-z", "--stdin"]);
            call.stdin(written).done()?;
        }
        let index = IndexFile::read(&index, self.object_format());
        let index = index.ok_or_else(|| GitError::Unexpected {
            subcommand: "read-tree".to_owned(),
        })?;
        let mut held: Vec<&[u8]> = index.entries().map(|entry| entry.path()).collect();
        held.sort_unstable();
        let root = DirectoryRoot::open(files)?;
        for path in hidden(&held, &ground.changes) {
            let parent = path.parent().unwrap_or(Path::new(""));
            owned_dir::create(&files.join(parent))?;
            let made = root.make_whiteout(&path);
            made.map_err(failed("hide", &files.join(&path)))?;
        }
        Ok(())
    }
}

/// Tells whether a change may make git write other files in another way.
fn changes_rules(change: &PathChange) -> bool {
    change.path.file_name() == Some(OsStr::new(".gitattributes"))
}

/// Returns the paths that are to be hidden: the highest of which a commit has nothing any more.
fn hidden(held: &[&[u8]], changes: &[PathChange]) -> BTreeSet<PathBuf> {
    let is_held = |path: &Path| held.binary_search(&path.as_os_str().as_bytes()).is_ok();
    let is_directory = |path: &Path| {
        let mut prefix = path.as_os_str().as_bytes().to_vec();
        prefix.push(b'/');
        let at = held.partition_point(|held| *held < prefix.as_slice());
        held.get(at).is_some_and(|next| next.starts_with(&prefix))
    };
    let mut hidden = BTreeSet::new();
    for change in changes.iter().filter(|c| c.kind == ChangeKind::Deleted) {
        let path = change.path.as_path();
        // A file in the place of a directory, or a directory in that of a file, hides what was there.
        if is_directory(path) || path.ancestors().any(is_held) {
            continue;
        }
        let gone = path
            .ancestors()
            .take_while(|at| !at.as_os_str().is_empty() && !is_directory(at));
        hidden.extend(gone.last().map(Path::to_path_buf));
    }
    hidden
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::hidden;
    use crate::change::{ChangeKind, PathChange};

    fn check(held: &[&str], gone: &[&str]) -> String {
        let held: Vec<&[u8]> = held.iter().map(|path| path.as_bytes()).collect();
        let change = |path: &&str| PathChange {
            path: PathBuf::from(path),
            kind: ChangeKind::Deleted,
        };
        let changes: Vec<PathChange> = gone.iter().map(change).collect();
        let hidden = hidden(&held, &changes).into_iter();
        let hidden: Vec<String> = hidden.map(|path| path.display().to_string()).collect();
        hidden.join(" ")
    }

    #[test]
    fn the_highest_that_is_gone_is_hidden() {
        assert_eq!(check(&["a/x", "b"], &["a/y"]), "a/y");
        assert_eq!(check(&["b"], &["a/x", "a/y/z"]), "a");
        assert_eq!(check(&["a/x"], &["a/y/1", "a/y/2"]), "a/y");
        assert_eq!(check(&["a"], &["a/x"]), "");
        assert_eq!(check(&["a/x"], &["a"]), "");
        assert_eq!(check(&["a-b", "a.c"], &["a/x"]), "a");
    }
}
