//! Protected paths of a checkout, put there exactly as a checkout of the base would have them.
//!
//! They are written in a private directory, with the attributes of the base and of nothing else,
//! and moved over. What is in the checkout is hostile: links are replaced and never followed,
//! and nothing but plain files is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::change::TreeFile;
use crate::checkout::{ATTRIBUTES, CheckoutError, CheckoutPlan, line, submodules};
use crate::diff::{entries_of, pathspecs};
use crate::owned_dir::{self, DirError, failed};
use crate::repository::{ObjectFormat, Repository};
use crate::scratch::{Objects, Scratch};

/// The most entries of a checkout that are looked at.
const ENTRIES_MAX: usize = 4_000_000;

/// The longest path that is looked into; git writes none that is longer.
const PATH_BYTES_MAX: usize = 3_000;

/// How much of two files is compared at a time.
const BLOCK_BYTES: usize = 64 * 1024;

impl Repository {
    /// Puts the protected paths of a checkout back as they are in the base.
    ///
    /// For a checkout made with the same plan, in which foreign programs ran and run no more.
    /// Content and mode become those of the base, and what matches a pattern and is not in the
    /// base goes; hidden checks that lie on protected paths go with it and have to be copied
    /// again. Nothing else is touched, except that directories are opened to be looked into, and
    /// that one too deep to be looked into goes. What git keeps in a `.git` further down is one
    /// thing, and a `.git` at the top is left alone.
    ///
    /// Returns the paths that were not as in the base, sorted.
    pub fn restore_protected(
        &self,
        plan: &CheckoutPlan<'_>,
    ) -> Result<Vec<PathBuf>, CheckoutError> {
        let mut restored: BTreeSet<PathBuf> =
            self.remove_unknown_protected(plan)?.into_iter().collect();
        if plan.protect.is_empty() {
            return Ok(Vec::new());
        }
        let original = self.entries_matching(plan.base, plan.protect)?;
        let beside = owned_dir::beside(plan.to)?;
        restored.extend(self.put_back(plan, &beside, &original)?);
        Ok(restored.into_iter().collect())
    }

    /// Does the part of [`Repository::restore_protected`] that is left where every protected file is known
    /// to be as it was: removes what matches a pattern and is not in the base.
    ///
    /// Returns what it removed, sorted.
    pub fn remove_unknown_protected(
        &self,
        plan: &CheckoutPlan<'_>,
    ) -> Result<Vec<PathBuf>, CheckoutError> {
        let beside = owned_dir::beside(plan.to)?;
        let is_ours = fs::symlink_metadata(&beside).is_ok_and(|found| found.is_dir());
        if !is_ours {
            let path = plan.to.to_path_buf();
            return Err(DirError::Foreign { path }.into());
        }
        if plan.protect.is_empty() {
            return Ok(Vec::new());
        }
        owned_dir::make_way(plan.to, Path::new(""))?;
        let original = self.entries_matching(plan.base, plan.protect)?;
        let names: BTreeSet<&Path> = original.iter().map(|entry| entry.path.as_path()).collect();
        let mut found = walk(plan.to, plan.protect)?;
        let mut removed = found.removed;
        // Whatever the base has at a protected path matches.
        found.paths.retain(|path| !names.contains(path.as_path()));
        found.paths = self.matching(&beside, plan, &found.paths)?;
        let submodules = original
            .iter()
            .filter(|entry| entry.mode == submodules::MODE);
        let submodules: Vec<&Path> = submodules.map(|entry| entry.path.as_path()).collect();
        for path in found.paths {
            let is_of_submodule = submodules.iter().any(|at| path.starts_with(at));
            if !is_of_submodule {
                owned_dir::wipe(&plan.to.join(&path))?;
                removed.insert(path);
            }
        }
        Ok(removed.into_iter().collect())
    }

    /// Puts entries of the base into a checkout; returns those that were not as they should be.
    pub(crate) fn put_back(
        &self,
        plan: &CheckoutPlan<'_>,
        beside: &Path,
        original: &[TreeFile],
    ) -> Result<Vec<PathBuf>, CheckoutError> {
        if original.is_empty() {
            return Ok(Vec::new());
        }
        let files = beside.join("base-files");
        let scratch = self.empty_scratch(beside, &files)?;
        let attributes = [ATTRIBUTES.to_owned()];
        let mut script = Vec::new();
        for entry in &self.entries_matching(plan.base, &attributes)? {
            line(&mut script, &entry.mode, &entry.object, &entry.path);
        }
        for entry in original {
            line(&mut script, &entry.mode, &entry.object, &entry.path);
        }
        let call = scratch.call("update-index").args(["-z", "--index-info"]);
        call.stdin(script).done()?;
        let tree = scratch.write_tree()?;
        owned_dir::wipe(&scratch.index())?;
        scratch.fill(tree.as_str())?;
        let mut restored = Vec::new();
        for entry in original {
            if put(plan.to, &files, &entry.path)? {
                restored.push(entry.path.clone());
            }
        }
        owned_dir::wipe(&files)?;
        Ok(restored)
    }

