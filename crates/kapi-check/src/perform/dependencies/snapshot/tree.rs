//! Listing a tree of files and taking it over into a snapshot.
//!
//! Links are taken as links; sockets, pipes and devices are left out, and so is what tools keep for
//! themselves between runs: it is output and not a dependency.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_run::failure;

/// How many entries a tree may have.
const ENTRIES_MAX: usize = 600_000;
/// How many bytes are copied where files can be neither cloned nor linked.
pub(super) const COPIED_BYTES_MAX: u64 = 4 << 30;
/// What tools keep between their runs in a directory of dependencies.
const KEPT_BY_TOOLS: &[&str] = &[".cache", ".vite", ".vite-temp", ".vitest"];

/// One file, link or directory of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnapshotEntry {
    /// Below the tree's top.
    pub(super) path: PathBuf,
    kind: EntryKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EntryKind {
    Directory,
    Link(PathBuf),
    File {
        size: u64,
        mtime: (i64, i64),
        inode: u64,
    },
}

/// How much of a tree was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakeResult {
    Whole,
    TooLarge,
}

impl SnapshotEntry {
    /// Returns what is noted of it, in the n-th tree.
    pub(super) fn line(&self, n: usize) -> Vec<u8> {
        let mut line = match &self.kind {
            EntryKind::Directory => format!("{n} d "),
            EntryKind::Link(target) => format!("{n} l {:?} ", target.as_os_str()),
            EntryKind::File { size, mtime, inode } => {
                format!("{n} f {size} {}.{} {inode} ", mtime.0, mtime.1)
            }
        }
        .into_bytes();
        line.extend_from_slice(self.path.as_os_str().as_bytes());
        line
    }
}

/// Lists a tree without some files, in the order of paths; `None` of one with too many entries.
pub(super) fn entries(
    top: &Path,
    without: &[PathBuf],
) -> Result<Option<Vec<SnapshotEntry>>, Failure> {
    let without: BTreeSet<&PathBuf> = without.iter().collect();
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        let at = top.join(&relative);
        let failed = |error: &std::io::Error| failure::file("list", &at, error);
        let listed = match fs::read_dir(&at) {
            Ok(listed) => listed,
            // What cannot be read here cannot be read inside either.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(failed(&error)),
        };
        for entry in listed {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name();
            let is_kept = KEPT_BY_TOOLS.iter().any(|kept| name == *kept);
            let path = relative.join(&name);
            if relative.as_os_str().is_empty() && is_kept || without.contains(&path) {
                continue;
            }
            // What vanishes meanwhile is not there.
            let Ok(data) = entry.metadata() else {
                continue;
            };
            let kind = if data.is_dir() {
                waiting.push(path.clone());
                EntryKind::Directory
            } else if data.is_symlink() {
                EntryKind::Link(fs::read_link(entry.path()).unwrap_or_default())
            } else if data.is_file() {
                EntryKind::File {
                    size: data.size(),
                    mtime: (data.mtime(), data.mtime_nsec()),
                    inode: data.ino(),
                }
            } else {
                continue;
            };
            found.push(SnapshotEntry { path, kind });
            if found.len() > ENTRIES_MAX {
                return Ok(None);
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Some(found))
}

/// How files are taken; one that does not work is not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyMethod {
    Cloned,
    Linked,
    Copied,
}

/// Takes a tree over.
pub(super) fn take(
    from: &Path,
    to: &Path,
    entries: &[SnapshotEntry],
    bytes_left: &mut u64,
) -> Result<TakeResult, Failure> {
    fs::create_dir_all(to).map_err(|error| failure::file("create", to, &error))?;
    let mut how = CopyMethod::Cloned;
    for entry in entries {
        let (source, target) = (from.join(&entry.path), to.join(&entry.path));
        let made = match &entry.kind {
            EntryKind::Directory => fs::create_dir(&target),
            EntryKind::Link(at) => symlink(at, &target),
            EntryKind::File { size, .. } => {
                how = taken(&source, &target, how)?;
                let copied = if how == CopyMethod::Copied { *size } else { 0 };
                let Some(left) = bytes_left.checked_sub(copied) else {
                    return Ok(TakeResult::TooLarge);
                };
                *bytes_left = left;
                Ok(())
            }
        };
        made.map_err(|error| failure::file("create", &target, &error))?;
    }
    Ok(TakeResult::Whole)
}

/// Takes one file over, in a way that works, and returns that.
fn taken(source: &Path, target: &Path, how: CopyMethod) -> Result<CopyMethod, Failure> {
    if how == CopyMethod::Cloned && cloned(source, target) {
        return Ok(CopyMethod::Cloned);
    }
    if how != CopyMethod::Copied && fs::hard_link(source, target).is_ok() {
        return Ok(CopyMethod::Linked);
    }
    match fs::copy(source, target) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(how),
        Err(error) => return Err(failure::file("copy", source, &error)),
    }
    let since = fs::metadata(source).and_then(|data| data.modified());
    if let (Ok(since), Ok(file)) = (since, fs::File::options().write(true).open(target)) {
        // Caches of byte code are right only for files of the same age.
        drop(file.set_modified(since));
    }
    Ok(match how {
        CopyMethod::Linked => CopyMethod::Linked,
        CopyMethod::Cloned | CopyMethod::Copied => CopyMethod::Copied,
    })
}

/// Clones a file where the file system shares content between files.
fn cloned(source: &Path, target: &Path) -> bool {
    let Ok(from) = fs::File::open(source) else {
        return false;
    };
    let Ok(to) = fs::File::create_new(target) else {
        return false;
    };
    if rustix::fs::ioctl_ficlone(to.as_fd(), from.as_fd()).is_err() {
        drop(fs::remove_file(target));
        return false;
    }
    let Ok(data) = from.metadata() else {
        return false;
    };
    let mode = fs::Permissions::from_mode(data.mode() & 0o777);
    let since = data.modified();
    let set = to
        .set_permissions(mode)
        .and_then(|()| to.set_modified(since?));
    if set.is_err() {
        drop(fs::remove_file(target));
    }
    set.is_ok()
}
