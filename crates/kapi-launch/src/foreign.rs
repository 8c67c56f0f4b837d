//! Files of a project that a layer cannot take over, because they belong to another group.
//!
//! Inside a native sandbox there is one user and one group. Where a file is the person's own but of
//! another group, the kernel cannot copy it into a layer, and every edit of it is lost (EOVERFLOW).
//! Only looks.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::error::{LaunchError, LaunchErrorKind};

/// Entries that are looked at; where there are more, the rest is taken to be like these.
const ENTRIES_MAX: usize = 100_000;
/// Files that are named.
const NAMED_MAX: usize = 3;
/// Directories that nothing is written to through a layer.
const NOT_LOOKED_INTO: [&str; 2] = [".git", ".ilchul"];

/// Returns some files and directories of a project that are the person's own but of another group.
pub(super) fn of_other_groups(project: &Path) -> Vec<PathBuf> {
    let own = (geteuid().as_raw(), getegid().as_raw());
    let mut found = Vec::new();
    let mut left = vec![project.to_path_buf()];
    let mut n_entries = 0;
    while let Some(path) = left.pop() {
        n_entries += 1;
        if found.len() >= NAMED_MAX || n_entries > ENTRIES_MAX {
            break;
        }
        // What vanishes meanwhile is of no group.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.uid() == own.0 && metadata.gid() != own.1 {
            let below = path.strip_prefix(project).unwrap_or(&path);
            let is_top = below.as_os_str().is_empty();
            found.push(if is_top {
                ".".into()
            } else {
                below.to_path_buf()
            });
        }
        if !metadata.is_dir() {
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        left.extend(
            entries
                .filter(|entry| {
                    !NOT_LOOKED_INTO
                        .iter()
                        .any(|name| entry.file_name() == *name)
                })
                .map(|entry| entry.path()),
        );
    }
    found
}

/// Says in a sentence without a full stop which files cannot be edited over a layer.
pub(super) fn sentence(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string().escape_debug().to_string())
        .collect();
    let more = if files.len() < NAMED_MAX {
        ""
    } else {
        " and perhaps more"
    };
    format!(
        "files that belong to another group cannot be edited in a layer: {}{more}",
        names.join(", ")
    )
}

/// Refuses a layer in which edits would be lost.
pub(super) fn refuse(project: &Path) -> Result<(), LaunchError> {
    let files = of_other_groups(project);
    if files.is_empty() {
        return Ok(());
    }
    Err(LaunchError::new(
        LaunchErrorKind::Denied,
        sentence(&files),
        format!(
            "use `--branch` with a repository, or change the group of the files: `chgrp -R {} <path>`.",
            getegid().as_raw()
        ),
    ))
}
