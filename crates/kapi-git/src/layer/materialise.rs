//! Fills a layer, so that what an agent sees over the person's checkout is one exact commit.
//!
//! For the first start with the person's own changes kept out of sight, for going back to a
//! commit, and for going on after a crash. The layer is made beside the old one and takes its
//! place in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::beneath::{self, DirectoryRoot, is_absence};
use super::error::LayerCommitError;
use super::fill_plan::FillPlan;
use super::ignored::RULE_FILES;
use super::keep;
use super::lower::{self, LowerRoot};
use super::staging::Staging;
use super::trees::{TreeEntry, Trees};
use crate::checkout::line;
use crate::owned_dir::{self, DirError, failed};
use crate::repository::Repository;
use crate::scratch::{Objects, Scratch};

impl Repository {
    /// Fills a layer with the difference between base and content; what it held before is gone.
    ///
    /// Files that the agent made and git ignores stay, such as build caches, unless something of
    /// the content takes their place or a mask hides their directory. A crash leaves the old layer
    /// or the new one, perhaps without some of those files.
    pub fn fill_layer(&self, plan: &FillPlan<'_>) -> Result<(), LayerCommitError> {
        let fresh = plan.layer.fresh();
        let staged = Staging::new(&plan.layer.part("staging"))?;
        let mut trees = Trees::new(self, plan.content, RULE_FILES);
        let wanted = self.wanted(plan, &mut trees)?;
        self.check_out(plan, &wanted, &mut trees, &staged)?;
        owned_dir::wipe(&fresh)?;
        owned_dir::create(&fresh)?;
        let fill = Fill {
            upper: DirectoryRoot::open(&fresh)?,
            lower: LowerRoot::open(plan.lower)?,
            staged: &staged,
        };
        for (path, entry) in &wanted {
            if entry.is_some() {
                fill.location(path)?;
            }
        }
        let hidden = wanted.iter().filter(|(_, entry)| entry.is_none());
        fill.hide(hidden.map(|(path, _)| path.as_path()), &trees)?;
        fill.adopt_mode(Path::new(""))?;
        let kept = keep::kept(self, plan, &mut trees)?;
        for path in &kept.paths {
            if !fill.is_in_the_way(path)? {
                fill.make_way(path)?;
                kept.take_over(path, &plan.layer.upper(), &fill.upper)?;
            }
        }
        let (upper, old) = (plan.layer.upper(), plan.layer.part("old"));
        owned_dir::wipe(&old)?;
        fs::rename(&upper, &old).map_err(failed("move", &upper))?;
        fs::rename(&fresh, &upper).map_err(failed("move", &fresh))?;
        owned_dir::wipe(&old)?;
        owned_dir::wipe(staged.path())?;
        Ok(())
    }

    /// Returns the paths that cannot be seen as they lie below, with what `content` has there.
    fn wanted(
        &self,
        plan: &FillPlan<'_>,
        trees: &mut Trees<'_>,
    ) -> Result<BTreeMap<PathBuf, Option<TreeEntry>>, LayerCommitError> {
        let changes = self.tree_changes(plan.base, plan.content.as_str())?;
        let changed = changes.into_iter().map(|change| change.path);
        // Names as git gives them may end in a slash.
        let masks = plan.masks.iter().map(|path| path.components().collect());
        let paths: BTreeSet<PathBuf> = changed.chain(masks).collect();
        let dirs = paths.iter().filter_map(|path| path.parent());
        trees.load(&dirs.map(Path::to_path_buf).collect())?;
        let mut wanted = BTreeMap::new();
        for path in paths {
            match trees.entry(&path).cloned() {
                Some(entry) if entry.is_submodule() => {}
                Some(entry) if entry.is_tree() => {
                    // A file took the place of this directory in the checkout.
                    let below = trees.list_below(&path)?.into_iter();
                    let files = below.filter(|(_, entry)| !entry.is_submodule());
                    wanted.extend(files.map(|(path, entry)| (path, Some(entry))));
                }
                entry => drop(wanted.insert(path, entry)),
            }
        }
        Ok(wanted)
    }

    /// Lets git write the files as it would in a checkout of the whole commit.
    fn check_out(
        &self,
        plan: &FillPlan<'_>,
        wanted: &BTreeMap<PathBuf, Option<TreeEntry>>,
        trees: &mut Trees<'_>,
        staged: &Staging,
    ) -> Result<(), LayerCommitError> {
        let dir = plan.layer.part("git");
        let scratch = Scratch::prepare(self, &dir, staged.path(), Objects::Shared)?;
        owned_dir::wipe(&scratch.index())?;
        let mut script = Vec::new();
        let mut dirs = BTreeSet::new();
        for (path, entry) in wanted {
            if let Some(entry) = entry {
                line(&mut script, &entry.mode, &entry.object, path);
                dirs.extend(path.ancestors().skip(1).map(Path::to_path_buf));
            }
        }
        if script.is_empty() {
            return Ok(());
        }
        trees.load(&dirs)?;
        for path in dirs.iter().map(|dir| dir.join(".gitattributes")) {
            // Attributes hold for the directory they lie in.
            if let Some(entry) = trees.entry(&path).filter(|entry| entry.is_file()) {
                line(&mut script, &entry.mode, &entry.object, &path);
            }
        }
        let call = scratch.call("update-index").args(["-z", "--index-info"]);
        call.stdin(script).done()?;
        let call = scratch.call("checkout-index").args(["--all", "--force"]);
        call.done()?;
        Ok(())
    }
}

