//! One walk over a workspace before git looks at it.
//!
//! Git stops at what it may not read, is silent about what it cannot store and waits for ever on a
//! pipe it opens by name; this walk opens up the first, lists the second and removes the third. It
//! follows no link and takes nothing that is written in a file for true.

mod trap;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::refused_path::{RefusalReason, RefusedPath};

/// The most entries one walk looks at.
const ENTRIES_MAX: usize = 4_000_000;

/// The longest path below the workspace that git can open.
pub(crate) const PATH_BYTES_MAX: usize = 4_000;

/// Opens up everything below `root` and returns what no commit can hold, by relative path.
pub(crate) fn sweep(root: &Path) -> Vec<RefusedPath> {
    let mut refused = Vec::new();
    let mut dirs = vec![PathBuf::new()];
    let mut n_entries = 0;
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = open_dir(&root.join(&dir)) else {
            refused.push(RefusedPath {
                path: dir,
                why: RefusalReason::Unreadable,
            });
            continue;
        };
        for entry in entries {
            n_entries += 1;
            if n_entries > ENTRIES_MAX {
                refused.push(RefusedPath {
                    path: dir,
                    why: RefusalReason::TooManyEntries,
                });
                return refused;
            }
            let Ok(entry) = entry else {
                refused.push(RefusedPath {
                    path: dir.clone(),
                    why: RefusalReason::Unreadable,
                });
                continue;
            };
            let path = dir.join(entry.file_name());
            match look(&entry, &path) {
                SweepEntry::Nothing => {}
                SweepEntry::Directory => dirs.push(path),
                SweepEntry::Refused(why) => refused.push(RefusedPath { path, why }),
            }
        }
    }
    refused
}

enum SweepEntry {
    Nothing,
    Directory,
    Refused(RefusalReason),
}

fn look(entry: &fs::DirEntry, path: &Path) -> SweepEntry {
    let is_git = entry.file_name() == OsStr::new(".git");
    if is_git && path.components().count() == 1 {
        // The workspace's own link to its repository.
        return SweepEntry::Nothing;
    }
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return SweepEntry::Refused(RefusalReason::PathTooLong);
    }
    let Ok(found) = entry.metadata() else {
        return SweepEntry::Refused(RefusalReason::Unreadable);
    };
    let kind = found.file_type();
    if is_git {
        trap::defuse_repository(&entry.path());
        return SweepEntry::Refused(RefusalReason::GitDirectory);
    }
    if kind.is_dir() {
        return SweepEntry::Directory;
    }
    if is_special(kind) {
        trap::defuse_rules(&entry.path());
        return SweepEntry::Refused(RefusalReason::SpecialFile);
    }
    let mode = found.permissions().mode();
    if kind.is_file() && mode & 0o400 == 0 {
        let opened = Permissions::from_mode(mode & 0o777 | 0o400);
        if fs::set_permissions(entry.path(), opened).is_err() {
            return SweepEntry::Refused(RefusalReason::Unreadable);
        }
    }
    SweepEntry::Nothing
}

fn is_special(kind: fs::FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}

fn open_dir(dir: &Path) -> io::Result<fs::ReadDir> {
    let mode = fs::symlink_metadata(dir)?.permissions().mode();
    if mode & 0o700 != 0o700 {
        fs::set_permissions(dir, Permissions::from_mode(mode & 0o777 | 0o700))?;
    }
    fs::read_dir(dir)
}
