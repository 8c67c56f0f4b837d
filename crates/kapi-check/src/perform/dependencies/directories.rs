//! Which ecosystems a project is of, and where in it their dependencies were installed.
//!
//! Told by what git tracks; a directory that git tracks is part of the work and no dependency. Only
//! looks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_core::pattern;
use kapi_git::repository::Repository;

use super::git_failed;
use super::pattern::PathPattern;
use crate::rules::proof::ecosystem::{EcosystemTable, ProjectEcosystem};

/// How many directories are lent.
const DIRECTORIES_MAX: usize = 64;
/// Names that nothing but installed packages has, whether git ignores them or not.
const UNMISTAKABLE: &[&str] = &["node_modules", ".venv", "venv"];
/// Files that people track in a directory to keep it.
const KEEPERS: &[&str] = &[".gitignore", ".gitkeep", ".keep", "README.md", "README"];

/// What git tracks in a project.
#[derive(Debug)]
pub(super) struct TrackedFiles {
    /// In the order of bytes.
    paths: Vec<PathBuf>,
}

impl TrackedFiles {
    pub(super) fn of(repository: &Repository) -> Result<Self, Failure> {
        let paths = repository
            .tracked_paths()
            .map_err(|error| git_failed(&error))?;
        Ok(Self { paths })
    }

    /// Takes the names in a few directories for what is tracked.
    pub(super) fn listed(top: &Path, roots: &[PathBuf]) -> Self {
        let mut paths = Vec::new();
        for root in roots {
            let entries = fs::read_dir(top.join(root)).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| root.join(entry.file_name())));
        }
        Self { paths }
    }

    /// Tells whether a directory is part of the work.
    fn holds(&self, directory: &Path) -> bool {
        let mut prefix = directory.as_os_str().as_bytes().to_vec();
        prefix.push(b'/');
        let from = self
            .paths
            .partition_point(|path| path.as_os_str().as_bytes() < prefix.as_slice());
        let below = self.paths.iter().skip(from);
        let mut below =
            below.take_while(|path| path.as_os_str().as_bytes().starts_with(prefix.as_slice()));
        below.any(|path| {
            let name = path.file_name().unwrap_or_default();
            !KEEPERS.iter().any(|keeper| name == *keeper)
        })
    }
}

/// The ecosystems of a project, and the directories that are projects of each.
#[derive(Debug, Default)]
pub(super) struct ProjectEcosystems {
    roots: BTreeMap<String, BTreeSet<PathBuf>>,
}

impl ProjectEcosystems {
    /// Finds them by their markers and sources.
    pub(super) fn of(table: &EcosystemTable, tracked: &TrackedFiles) -> Self {
        let mut concerned = Self::default();
        let names = TrackedNames::of(tracked);
        for ecosystem in &table.all {
            let mut roots = BTreeSet::new();
            if ecosystem.always {
                roots.insert(PathBuf::new());
            }
            for marker in &ecosystem.markers {
                roots.extend(names.directories_of(marker));
            }
            let has_sources = || ecosystem.sources.iter().any(|source| names.have(source));
            if !roots.is_empty() || has_sources() {
                roots.insert(PathBuf::new());
                concerned.roots.insert(ecosystem.id.clone(), roots);
            }
        }
        concerned
    }

    /// Returns directories of output that may be kept between Kapi's own runs, sorted.
    pub(super) fn reusable(&self, table: &EcosystemTable, tracked: &TrackedFiles) -> Vec<PathBuf> {
        let all = table.all.iter();
        let all = all.flat_map(|one| self.candidates(one, &one.reusable));
        let all: BTreeSet<PathBuf> = all.filter(|path| !tracked.holds(path)).collect();
        all.into_iter().collect()
    }

    /// Returns where directories of an ecosystem would lie in its projects.
    fn candidates(&self, ecosystem: &ProjectEcosystem, names: &[String]) -> Vec<PathBuf> {
        let patterns: Vec<PathPattern> = names.iter().map(|text| PathPattern::new(text)).collect();
        let roots = self.roots.get(&ecosystem.id).into_iter().flatten();
        let locations = |root: &PathBuf| -> Vec<PathBuf> {
            let names = patterns.iter().flat_map(PathPattern::literals);
            names.map(|name| root.join(name)).collect()
        };
        roots.flat_map(locations).collect()
    }

