//! How many of a project's files a merge would delete, as a person counts them: a directory that
//! goes is all the files in it.
//!
//! Only looks.

use std::fs;
use std::path::Path;

use kapi_core::deletions::Deletions;

use super::MergedPath;

/// What a merge does to a path that goes.
const DELETE: &str = "delete";
/// Files that are counted; a project of more is large enough.
const FILES_MAX: u64 = 1_000_000;
/// Directories that hold no files of the project.
const NOT_COUNTED: [&str; 2] = [".git", ".ilchul"];

/// Counts what the paths of a merge delete.
pub(super) fn count(project: &Path, paths: &[MergedPath]) -> Deletions {
    let going = paths.iter().filter(|path| path.verdict == DELETE);
    let going: Vec<&MergedPath> = going.collect();
    if going.is_empty() {
        return Deletions::default();
    }
    let mut deleted = 0;
    for path in going {
        count_below(&project.join(&path.path), &mut deleted);
    }
    let mut of = 0;
    count_below(project, &mut of);
    Deletions { deleted, of }
}

fn count_below(path: &Path, n_files: &mut u64) {
    // What cannot be looked at cannot be deleted either.
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    if !found.is_dir() {
        *n_files += 1;
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let is_counted = !NOT_COUNTED.iter().any(|name| entry.file_name() == *name);
        if is_counted && *n_files < FILES_MAX {
            count_below(&entry.path(), n_files);
        }
    }
}
