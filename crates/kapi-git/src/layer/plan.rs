//! What a layer does to the base, path by path, before any content is looked at.
//!
//! The rules are those of a worktree: what is tracked is what the base tracks. Decides nothing
//! about files that git may ignore; the caller asks git.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::content::{self, LayerRelation};
use super::survey::{LayerEntry, LayerPathKind, LayerSurvey, LowerPath};
use super::trees::{TreeEntry, Trees};
use crate::candidate::{is_kapi_state, link};
use crate::command::GitError;
use crate::refused_path::{FILE_BYTES_MAX, RefusalReason, RefusedPath};
use crate::repository::ObjectFormat;

/// Files and links that are taken, with what the base has there.
pub(crate) type Taken = BTreeMap<PathBuf, Option<TreeEntry>>;

/// What a layer does to the base.
#[derive(Debug, Default)]
pub(crate) struct BaseChanges {
    /// Tracked files and links that are no more.
    pub(crate) gone: BTreeSet<PathBuf>,
    /// Tracked directories with a file or link in their place.
    pub(crate) cleared: BTreeSet<PathBuf>,
    /// Files and links that may differ from the base, with what the base has there.
    pub(crate) present: BTreeMap<PathBuf, Option<TreeEntry>>,
    /// Tracked files that are as they lie below, with what the base has there.
    pub(crate) same: BTreeMap<PathBuf, Option<TreeEntry>>,
    /// New directories that are repositories of their own; nothing in them is taken.
    pub(crate) nested: BTreeSet<PathBuf>,
    /// What is not taken, whether git ignores it or not.
    pub(crate) refused: BTreeSet<RefusedPath>,
}

impl BaseChanges {
    /// Sorts out what a layer holds; reads the trees it needs.
    pub(crate) fn of(survey: &LayerSurvey, trees: &mut Trees<'_>) -> Result<Self, GitError> {
        let is_dir = |entry: &LayerEntry| matches!(entry.what, LayerPathKind::Directory { .. });
        let dirs = survey.iter().filter(|(_, entry)| is_dir(entry));
        trees.load(&dirs.map(|(path, _)| path.to_path_buf()).collect())?;
        let mut touched = Self {
            nested: nested(survey, trees),
            ..Self::default()
        };
        for (path, entry) in survey.iter() {
            match &entry.what {
                LayerPathKind::Directory { is_opaque } => {
                    touched.directory(survey, trees, path, *is_opaque)?;
                }
                LayerPathKind::Whiteout => touched.whiteout(trees, path)?,
                _ if touched.is_taken(trees, path, entry) => {
                    let is_content = matches!(
                        entry.what,
                        LayerPathKind::File { .. } | LayerPathKind::Link { .. }
                    );
                    let is_changed = is_content && !is_untouched(survey, path, entry);
                    touched.other(trees, path, entry, is_changed)?;
                }
                _ => {}
            }
        }
        Ok(touched)
    }

    /// Returns why a file or link that git does not ignore is not taken.
    pub(crate) fn obstacle(
        format: ObjectFormat,
        survey: &LayerSurvey,
        path: &Path,
        base: Option<&TreeEntry>,
    ) -> Option<RefusalReason> {
        if is_kapi_state(path) {
            return Some(RefusalReason::KapiState);
        }
        let link = base.filter(|entry| entry.is_link());
        let link = link.map(|entry| entry.object.as_str());
        match survey.what(path) {
            Some(LayerPathKind::Link { target }) => {
                link::is_refused(format, path, target, link).then_some(RefusalReason::EscapingLink)
            }
            Some(LayerPathKind::File { bytes, .. }) if *bytes > FILE_BYTES_MAX => {
                Some(RefusalReason::TooLarge)
            }
            _ => None,
        }
    }

    fn directory(
        &mut self,
        survey: &LayerSurvey,
        trees: &mut Trees<'_>,
        path: &Path,
        is_opaque: bool,
    ) -> Result<(), GitError> {
        let is_tracked_file = trees
            .entry(path)
            .is_some_and(|entry| !entry.is_tree() && !entry.is_submodule());
        if is_tracked_file {
            self.lose(path.to_path_buf());
            if self.nested.contains(path) {
                self.refuse(path, RefusalReason::NestedRepository);
            }
        }
        if is_opaque && trees.has_dir(path) {
            let below = trees.list_below(path)?.into_iter();
            let lost =
                below.filter(|(at, entry)| !entry.is_submodule() && survey.what(at).is_none());
            lost.for_each(|(at, _)| self.lose(at));
        }
        Ok(())
    }