    /// Tells whether the project is of an ecosystem.
    pub(super) fn is(&self, id: &str) -> bool {
        self.roots.contains_key(id)
    }
}

/// The names of tracked files, and the directories they lie in.
struct TrackedNames<'a> {
    directories: BTreeMap<&'a OsStr, Vec<&'a Path>>,
}

impl<'a> TrackedNames<'a> {
    fn of(tracked: &'a TrackedFiles) -> Self {
        let mut directories: BTreeMap<&OsStr, Vec<&Path>> = BTreeMap::new();
        for path in &tracked.paths {
            let name = path.file_name().unwrap_or_default();
            let at = path.parent().unwrap_or(Path::new(""));
            directories.entry(name).or_default().push(at);
        }
        Self { directories }
    }

    fn directories_of(&self, pattern: &str) -> BTreeSet<PathBuf> {
        let found = self.entries(pattern).flatten();
        found.map(|at| at.to_path_buf()).collect()
    }

    fn have(&self, pattern: &str) -> bool {
        self.entries(pattern).next().is_some()
    }

    fn entries(&self, pattern: &str) -> impl Iterator<Item = &Vec<&'a Path>> {
        let pattern = pattern.trim_start_matches('/').to_owned();
        let ending = pattern
            .strip_prefix('*')
            .filter(|rest| !rest.contains(['*', '?', '{', '[']))
            .map(str::to_owned);
        let is_plain = !pattern.contains(['*', '?', '{', '[']);
        let literal = is_plain.then(|| self.directories.get(OsStr::new(&pattern)));
        let written_out = match (&ending, is_plain) {
            (None, false) => Some(PathPattern::new(&pattern)),
            (Some(_), _) | (None, true) => None,
        };
        let others = self.directories.iter().filter(move |(name, _)| {
            let name = name.to_string_lossy();
            match (&ending, &written_out) {
                (Some(ending), _) => name.ends_with(ending.as_str()),
                (None, Some(pattern)) => pattern.names().any(|one| pattern::is_name(one, &name)),
                (None, None) => false,
            }
        });
        literal
            .flatten()
            .into_iter()
            .chain(others.map(|(_, at)| at))
    }
}

/// Finds the directories with dependencies: where each is below the top, and its real place.
pub(super) fn find(
    repository: &Repository,
    table: &EcosystemTable,
    concerned: &ProjectEcosystems,
    tracked: &TrackedFiles,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let top = repository.top_level();
    let ignored = repository
        .ignored_directories()
        .map_err(|error| git_failed(&error))?;
    let ignored: BTreeSet<PathBuf> = ignored.into_iter().collect();
    let excluded = repository
        .excluded_directories()
        .map_err(|error| git_failed(&error))?;
    let is_lent = |relative: &PathBuf| {
        let is_excluded = relative.ancestors().any(|above| excluded.contains(above));
        let is_ignored = relative.ancestors().any(|above| ignored.contains(above));
        let is_meant = is_ignored || UNMISTAKABLE.iter().any(|one| relative.ends_with(one));
        is_meant && !is_excluded && top.join(relative).is_dir() && !tracked.holds(relative)
    };
    let all = table.all.iter();
    let all = all.flat_map(|one| concerned.candidates(one, &one.dependencies));
    let found: BTreeSet<PathBuf> = all.filter(is_lent).collect();
    // What lies in another of them is shown with it.
    let mut widest: Vec<(PathBuf, PathBuf)> = Vec::new();
    for relative in found {
        let host = top.join(&relative);
        let host = host.canonicalize().unwrap_or(host);
        if !widest.iter().any(|(wider, _)| relative.starts_with(wider)) {
            widest.push((relative, host));
        }
    }
    widest.truncate(DIRECTORIES_MAX);
    Ok(widest)
}