    /// Returns those of `paths` that a protected pattern matches, as git would match them.
    fn matching(
        &self,
        beside: &Path,
        plan: &CheckoutPlan<'_>,
        paths: &[PathBuf],
    ) -> Result<Vec<PathBuf>, CheckoutError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let scratch = self.empty_scratch(beside, &beside.join("base-files"))?;
        let by_name = names_for_git(paths);
        let digits = match self.object_format() {
            ObjectFormat::Sha1 => 40,
            ObjectFormat::Sha256 => 64,
        };
        let any_object = "1".repeat(digits);
        let mut script = Vec::new();
        for name in by_name.keys() {
            line(&mut script, "100644", &any_object, name);
        }
        // The names are only compared, so one that is dangerous to check out is as good as any.
        let lenient = [
            ("core.protectNTFS".into(), "false".into()),
            ("core.protectHFS".into(), "false".into()),
        ];
        let call = scratch.call("update-index").args(["-z", "--index-info"]);
        call.settings(&lenient).stdin(script).done()?;
        let tree = scratch
            .call("write-tree")
            .arg("--missing-ok")
            .settings(&lenient)
            .text()?;
        let specs = pathspecs(plan.protect)?;
        let matched = entries_of(
            scratch.call("diff-tree"),
            self.object_format(),
            &tree,
            &specs,
        )?;
        let real = matched
            .iter()
            .filter_map(|entry| by_name.get(&entry.path))
            .flatten();
        Ok(real.map(|path| path.to_path_buf()).collect())
    }

    /// Makes a git directory without an index in `beside`, and `files` an empty directory.
    fn empty_scratch(&self, beside: &Path, files: &Path) -> Result<Scratch<'_>, DirError> {
        let dir = beside.join("base-git");
        for path in [&dir, files] {
            owned_dir::wipe(path)?;
            owned_dir::create(path)?;
        }
        Scratch::prepare(self, &dir, files, Objects::Private)
    }
}

/// What is in a checkout and may match.
struct CheckoutEntry {
    /// Everything but directories.
    paths: Vec<PathBuf>,
    /// Directories that could not be looked into and were removed.
    removed: BTreeSet<PathBuf>,
}

fn walk(root: &Path, globs: &[String]) -> Result<CheckoutEntry, CheckoutError> {
    let prefixes: Vec<&str> = globs.iter().map(|glob| literal_prefix(glob)).collect();
    let mut found = CheckoutEntry {
        paths: Vec::new(),
        removed: BTreeSet::new(),
    };
    let mut dirs = vec![PathBuf::new()];
    let mut n_entries = 0;
    while let Some(dir) = dirs.pop() {
        let absolute = root.join(&dir);
        owned_dir::open_up(&absolute)?;
        for entry in fs::read_dir(&absolute).map_err(failed("list", &absolute))? {
            let entry = entry.map_err(failed("list", &absolute))?;
            n_entries += 1;
            if n_entries > ENTRIES_MAX {
                let path = root.to_path_buf();
                return Err(CheckoutError::TooManyEntries { path });
            }
            let path = dir.join(entry.file_name());
            let kind = entry
                .file_type()
                .map_err(failed("inspect", &entry.path()))?;
            let is_git = is_git_name(&path);
            if path.as_os_str() == ".git" {
                continue;
            }
            if !kind.is_dir() || is_git {
                found.paths.push(path);
            } else if !prefixes.iter().any(|prefix| may_lead_to(&path, prefix)) {
                // No pattern reaches in here.
            } else if entry.path().as_os_str().len() > PATH_BYTES_MAX {
                owned_dir::wipe(&entry.path())?;
                found.removed.insert(path);
            } else {
                dirs.push(path);
            }
        }
    }
    Ok(found)
}

