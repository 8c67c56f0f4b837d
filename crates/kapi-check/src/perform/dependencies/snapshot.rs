//! Dependencies as they were when a goal was approved.
//!
//! A snapshot is made of clones of the files where the file system can, of hard links where not, of
//! copies where neither can be. It is shared by goals that found the same. A hard link does not keep a
//! file from being written in place, so each use compares every file with what was noted.

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::owned_dir;
use kapi_git::repository::Repository;
use kapi_run::failure;
use kapi_run::host_grants::HostGrants;
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::tree::{SnapshotEntry, TakeResult};
use super::{Dependencies, DependencyDirectory};

/// The goal's note of what is its own.
const RECORD: &str = "dependencies.json";
/// Where the snapshots of a project are, beside the files of its goals: no goal or launch can have
/// this name.
const STORE: &str = ".dependencies";
/// Where a goal keeps its copies of files that installing wrote.
const INSTALLED: &str = "dependencies-installed";
/// What was in a snapshot when it was made.
const MANIFEST: &str = "manifest";
/// Digits of a fingerprint.
const DIGITS: usize = 32;

/// What a goal works with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotRecord {
    /// The snapshot.
    fingerprint: String,
    /// Its directories below the project's top, by the numbers of their trees.
    directories: Vec<PathBuf>,
    /// Why there is none: what is there is lent as it stands.
    unfixed: Option<String>,
    /// Files that installing wrote among the project's sources, by the numbers of their copies.
    #[serde(default)]
    installed: Vec<PathBuf>,
}

impl Dependencies {
    /// Fixes what a goal works with: from now on it is what is there now. Done once for a goal.
    ///
    /// # Errors
    /// When a snapshot cannot be made.
    pub fn fix(grants: &HostGrants, repository: &Repository, goal: &Path) -> Result<(), Failure> {
        let file = goal.join(RECORD);
        if let Some(record) = read(&file)?
            && (record.unfixed.is_some() || record.tree(goal, 0).is_dir() || record.is_empty())
        {
            return Ok(());
        }
        let found = Self::find(grants, repository)?;
        let mut all = Vec::new();
        let mut unfixed = None;
        for (n, directory) in found.directories.iter().enumerate() {
            match tree::entries(&directory.host, &directory.covered)? {
                Some(entries) => all.push((n, entries)),
                None => unfixed = Some(too_large(directory)),
            }
        }
        let mut record = SnapshotRecord {
            fingerprint: fingerprint(&found.directories, &all),
            directories: found.shown().into_iter().collect(),
            unfixed,
            installed: copy_installed(&found, goal)?,
        };
        // First, so that whoever tidies up knows that the snapshot is meant.
        record.write(&file)?;
        if record.unfixed.is_none() && !record.is_empty() {
            record.unfixed = make(&record, goal, &found.directories, &all)?;
            record.write(&file)?;
        }
        Ok(())
    }

    /// Finds what a goal works with: what was fixed for it, and what is there of everything else.
    ///
    /// # Errors
    /// When what was fixed is gone or was changed since.
    pub fn of_goal(
        grants: &HostGrants,
        repository: &Repository,
        goal: &Path,
    ) -> Result<Self, Failure> {
        let Some(record) = read(&goal.join(RECORD))? else {
            return Self::find(grants, repository);
        };
        if let Some(why) = &record.unfixed {
            let mut found = Self::find(grants, repository)?;
            found.notes.push(why.clone());
            return Ok(found);
        }
        record.check(goal)?;
        let trees = record.directories.iter().enumerate();
        let trees = trees.map(|(n, relative)| (relative.clone(), record.tree(goal, n)));
        let mut found = Self::find_with(grants, repository, Some(trees.collect()))?;
        found.take_installed(&record.installed, &goal.join(INSTALLED))?;
        Ok(found)
    }
}

/// Copies files that installing wrote, and returns where they belong.
fn copy_installed(found: &Dependencies, goal: &Path) -> Result<Vec<PathBuf>, Failure> {
    let to = goal.join(INSTALLED);
    owned_dir::wipe(&to).map_err(|error| failure::plain(&error))?;
    fs::create_dir_all(&to).map_err(|error| failure::file("create", &to, &error))?;
    let mut all = Vec::new();
    for (n, file) in found.installed.iter().enumerate() {
        let copied = fs::copy(&file.host, to.join(n.to_string()));
        copied.map_err(|error| failure::file("copy", &file.host, &error))?;
        all.push(file.relative.clone());
    }
    Ok(all)
}

/// Removes the snapshots of a project that no goal works with any more.
///
/// # Errors
/// When one cannot be removed.
pub fn sweep(goals: &Path) -> Result<(), Failure> {
    let store = goals.join(STORE);
    let listed = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let snapshots = listed(&store);
    if snapshots.is_empty() {
        return Ok(());
    }
    let mut wanted = BTreeSet::new();
    for goal in listed(goals) {
        let Ok(record) = read(&goal.join(RECORD)) else {
            // It may name any of them.
            return Ok(());
        };
        wanted.extend(record.map(|record| record.fingerprint));
    }
    for snapshot in snapshots {
        let name = snapshot.file_name().unwrap_or_default().to_string_lossy();
        // One that is being made has the name of its goal after it.
        let fingerprint = name.split('.').next().unwrap_or_default();
        if !wanted.contains(fingerprint) {
            owned_dir::wipe(&snapshot).map_err(|error| failure::plain(&error))?;
        }
    }
    Ok(())
}

