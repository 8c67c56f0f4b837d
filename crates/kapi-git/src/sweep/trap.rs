//! Pipes and devices in places where git opens whatever it finds.
//!
//! Opening a pipe waits for a writer that never comes, and a device may never end. Such a thing
//! holds nothing anybody could lose, so it is removed before git looks. Other special files stay.

use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{ENTRIES_MAX, PATH_BYTES_MAX, is_special, open_dir};
use crate::repository::path_of;

/// The files that git opens in every directory of a working tree.
const RULE_FILES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// The files that git opens to see whether there is a repository, and what it has checked out.
const REPOSITORY_FILES: [&str; 4] = ["HEAD", "commondir", "config", "packed-refs"];

/// The longest `.git` file that git reads.
const LINK_BYTES_MAX: u64 = 1 << 20;

/// Removes a special file if git would open it for its name.
pub(super) fn defuse_rules(path: &Path) {
    if RULE_FILES.iter().any(|name| path.ends_with(name)) {
        remove(path);
    }
}

/// Makes sure that git can look at what is called `.git` below a workspace and come back.
pub(super) fn defuse_repository(git: &Path) {
    if git.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return defuse_dir(git);
    }
    let target = target_of(git);
    let is_trap = REPOSITORY_FILES
        .iter()
        .any(|name| leads_to_special(&target.join(name)));
    if is_trap || leads_to_special(git) {
        remove(git);
    }
}

/// Removes everything in a repository that is a special file or a link to one.
fn defuse_dir(git: &Path) {
    let mut dirs = vec![git.to_path_buf()];
    let mut entries_left = ENTRIES_MAX;
    while let Some(dir) = dirs.pop() {
        // What we cannot list, git cannot open.
        let Ok(entries) = open_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let Some(left) = entries_left.checked_sub(1) else {
                return;
            };
            entries_left = left;
            let path = entry.path();
            // Git opens no longer path either.
            if path.as_os_str().len() > PATH_BYTES_MAX {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(kind) if kind.is_file() => {}
                Ok(_) if leads_to_special(&path) => remove(&path),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Returns the directory that a `.git` which is none leads to: itself when it is a link.
fn target_of(git: &Path) -> PathBuf {
    let is_file = git.symlink_metadata().is_ok_and(|found| found.is_file());
    let mut text = Vec::new();
    if !is_file {
        return git.to_path_buf();
    }
    let read =
        fs::File::open(git).and_then(|file| file.take(LINK_BYTES_MAX).read_to_end(&mut text));
    let named = text.strip_prefix(b"gitdir: ").filter(|_| read.is_ok());
    let named = named.unwrap_or_default().trim_ascii_end();
    git.parent().unwrap_or(Path::new("/")).join(path_of(named))
}

fn leads_to_special(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&0)
        && fs::metadata(path).is_ok_and(|found| is_special(found.file_type()))
}

fn remove(path: &Path) {
    // Its directory was opened up; what still cannot be removed is nothing that we made worse.
    drop(fs::remove_file(path));
}
