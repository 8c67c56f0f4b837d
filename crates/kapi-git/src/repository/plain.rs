//! A repository of the ordinary layout, found without git.
//!
//! Only where everything is as `git init` and `git clone` make it: a `.git` directory with a
//! configuration in plain words. Anything else is for git to find, to judge and to refuse.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::settings::{self, GitSetting};
use super::{ObjectFormat, small_file};

/// The largest configuration that is read here.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// An ordinary repository.
#[derive(Debug)]
pub(super) struct PlainRepository {
    pub(super) top_level: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) format: ObjectFormat,
    pub(super) settings: Vec<GitSetting>,
}

/// Finds the repository that `dir` is in; nothing when git has to look.
pub(super) fn find(dir: &Path) -> Option<PlainRepository> {
    let dir = fs::canonicalize(dir).ok()?;
    let device = fs::metadata(&dir).ok()?.dev();
    for at in dir.ancestors() {
        // Git does not look beyond a file system.
        if fs::metadata(at).ok()?.dev() != device {
            return None;
        }
        let git_dir = at.join(".git");
        match fs::symlink_metadata(&git_dir) {
            Ok(found) if found.is_dir() => return read(at, git_dir),
            // What may be a repository itself, without a working tree, git does not enter.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_absent(at, "HEAD") => {}
            Ok(_) | Err(_) => return None,
        }
    }
    None
}

fn read(top_level: &Path, git_dir: PathBuf) -> Option<PlainRepository> {
    let is_dir = |name: &str| {
        let found = fs::symlink_metadata(git_dir.join(name));
        found.is_ok_and(|found| found.is_dir())
    };
    if !is_dir("objects") || !is_dir("refs") || !is_absent(&git_dir, "commondir") {
        return None;
    }
    let text = small_file(&git_dir.join("config"), CONFIG_BYTES_MAX)?;
    let settings = settings::parse(&text)?;
    Some(PlainRepository {
        format: format(&settings)?,
        top_level: top_level.to_path_buf(),
        git_dir,
        settings,
    })
}

/// Returns the object format if the settings ask for nothing else out of the ordinary.
fn format(settings: &[GitSetting]) -> Option<ObjectFormat> {
    let value = |key| settings::value(settings, key);
    let version = value("core.repositoryformatversion").unwrap_or(b"0");
    let is_bare = value("core.bare").is_some_and(|bare| bare != b"false");
    let mut extensions = settings
        .iter()
        .filter(|setting| setting.key.starts_with(b"extensions."));
    let is_known = extensions.all(|setting| setting.key == b"extensions.objectformat");
    if is_bare || value("core.worktree").is_some() || !is_known {
        return None;
    }
    match (version, value("extensions.objectformat")) {
        (b"0" | b"1", None) | (b"1", Some(b"sha1")) => Some(ObjectFormat::Sha1),
        (b"1", Some(b"sha256")) => Some(ObjectFormat::Sha256),
        _ => None,
    }
}

fn is_absent(dir: &Path, name: &str) -> bool {
    let found = fs::symlink_metadata(dir.join(name));
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
