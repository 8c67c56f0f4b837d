//! The directories of a checkout that git ignores: dependencies and what builds left.
//!
//! Only reads. What a person keeps from agents stands in `.kapiexclude`, in the language of
//! `.gitignore`. Does not know what is done with them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::command::GitError;
use crate::repository::Repository;

/// The file, at the top of a checkout, that names what agents must not see.
pub const EXCLUDE_FILE: &str = ".kapiexclude";
/// Kapi's own directory, which is nobody's build output.
const KAPI_DIRECTORY: &str = ".ilchul";

/// Something that git does not track.
struct UntrackedEntry {
    path: PathBuf,
    is_directory: bool,
}

impl UntrackedEntry {
    /// Reads a name as git lists it: that of a directory ends with a slash.
    fn read(name: &[u8]) -> Self {
        let directory = name.strip_suffix(b"/");
        Self {
            path: PathBuf::from(OsStr::from_bytes(directory.unwrap_or(name))),
            is_directory: directory.is_some(),
        }
    }
}

impl Repository {
    /// Returns the whole directories that git ignores, relative to the top level, without those
    /// that [`EXCLUDE_FILE`] names, repositories of their own, and links.
    pub fn ignored_directories(&self) -> Result<Vec<PathBuf>, GitError> {
        let excluded = self.excluded_directories()?;
        let is_hidden = |path: &Path| path.ancestors().any(|above| excluded.contains(above));
        let ignored = self.untracked("--exclude-standard")?.into_iter();
        let directories = ignored.filter(|entry| entry.is_directory);
        Ok(directories
            .map(|entry| entry.path)
            .filter(|path| !path.starts_with(KAPI_DIRECTORY) && !is_hidden(path))
            .filter(|path| self.is_plain_directory(path))
            .collect())
    }

    /// Returns the files that git ignores outside of whole ignored directories, relative to the top
    /// level, without those that [`EXCLUDE_FILE`] names and Kapi's own.
    pub fn ignored_files(&self) -> Result<Vec<PathBuf>, GitError> {
        let excluded = self.excluded()?;
        let excluded: BTreeSet<PathBuf> = excluded.into_iter().map(|entry| entry.path).collect();
        let is_hidden = |path: &Path| path.ancestors().any(|above| excluded.contains(above));
        let is_shown = |path: &PathBuf| !path.starts_with(KAPI_DIRECTORY) && !is_hidden(path);
        let ignored = self.untracked("--exclude-standard")?;
        let files = ignored.into_iter().filter(|entry| !entry.is_directory);
        Ok(files.map(|entry| entry.path).filter(is_shown).collect())
    }

    /// Returns those of some directories that git ignores and does not track, without those that
    /// [`EXCLUDE_FILE`] names, repositories of their own, and links.
    pub fn ignored_of(&self, directories: &[PathBuf]) -> Result<Vec<PathBuf>, GitError> {
        let excluded = self.excluded_directories()?;
        let is_hidden = |path: &Path| path.ancestors().any(|above| excluded.contains(above));
        let call = self
            .checkout_call("ls-files")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args([
                "--others",
                "--ignored",
                "--exclude-standard",
                "--directory",
                "-z",
                "--",
            ])
            .args(directories.iter().map(|path| path.as_os_str()));
        let output = call.bytes()?;
        let names = output.split(|&byte| byte == 0);
        let found = names
            .filter(|name| !name.is_empty())
            .map(UntrackedEntry::read);
        let found = found.filter(|entry| entry.is_directory && directories.contains(&entry.path));
        Ok(found
            .map(|entry| entry.path)
            .filter(|path| !is_hidden(path) && self.is_plain_directory(path))
            .collect())
    }

    /// Returns the directories that git does not track and [`EXCLUDE_FILE`] names.
    pub fn excluded_directories(&self) -> Result<BTreeSet<PathBuf>, GitError> {
        let excluded = self.excluded()?.into_iter();
        let directories = excluded.filter(|entry| entry.is_directory);
        Ok(directories.map(|entry| entry.path).collect())
    }

    fn excluded(&self) -> Result<Vec<UntrackedEntry>, GitError> {
        if !self.top_level().join(EXCLUDE_FILE).is_file() {
            return Ok(Vec::new());
        }
        self.untracked(&format!("--exclude-from={EXCLUDE_FILE}"))
    }

    /// Returns the paths that git tracks, relative to the top level and in the order of bytes.
    pub fn tracked_paths(&self) -> Result<Vec<PathBuf>, GitError> {
        let output = self.checkout_call("ls-files").arg("-z").bytes()?;
        let names = output
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names
            .map(|name| PathBuf::from(OsStr::from_bytes(name)))
            .collect())
    }

    /// Lists what a rule ignores and git does not track.
    fn untracked(&self, rule: &str) -> Result<Vec<UntrackedEntry>, GitError> {
        let output = self
            .checkout_call("ls-files")
            .args(["--others", "--ignored", "--directory", "-z"])
            .arg(rule)
            .bytes()?;
        let names = output.split(|&byte| byte == 0);
        let names = names.filter(|name| !name.is_empty());
        Ok(names.map(UntrackedEntry::read).collect())
    }

    fn is_plain_directory(&self, relative: &Path) -> bool {
        let path = self.top_level().join(relative);
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
            && fs::symlink_metadata(path.join(".git")).is_err()
    }
}
