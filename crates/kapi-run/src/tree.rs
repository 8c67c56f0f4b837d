//! The files of a directory and below, as relative paths; links are named and not followed.
//!
//! Leaves out git's own directories and Kapi's. Reads no content.

use std::path::Path;
use std::{fs, io};

use kapi_core::failure::Failure;

use crate::failure;

/// The most entries that are looked at.
const ENTRIES_MAX: usize = 500_000;
/// Directories that are nobody's work.
const LEFT_OUT: &[&str] = &[".git", ".ilchul"];

/// Returns the files below a directory, sorted; a name that is no text is left out.
///
/// # Errors
/// When there are too many, or the directory cannot be read. One below it that cannot be read
/// holds nothing that could be named.
pub fn files(root: &Path) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    let mut n_entries = 0;
    let mut left = vec![String::new()];
    while let Some(dir) = left.pop() {
        let at = root.join(&dir);
        let listed = match fs::read_dir(&at) {
            Ok(listed) => listed,
            Err(error) if !dir.is_empty() && is_closed(&error) => continue,
            Err(error) => return Err(failure::file("list", &at, &error)),
        };
        for entry in listed.flatten() {
            n_entries += 1;
            if n_entries > ENTRIES_MAX {
                return Err(Failure {
                    message: format!("inspect {}: more than {ENTRIES_MAX} files", root.display()),
                    hint: None,
                });
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                continue;
            };
            let path = if dir.is_empty() {
                name.clone()
            } else {
                format!("{dir}/{name}")
            };
            if !kind.is_dir() {
                files.push(path);
            } else if !LEFT_OUT.contains(&name.as_str()) {
                left.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Tells whether a directory went, or is closed to us.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}
