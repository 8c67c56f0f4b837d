//! Files among a project's own sources that installing it wrote there and git ignores: a version, a
//! compiled catalogue, an extension module.
//!
//! Tests read them, and no checkout has them. Found by names that say what they are (`installed` in
//! the table of ecosystems), and copied into each workspace.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::pattern;
use kapi_git::repository::Repository;
use kapi_run::failure;
use kapi_run::ignored::is_way_clear;

use super::directories::ProjectEcosystems;
use super::pattern::PathPattern;
use super::{Dependencies, git_failed};
use crate::perform::ecosystems;
use crate::rules::proof::ecosystem::{EcosystemTable, InstalledFiles};

/// How many are lent.
const FILES_MAX: usize = 2_000;
/// Bytes of all of them.
const BYTES_MAX: u64 = 256 << 20;

/// A file that installing wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstalledFile {
    /// Where, below the project's top.
    pub(super) relative: PathBuf,
    /// Where it is copied from.
    pub(super) host: PathBuf,
    /// Sources that it is out of date with once they change: patterns of names.
    unless: Vec<String>,
}

/// Finds them.
pub(super) fn find(
    repository: &Repository,
    table: &EcosystemTable,
    concerned: &ProjectEcosystems,
) -> Result<Vec<InstalledFile>, Failure> {
    let all = table.all.iter().filter(|one| concerned.is(&one.id));
    let rules: Vec<&InstalledFiles> = all.flat_map(|one| &one.installed).collect();
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let ignored = repository
        .ignored_files()
        .map_err(|error| git_failed(&error))?;
    let top = repository.top_level();
    let mut bytes_left = BYTES_MAX;
    let found = ignored.into_iter().filter_map(|relative| {
        let host = top.join(&relative);
        let file = InstalledFile::of(&rules, relative, host)?;
        let size = fs::symlink_metadata(&file.host).ok();
        let size = size.filter(fs::Metadata::is_file)?.len();
        bytes_left = bytes_left.checked_sub(size)?;
        Some(file)
    });
    Ok(found.take(FILES_MAX).collect())
}

impl InstalledFile {
    fn of(rules: &[&InstalledFiles], relative: PathBuf, host: PathBuf) -> Option<Self> {
        let rule = rules.iter().find(|rule| is_named(&relative, &rule.files))?;
        Some(Self {
            relative,
            host,
            unless: rule.unless.clone(),
        })
    }
}

impl Dependencies {
    /// Returns the same without files that are out of date once these paths have changed.
    pub(crate) fn after_change(&self, changed: &[String]) -> Self {
        let mut after = self.clone();
        let is_stale = |file: &InstalledFile| {
            let mut changed = changed.iter().map(Path::new);
            changed.any(|path| is_named(path, &file.unless))
        };
        after.installed.retain(|file| !is_stale(file));
        after
    }

    /// Takes copies, each named by its number, for the files that installing wrote.
    pub(super) fn take_installed(
        &mut self,
        fixed: &[PathBuf],
        copies: &Path,
    ) -> Result<(), Failure> {
        let table = ecosystems::table()?;
        let rules: Vec<&InstalledFiles> = table.all.iter().flat_map(|one| &one.installed).collect();
        let copy = |(n, relative): (usize, &PathBuf)| {
            let host = copies.join(n.to_string());
            InstalledFile::of(&rules, relative.clone(), host)
        };
        self.installed = fixed.iter().enumerate().filter_map(copy).collect();
        Ok(())
    }

    /// Tells whether a path of the project is that of a file that installing wrote.
    pub(crate) fn is_installed(&self, relative: &Path) -> bool {
        self.installed.iter().any(|file| file.relative == relative)
    }

    /// Copies them into a workspace, where nothing else is at their places.
    pub(super) fn copy_installed(&self, workspace: &Path) -> Result<(), Failure> {
        for file in &self.installed {
            let to = workspace.join(&file.relative);
            let parent = file.relative.parent().unwrap_or(Path::new(""));
            let is_free = fs::symlink_metadata(&to).is_err() && is_way_clear(workspace, parent);
            // What the work moved away is not put back.
            if is_free && workspace.join(parent).is_dir() {
                fs::copy(&file.host, &to)
                    .map_err(|error| failure::file("copy", &file.host, &error))?;
            }
        }
        Ok(())
    }
}

fn is_named(path: &Path, patterns: &[String]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    patterns.iter().any(|text| {
        let pattern = PathPattern::new(text);
        pattern.names().any(|one| pattern::is_name(one, &name))
    })
}