    fn whiteout(&mut self, trees: &mut Trees<'_>, path: &Path) -> Result<(), GitError> {
        match trees.entry(path) {
            Some(entry) if entry.is_tree() => self.lose_below(trees, path)?,
            Some(entry) if !entry.is_submodule() => self.lose(path.to_path_buf()),
            // A submodule stays as the base has it; its directory may well be missing.
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Tells whether something that is no directory may be part of the work, and notes why not.
    fn is_taken(&mut self, trees: &Trees<'_>, path: &Path, entry: &LayerEntry) -> bool {
        let why = match entry.what {
            // A workspace has a repository of its own at the top, and nothing of it is read.
            LayerPathKind::Git if path.components().count() == 1 => return false,
            LayerPathKind::Git => Some(RefusalReason::GitDirectory),
            LayerPathKind::Special => Some(RefusalReason::SpecialFile),
            LayerPathKind::Unreadable => Some(RefusalReason::Unreadable),
            LayerPathKind::TooLong => Some(RefusalReason::PathTooLong),
            _ => None,
        };
        if let Some(why) = why {
            self.refuse(path, why);
        }
        let submodule = path
            .ancestors()
            .find(|at| trees.entry(at).is_some_and(TreeEntry::is_submodule));
        if let Some(submodule) = submodule {
            self.refuse(submodule, RefusalReason::InSubmodule);
        }
        submodule.is_none()
    }

    fn other(
        &mut self,
        trees: &mut Trees<'_>,
        path: &Path,
        entry: &LayerEntry,
        is_changed: bool,
    ) -> Result<(), GitError> {
        let base = trees.entry(path).cloned();
        let is_tree = base.as_ref().is_some_and(TreeEntry::is_tree);
        let hides = !matches!(
            entry.what,
            LayerPathKind::Git | LayerPathKind::Unreadable | LayerPathKind::TooLong
        );
        if is_tree && hides {
            self.lose_below(trees, path)?;
        }
        let base = base.filter(|entry| !entry.is_tree());
        match entry.what {
            LayerPathKind::Special if base.is_some() => self.lose(path.to_path_buf()),
            LayerPathKind::File { .. } | LayerPathKind::Link { .. } if is_changed => {
                self.cleared.extend(is_tree.then(|| path.to_path_buf()));
                self.present.insert(path.to_path_buf(), base);
            }
            LayerPathKind::File { .. } if base.as_ref().is_some_and(TreeEntry::is_file) => {
                self.same.insert(path.to_path_buf(), base);
            }
            _ => {}
        }
        Ok(())
    }

    fn lose_below(&mut self, trees: &mut Trees<'_>, dir: &Path) -> Result<(), GitError> {
        let below = trees.list_below(dir)?.into_iter();
        let lost = below.filter(|(_, entry)| !entry.is_submodule());
        lost.for_each(|(path, _)| self.lose(path));
        Ok(())
    }

    fn lose(&mut self, path: PathBuf) {
        if is_kapi_state(&path) {
            self.refuse(&path, RefusalReason::KapiState);
        } else {
            self.gone.insert(path);
        }
    }

    fn refuse(&mut self, path: &Path, why: RefusalReason) {
        let path = path.to_path_buf();
        self.refused.insert(RefusedPath { path, why });
    }
}

/// Tells whether the agent left what lies below as it is, as far as git can see.
fn is_untouched(survey: &LayerSurvey, path: &Path, entry: &LayerEntry) -> bool {
    match content::relation(survey, path, entry) {
        LayerRelation::Same => true,
        LayerRelation::Mode => match (&entry.what, entry.below) {
            (LayerPathKind::File { mode, .. }, LowerPath::File { mode: old, .. }) => {
                mode & 0o100 == old & 0o100
            }
            _ => false,
        },
        LayerRelation::New | LayerRelation::Content | LayerRelation::Type => false,
    }
}

/// Returns the directories that are no part of the base and are repositories, here or below.
fn nested(survey: &LayerSurvey, trees: &Trees<'_>) -> BTreeSet<PathBuf> {
    let is_new =
        |dir: &Path| !trees.has_dir(dir) && !trees.entry(dir).is_some_and(TreeEntry::is_submodule);
    let mut nested = BTreeSet::new();
    for (path, entry) in survey.iter() {
        let git = match entry.what {
            LayerPathKind::Git => path.to_path_buf(),
            // Most directories are told from a repository by one look.
            LayerPathKind::Directory { .. } if entry.below == LowerPath::Directory => {
                path.join(".git")
            }
            _ => continue,
        };
        let is_below = || matches!(survey.lower.stat(&git), Ok(Some(_)));
        if entry.what != LayerPathKind::Git && (survey.hides(path) || !is_below()) {
            continue;
        }
        let dir = git.parent().unwrap_or(Path::new("")).to_path_buf();
        if !dir.as_os_str().is_empty() && is_new(&dir) && is_repository(survey, &git) {
            nested.insert(dir);
        }
    }
    nested
}

/// Tells whether git would find a repository by this name; a file that names another counts.
fn is_repository(survey: &LayerSurvey, git: &Path) -> bool {
    let dir = git.parent().unwrap_or(Path::new(""));
    let (upper, lower) = (&survey.upper, &survey.lower);
    let shows_lower = !survey.hides(dir);
    let has = |name: &str| {
        let path = git.join(name);
        let is_below = || matches!(lower.stat(&path), Ok(Some(_)));
        matches!(upper.stat(&path), Ok(Some(_))) || (shows_lower && is_below())
    };
    let is_file = upper.file(git).is_ok() || (shows_lower && lower.file(git).is_ok());
    is_file || (has("HEAD") && has("objects") && has("refs"))
}
