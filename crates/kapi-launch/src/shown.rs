//! What of a project is shown: `.kapiexclude` hides files, `.kapiinclude` shows hidden ones.
//!
//! Both lie at the top of the project and mean only what lies in it. They are read from the host,
//! so an agent cannot change them for the next launch without a person taking its change over.

pub(crate) mod beneath;
pub(crate) mod included;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use kapi_core::isolation::SandboxLevel;
use kapi_core::text::counted;
use kapi_git::layer::lower::LowerStack;
use kapi_run::confine::WORKSPACE_INSIDE;
use kapi_run::{confine, failure};
use kapi_sandbox::spec::Mount;
use rustix::fs::OFlags;

use super::error::{LaunchError, LaunchErrorKind};
use super::paths::SandboxPaths;
use super::patterns::ShowPatterns;
use super::record::SandboxRecord;

/// The files.
const EXCLUDE: &str = ".kapiexclude";
const INCLUDE: &str = ".kapiinclude";
/// The most bytes of one that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most entries of a project that are looked at for what is to be hidden.
const ENTRIES_MAX: usize = 1_000_000;
/// The most files and directories that are hidden one by one.
const HIDDEN_MAX: usize = 200;

/// What hides files of a workspace.
#[derive(Debug, Default)]
pub(crate) struct HiddenMounts {
    /// Empty files and directories over those that are hidden.
    pub(crate) mounts: Vec<Mount>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Returns what hides the files that a project excludes.
///
/// The patterns are those of the project; `lower` is what is shown.
pub(crate) fn excluded(
    location: &SandboxPaths,
    lower: &LowerStack,
    record: &SandboxRecord,
) -> Result<HiddenMounts, LaunchError> {
    let patterns = read(&record.project.join(EXCLUDE))?;
    if patterns.is_empty() {
        return Ok(HiddenMounts::default());
    }
    if !has_layers(record.level) {
        return Err(LaunchError::new(
            LaunchErrorKind::Denied,
            format!(
                "{EXCLUDE} hides files of the project, but without isolation nothing can be hidden"
            ),
            "omit `--sandbox none`, or remove the file.",
        ));
    }
    let mut shown = HiddenMounts::default();
    let mut hidden = BTreeSet::new();
    for host in lower.dirs() {
        for path in found(host, &patterns, EXCLUDE)? {
            let place = lower.place(&path);
            let place = place.map_err(|error| LaunchError::failed(&error))?;
            // What a directory further up hides is not seen.
            if place.is_some_and(|place| place.starts_with(host)) && hidden.insert(path.clone()) {
                shown.mounts.push(covered(location, host, &path)?);
            }
        }
    }
    if !shown.mounts.is_empty() {
        let paths = counted(shown.mounts.len(), "path");
        shown.notes.push(format!(
            "{EXCLUDE} hides {paths} behind empty ones, which the agent cannot write to."
        ));
    }
    Ok(shown)
}

/// Returns a mount that hides a file or directory of the project behind an empty one.
pub(crate) fn covered(
    location: &SandboxPaths,
    project: &Path,
    path: &Path,
) -> Result<Mount, LaunchError> {
    let at = project.join(path);
    let blank = location.blank();
    let (directory, file) = (blank.join("directory"), blank.join("file"));
    let found = fs::symlink_metadata(&at);
    let found = found.map_err(|error| failure::file("inspect", &at, &error))?;
    let host = if found.is_dir() {
        fs::create_dir_all(&directory)
            .map_err(|error| failure::file("create", &directory, &error))?;
        directory
    } else {
        let opened = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file);
        drop(opened.map_err(|error| failure::file("create", &file, &error))?);
        file
    };
    Ok(confine::read_only(
        &host,
        &Path::new(WORKSPACE_INSIDE).join(path),
    ))
}

/// Tells whether a level shows the project through a layer.
pub(crate) const fn has_layers(level: SandboxLevel) -> bool {
    match level {
        SandboxLevel::Native | SandboxLevel::Podman => true,
        SandboxLevel::None => false,
    }
}

/// Returns which of the person's untracked files stay visible.
pub(crate) fn included(project: &Path) -> Result<ShowPatterns, LaunchError> {
    read(&project.join(INCLUDE))
}

fn read(path: &Path) -> Result<ShowPatterns, LaunchError> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ShowPatterns::default()),
        Err(error) => return Err(failure::file("read", path, &error).into()),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| failure::file("read", path, &error))?;
    Ok(ShowPatterns::parse(&text))
}

/// Returns the paths that patterns match, none of them below another.
fn found(project: &Path, patterns: &ShowPatterns, file: &str) -> Result<Vec<PathBuf>, LaunchError> {
    let mut hidden = Vec::new();
    let mut n_seen = 0;
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        let at = project.join(&dir);
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            // What cannot be read here cannot be read inside either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(failure::file("list", &at, &error).into()),
        };
        for entry in entries.flatten() {
            n_seen += 1;
            let path = dir.join(entry.file_name());
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_ours = dir.as_os_str().is_empty()
                && [".git", ".ilchul"]
                    .iter()
                    .any(|name| entry.file_name() == *name);
            if kind.is_symlink() || is_ours {
                continue;
            }
            if patterns.match_path(&path.to_string_lossy(), kind.is_dir()) {
                hidden.push(path);
            } else if kind.is_dir() {
                dirs.push(path);
            }
        }
        if n_seen > ENTRIES_MAX || hidden.len() > HIDDEN_MAX {
            return Err(LaunchError::new(
                LaunchErrorKind::Failed,
                format!(
                    "apply {file}: it matches more than {HIDDEN_MAX} paths, or the project has \
                     more than {ENTRIES_MAX}"
                ),
                "list directories instead of the files in them.",
            ));
        }
    }
    hidden.sort();
    Ok(hidden)
}