impl SnapshotRecord {
    fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    fn snapshot(&self, goal: &Path) -> PathBuf {
        let all = goal.parent().unwrap_or(goal).join(STORE);
        all.join(&self.fingerprint)
    }

    fn tree(&self, goal: &Path, n: usize) -> PathBuf {
        self.snapshot(goal).join(format!("tree-{n}"))
    }

    fn write(&self, file: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).map_err(|error| failure::plain(&error))?;
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(|error| failure::file("create", parent, &error))?;
        }
        replace_durably(&RealDisk, file, &bytes).map_err(|error| failure::plain(&error))
    }

    /// Compares every file with what was noted of it.
    fn check(&self, goal: &Path) -> Result<(), Failure> {
        let changed = |path: &str, what: &str| Failure {
            message: format!("use the dependencies that were approved: {path} {what}"),
            hint: Some(
                "start the goal again with the current dependencies, or reinstall them: package \
                 managers replace files instead of changing them."
                    .to_owned(),
            ),
        };
        if self.is_empty() {
            return Ok(());
        }
        let manifest = self.snapshot(goal).join(MANIFEST);
        let noted = match fs::read(&manifest) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let location = self.snapshot(goal).display().to_string();
                return Err(changed(&location, "is gone"));
            }
            Err(error) => return Err(failure::file("read", &manifest, &error)),
        };
        let mut noted = noted
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty());
        for (n, relative) in self.directories.iter().enumerate() {
            let now = tree::entries(&self.tree(goal, n), &[])?.unwrap_or_default();
            let mut is_as_noted =
                |entry: &SnapshotEntry| noted.next() == Some(entry.line(n).as_slice());
            if let Some(entry) = now.iter().find(|entry| !is_as_noted(entry)) {
                let path = relative.join(&entry.path).display().to_string();
                return Err(changed(&path, "has changed since"));
            }
        }
        if noted.next().is_some() {
            let location = self.snapshot(goal).display().to_string();
            return Err(changed(&location, "is no longer complete"));
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Option<SnapshotRecord>, Failure> {
    match fs::read(file) {
        // What an earlier version left on a full disk: it noted nothing.
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let message = format!("read {}: {error}", file.display());
            Failure {
                message,
                hint: None,
            }
        }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failure::file("read", file, &error)),
    }
}

/// Returns a name that two snapshots share only if they are of the same files.
fn fingerprint(directories: &[DependencyDirectory], all: &[(usize, Vec<SnapshotEntry>)]) -> String {
    let mut hasher = Sha256::new();
    for directory in directories {
        hasher.update(directory.relative.as_os_str().as_encoded_bytes());
        hasher.update([0]);
    }
    for (n, entries) in all {
        for entry in entries {
            hasher.update(entry.line(*n));
            hasher.update([0]);
        }
    }
    let digits = hasher.finalize();
    let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.get(..DIGITS).unwrap_or(&digits).to_owned()
}

/// Makes a snapshot, unless there is one; returns why it was not made.
fn make(
    record: &SnapshotRecord,
    goal: &Path,
    directories: &[DependencyDirectory],
    all: &[(usize, Vec<SnapshotEntry>)],
) -> Result<Option<String>, Failure> {
    let to = record.snapshot(goal);
    if to.join(MANIFEST).is_file() {
        return Ok(None);
    }
    let parent = to.parent().unwrap_or(&to);
    // Each goal makes its own: several begin at once, also in one process.
    let owner = goal.file_name().unwrap_or_default().to_string_lossy();
    let making = parent.join(format!("{}.{owner}", record.fingerprint));
    owned_dir::wipe(&making).map_err(|error| failure::plain(&error))?;
    fs::create_dir_all(&making).map_err(|error| failure::file("create", &making, &error))?;
    let mut manifest = Vec::new();
    let mut bytes_left = tree::COPIED_BYTES_MAX;
    for (n, entries) in all {
        let Some(directory) = directories.get(*n) else {
            continue;
        };
        let tree = making.join(format!("tree-{n}"));
        match tree::take(&directory.host, &tree, entries, &mut bytes_left)? {
            TakeResult::Whole => {}
            TakeResult::TooLarge => {
                owned_dir::wipe(&making).map_err(|error| failure::plain(&error))?;
                return Ok(Some(too_large(directory)));
            }
        }
        for entry in tree::entries(&tree, &[])?.unwrap_or_default() {
            manifest.extend(entry.line(*n));
            manifest.push(0);
        }
    }
    let file = making.join(MANIFEST);
    let written = replace_durably(&RealDisk, &file, &manifest);
    written.map_err(|error| failure::plain(&error))?;
    match fs::rename(&making, &to) {
        Ok(()) => Ok(None),
        // Another goal was faster.
        Err(_) if to.join(MANIFEST).is_file() => {
            owned_dir::wipe(&making).map_err(|error| failure::plain(&error))?;
            Ok(None)
        }
        Err(error) => Err(failure::file("make", &to, &error)),
    }
}

fn too_large(directory: &DependencyDirectory) -> String {
    format!(
        "{} is too large to snapshot at approval: each run uses its current content.",
        directory.relative.display()
    )
}
