//! What a layer keeps when it is filled anew: files the agent made that git ignores.
//!
//! Build caches and dependencies cost time and are in no commit, so a reset spares them, as it
//! does in a worktree. Decides by the rules of the commit to be shown; makes no rule itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::beneath::DirectoryRoot;
use super::error::LayerCommitError;
use super::fill_plan::FillPlan;
use super::ignored::{self, IgnoreSources, Order};
use super::plan::Masks;
use super::staging::Staging;
use super::survey::{LayerEntry, LayerPathKind, LayerSurvey, LowerPath, PATH_BYTES_MAX};
use super::trees::{TreeEntry, Trees};
use crate::owned_dir::{self, failed};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};

/// Returns what of the old layer stays, a directory for all that is in it, and what of that goes.
///
/// A layer that is too large to be looked through keeps nothing.
pub(crate) fn kept(
    repository: &Repository,
    plan: &FillPlan<'_>,
    trees: &mut Trees<'_>,
) -> Result<LayerRemains, LayerCommitError> {
    let Ok(survey) = LayerSurvey::of(plan.layer, plan.lower) else {
        return Ok(LayerRemains::default());
    };
    let mut dirs = BTreeSet::from([PathBuf::new()]);
    let found = survey.iter();
    let found = found.filter(|(_, entry)| matches!(entry.what, LayerPathKind::Directory { .. }));
    dirs.extend(found.map(|(path, _)| path.to_path_buf()));
    trees.load(&dirs)?;
    let asked: Vec<PathBuf> = survey
        .iter()
        .filter(|(path, _)| !is_tracked(trees, path))
        .filter_map(|(path, entry)| question(path, entry))
        .collect();
    let mut staging = Staging::new(&plan.layer.part("staging"))?;
    let sources = IgnoreSources {
        survey: &survey,
        trees,
        masks: &Masks::new(plan.masks.iter().cloned()),
        order: Order::CommitFirst,
    };
    ignored::lay_out(&sources, &dirs, &mut staging)?;
    let dir = plan.layer.part("git");
    let scratch = Scratch::prepare(repository, &dir, staging.path(), Objects::Shared)?;
    owned_dir::wipe(&scratch.index())?;
    let ignored = ignored::ignored(&scratch, &asked)?;
    owned_dir::wipe(staging.path())?;
    Ok(LayerRemains::of(&survey, &ignored))
}

/// What stays of a layer.
#[derive(Debug, Default)]
pub(crate) struct LayerRemains {
    /// What is moved, a directory with all that is in it.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Pipes, sockets and devices in there, which are not.
    special: Vec<PathBuf>,
}

impl LayerRemains {
    fn of(survey: &LayerSurvey, ignored: &BTreeSet<PathBuf>) -> Self {
        // A directory that cannot be looked through is not kept.
        let is_closed = |entry: &LayerEntry| {
            matches!(
                entry.what,
                LayerPathKind::Unreadable | LayerPathKind::TooLong
            )
        };
        let closed = survey.iter().filter(|(_, entry)| is_closed(entry));
        let closed: BTreeSet<&Path> = closed.flat_map(|(path, _)| path.ancestors()).collect();
        let mut kept = Self::default();
        for (path, entry) in survey.iter() {
            let is_inside = path.ancestors().any(|at| kept.paths.contains(at));
            if is_inside && entry.what == LayerPathKind::Special {
                kept.special.push(path.to_path_buf());
            } else if !is_inside && ignored.contains(path) && !closed.contains(path) {
                kept.paths.insert(path.to_path_buf());
            }
        }
        kept
    }

    /// Moves one of the paths into the next layer, where its directory is.
    pub(crate) fn take_over(
        &self,
        path: &Path,
        from: &Path,
        to: &DirectoryRoot,
    ) -> Result<(), LayerCommitError> {
        let (old, new) = (from.join(path), to.path().join(path));
        if old.as_os_str().len().max(new.as_os_str().len()) > PATH_BYTES_MAX {
            return Ok(());
        }
        // Every directory on both ways was seen to be one, and nothing runs in either layer.
        fs::rename(&old, &new).map_err(failed("move", &old))?;
        for special in self.special.iter().filter(|at| at.starts_with(path)) {
            to.remove(special).map_err(failed("remove", &new))?;
        }
        Ok(())
    }
}

/// Returns what to ask git about something in a layer: a directory by a name with a slash.
fn question(path: &Path, entry: &LayerEntry) -> Option<PathBuf> {
    match entry.what {
        LayerPathKind::Directory { .. } => Some(path.join("")),
        LayerPathKind::Whiteout if entry.below == LowerPath::Directory => Some(path.join("")),
        LayerPathKind::File { .. } | LayerPathKind::Link { .. } | LayerPathKind::Whiteout => {
            Some(path.to_path_buf())
        }
        LayerPathKind::Special
        | LayerPathKind::Git
        | LayerPathKind::Unreadable
        | LayerPathKind::TooLong => None,
    }
}

/// Tells whether the commit has this, or a file in the place of a directory it is in.
fn is_tracked(trees: &Trees<'_>, path: &Path) -> bool {
    let mut above = path.ancestors().skip(1);
    trees.entry(path).is_some()
        || above.any(|at| {
            trees
                .entry(at)
                .is_some_and(|entry: &TreeEntry| !entry.is_tree())
        })
}