struct Fill<'a> {
    upper: DirectoryRoot,
    lower: LowerRoot,
    staged: &'a Staging,
}

impl Fill<'_> {
    /// Moves a file or link that git wrote into the layer.
    fn location(&self, path: &Path) -> Result<(), DirError> {
        self.make_way(path)?;
        let from = self.staged.path().join(path);
        let to = self.upper.path().join(path);
        // Both are of this process alone: nothing of an agent's is in them.
        fs::rename(&from, &to).map_err(failed("move", &from))
    }

    /// Hides what lies below at these paths.
    fn hide<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
        trees: &Trees<'_>,
    ) -> Result<(), DirError> {
        let mut parents = BTreeSet::new();
        for path in paths {
            // A mark that hides nothing could show as the device it is.
            if !self.is_below(path)? || self.is_in_the_way(path)? {
                continue;
            }
            self.make_way(path)?;
            let made = self.upper.make_whiteout(path);
            made.map_err(failed("hide", &self.upper.path().join(path)))?;
            let dirs = path.ancestors().skip(1).map(Path::to_path_buf);
            parents.extend(dirs.filter(|dir| !dir.as_os_str().is_empty()));
        }
        // From the bottom up: a checkout has no directory that is empty.
        for dir in parents.iter().rev() {
            if !trees.has_dir(dir) && self.shows_nothing(dir)? {
                self.hide_dir(dir)?;
            }
        }
        Ok(())
    }

    /// Tells whether the layer has something at a path or in the place of its directory.
    fn is_in_the_way(&self, path: &Path) -> Result<bool, DirError> {
        for at in path.ancestors().filter(|at| !at.as_os_str().is_empty()) {
            let found = self.upper.stat(at);
            let found = found.map_err(failed("inspect", &self.upper.path().join(at)))?;
            let is_dir = found
                .as_ref()
                .is_some_and(|found| beneath::kind(found) == FileType::Directory);
            if found.is_some() && (at == path || !is_dir) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_below(&self, path: &Path) -> Result<bool, DirError> {
        let found = self.lower.stat(path);
        let found = found.map_err(failed("inspect", &self.lower.path().join(path)))?;
        Ok(found.is_some())
    }

    /// Tells whether everything in a directory below is hidden and nothing else is in the layer.
    fn shows_nothing(&self, dir: &Path) -> Result<bool, DirError> {
        let mut hidden = BTreeSet::new();
        for name in names(&self.upper, dir)? {
            let path = dir.join(&name);
            let found = self.upper.stat(&path);
            let found = found.map_err(failed("inspect", &self.upper.path().join(&path)))?;
            if found.is_some_and(|found| beneath::kind(&found) != FileType::CharacterDevice) {
                return Ok(false);
            }
            hidden.insert(name);
        }
        Ok(self.lower.names(dir)?.is_subset(&hidden))
    }

    fn hide_dir(&self, dir: &Path) -> Result<(), DirError> {
        let at = self.upper.path().join(dir);
        for name in names(&self.upper, dir)? {
            let removed = self.upper.remove(&dir.join(name));
            removed.map_err(failed("remove", &at))?;
        }
        self.upper.remove_dir(dir).map_err(failed("remove", &at))?;
        self.upper.make_whiteout(dir).map_err(failed("hide", &at))
    }

    fn make_way(&self, path: &Path) -> Result<(), DirError> {
        let mut dir = PathBuf::new();
        let parent = path.parent().unwrap_or(Path::new(""));
        for part in parent.components() {
            dir.push(part);
            let at = self.upper.path().join(&dir);
            let is_new = self.upper.stat(&dir).map_err(failed("inspect", &at))?;
            if is_new.is_none() {
                let made = self.upper.make_dir(&dir, 0o755);
                made.map_err(failed("create", &at))?;
                self.adopt_mode(&dir)?;
            }
        }
        Ok(())
    }

    /// Gives a directory of the layer the mode of the one it lies over: the layer's is what shows.
    fn adopt_mode(&self, dir: &Path) -> Result<(), DirError> {
        let Ok(below) = self.lower.dir(dir) else {
            return Ok(());
        };
        let at = self.upper.path().join(dir);
        let upper = self.upper.dir(dir).map_err(failed("open", &at))?;
        let copied = rustix::fs::fstat(&below).and_then(|found| {
            let mode = rustix::fs::Mode::from_raw_mode(found.st_mode & 0o777 | 0o700);
            rustix::fs::fchmod(&upper, mode)
        });
        copied.map_err(|error| failed("set permissions of", &at)(error.into()))
    }
}

/// Returns the names in a directory; none when there is no such directory.
fn names(root: &DirectoryRoot, dir: &Path) -> Result<BTreeSet<std::ffi::OsString>, DirError> {
    let at = root.path().join(dir);
    match root.dir(dir) {
        Ok(opened) => lower::names_in(&opened).map_err(failed("list", &at)),
        Err(error) if is_absence(&error) => Ok(BTreeSet::new()),
        Err(error) => Err(failed("open", &at)(error)),
    }
}