/// Returns the part of a pattern before its first wildcard, or nothing if git would rewrite it.
fn literal_prefix(glob: &str) -> &str {
    let end = glob.find(['*', '?', '[', '\\']).unwrap_or(glob.len());
    let prefix = glob.get(..end).unwrap_or_default();
    let mut parts: Vec<&str> = prefix.split('/').collect();
    // The last one is a beginning of a name, or nothing.
    let last = parts.pop().unwrap_or_default();
    let is_odd = |part: &&str| matches!(*part, "" | "." | "..");
    if parts.iter().any(is_odd) || last.starts_with('.') && last.len() < 3 {
        ""
    } else {
        prefix
    }
}

/// Tells whether something below the directory `dir` may begin with `prefix`.
fn may_lead_to(dir: &Path, prefix: &str) -> bool {
    let mut dir = dir.as_os_str().as_bytes().to_vec();
    dir.push(b'/');
    dir.starts_with(prefix.as_bytes()) || prefix.as_bytes().starts_with(&dir)
}

fn is_git_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

/// Returns a name that an index can hold for each path, and the paths it stands for.
///
/// An index takes no `.git`, so another name stands for it, which nothing here has: two of
/// different kinds under one name would push each other out.
fn names_for_git(paths: &[PathBuf]) -> BTreeMap<PathBuf, Vec<&Path>> {
    let parts: BTreeSet<_> = paths.iter().flat_map(|path| path.iter()).collect();
    let alias = (0..=parts.len())
        .map(|n| format!(".git-{n}"))
        .find(|name| !parts.contains(name.as_ref() as &std::ffi::OsStr))
        .unwrap_or_default();
    assert!(
        !alias.is_empty(),
        "n + 1 names are tried against n that exist"
    );
    let mut by_name: BTreeMap<PathBuf, Vec<&Path>> = BTreeMap::new();
    for path in paths {
        let name = if is_git_name(path) {
            path.with_file_name(&alias)
        } else {
            path.clone()
        };
        by_name.entry(name).or_default().push(path);
    }
    by_name
}

/// Makes `to/path` what `from/path` is, by moving it; `false` when it was that already.
fn put(to: &Path, from: &Path, path: &Path) -> Result<bool, DirError> {
    owned_dir::make_way(to, path)?;
    let (source, target) = (from.join(path), to.join(path));
    if is_same(&source, &target)? {
        return Ok(false);
    }
    owned_dir::wipe(&target)?;
    fs::rename(&source, &target).map_err(failed("move", &source))?;
    Ok(true)
}

fn is_same(source: &Path, target: &Path) -> Result<bool, DirError> {
    let right = fs::symlink_metadata(source).map_err(failed("inspect", source))?;
    let Ok(there) = fs::symlink_metadata(target) else {
        return Ok(false);
    };
    if right.file_type() != there.file_type() {
        return Ok(false);
    }
    if right.is_symlink() {
        let value = fs::read_link(source).map_err(failed("read", source))?;
        return Ok(fs::read_link(target).is_ok_and(|found| found == value));
    }
    if right.is_dir() {
        // A submodule, which is an empty directory.
        return owned_dir::is_missing_or_empty(target);
    }
    let mode = |found: &fs::Metadata| found.permissions().mode() & 0o7777;
    // A file with a second name is one that somebody can change from elsewhere.
    let is_alike = mode(&right) == mode(&there) && right.len() == there.len() && there.nlink() == 1;
    Ok(is_alike && has_same_bytes(source, target).map_err(failed("compare", target))?)
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        one.by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut left)?;
        other
            .by_ref()
            .take(BLOCK_BYTES as u64)
            .read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{literal_prefix, may_lead_to};

    #[test]
    fn only_directories_that_a_pattern_cannot_reach_are_passed_over() {
        for (glob, dir, expected) in [
            ("tests/**", "tests", true),
            ("tests/**", "tests/deep", true),
            ("tests/**", "src", false),
            ("tests/**", "test", false),
            ("te*/x", "tests", true),
            ("te*/x", "src", false),
            ("a/b/c", "a", true),
            ("a/b/c", "a/b", true),
            ("a/b/c", "a/c", false),
            ("a", "a/deep", true),
            ("**/*.snap", "any", true),
            ("*.lock", "any", true),
            // Git takes these for `tests/**`.
            ("./tests/**", "tests", true),
            ("x/../tests/**", "tests", true),
            (".//tests/**", "tests", true),
            ("..", "any", true),
            (".github/**", "src", false),
        ] {
            let found = may_lead_to(Path::new(dir), literal_prefix(glob));
            assert_eq!(found, expected, "{glob} {dir}");
        }
    }
}
