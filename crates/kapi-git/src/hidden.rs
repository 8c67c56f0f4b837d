//! Copying hidden checks over a clean checkout.
//!
//! The files come from the person and are trusted; the directory they go to holds a commit of an
//! agent's, so a link there is replaced and never written through.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use crate::owned_dir::{self, DirError, failed};

/// The most files copied.
pub const FILES_MAX: usize = 20_000;

/// The most bytes copied.
pub const BYTES_MAX: u64 = 1 << 30;

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// The files and links, relative to both directories, by path.
    pub paths: Vec<PathBuf>,
    /// The bytes of all files.
    pub bytes: u64,
}

/// Hidden checks that could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum HiddenError {
    /// A link whose target is outside the directory.
    #[error("copy {}: the link leads out of its directory", path.display())]
    LeavesDirectory {
        /// The link.
        path: PathBuf,
    },
    /// Something that is no file, link or directory.
    #[error("copy {}: it is neither a file nor a directory", path.display())]
    SpecialFile {
        /// The path.
        path: PathBuf,
    },
    /// More than is copied.
    #[error("copy {}: more than {FILES_MAX} files or {BYTES_MAX} bytes", dir.display())]
    TooMuch {
        /// The directory.
        dir: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
}

/// Copies every file below `from` to the same relative path below `to`, replacing what is there.
pub fn copy_hidden(from: &Path, to: &Path) -> Result<Copied, HiddenError> {
    let mut copied = Copied::default();
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        let source = from.join(&dir);
        for entry in fs::read_dir(&source).map_err(failed("list", &source))? {
            let entry = entry.map_err(failed("list", &source))?;
            let path = dir.join(entry.file_name());
            let kind = entry
                .file_type()
                .map_err(failed("look at", &entry.path()))?;
            if kind.is_dir() {
                dirs.push(path);
                continue;
            }
            clear_way(to, &path)?;
            if kind.is_symlink() {
                copy_link(from, to, &path)?;
            } else if kind.is_file() {
                let bytes_left = BYTES_MAX - copied.bytes;
                copied.bytes += copy_file(from, to, &path, bytes_left)?;
            } else {
                return Err(HiddenError::SpecialFile { path: entry.path() });
            }
            copied.paths.push(path);
            if copied.paths.len() > FILES_MAX || copied.bytes >= BYTES_MAX {
                return Err(HiddenError::TooMuch {
                    dir: from.to_path_buf(),
                });
            }
        }
    }
    copied.paths.sort();
    Ok(copied)
}

/// Makes every directory on the way to `path` a real one, and `path` itself free.
fn clear_way(root: &Path, path: &Path) -> Result<(), DirError> {
    let mut dir = root.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        dir.push(part);
        let is_dir = fs::symlink_metadata(&dir).is_ok_and(|found| found.is_dir());
        if !is_dir {
            owned_dir::remove(&dir)?;
            fs::create_dir(&dir).map_err(failed("create", &dir))?;
        }
    }
    owned_dir::remove(&root.join(path))
}

fn copy_file(from: &Path, to: &Path, path: &Path, bytes_max: u64) -> Result<u64, DirError> {
    let (source, target) = (from.join(path), to.join(path));
    let file = File::open(&source).map_err(failed("open", &source))?;
    let mode = file
        .metadata()
        .map_err(failed("look at", &source))?
        .permissions()
        .mode()
        & 0o777;
    let mut written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode | 0o600)
        .open(&target)
        .map_err(failed("create", &target))?;
    let mut limited = io::Read::take(file, bytes_max);
    let bytes = io::copy(&mut limited, &mut written).map_err(failed("copy to", &target))?;
    fs::set_permissions(&target, Permissions::from_mode(mode))
        .map_err(failed("set permissions of", &target))?;
    Ok(bytes)
}

fn copy_link(from: &Path, to: &Path, path: &Path) -> Result<(), HiddenError> {
    let (source, target) = (from.join(path), to.join(path));
    let value = fs::read_link(&source).map_err(failed("read", &source))?;
    // The text catches a dangling link; where it really ends catches one that goes by other links.
    let root = fs::canonicalize(from).map_err(failed("resolve", from))?;
    let ends_outside = fs::canonicalize(&source).is_ok_and(|end| !end.starts_with(&root));
    if ends_outside || leaves(path, &value) {
        return Err(HiddenError::LeavesDirectory { path: source });
    }
    std::os::unix::fs::symlink(&value, &target).map_err(failed("create", &target))?;
    Ok(())
}

/// Tells whether a link at `path` with this value leads above the directory `path` is relative to.
///
/// By its text alone: a step up is only taken from a name that the text itself gave.
fn leaves(path: &Path, value: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in value.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::leaves;

    #[test]
    fn a_link_may_stay_in_its_directory_only() {
        for (path, value, expected) in [
            ("a", "b", false),
            ("d/a", "../b", false),
            ("d/a", "./x/../../b", false),
            ("a", "../b", true),
            ("d/a", "../../b", true),
            ("a", "/etc/passwd", true),
            ("a", "x/../../b", true),
        ] {
            assert_eq!(
                leaves(Path::new(path), Path::new(value)),
                expected,
                "{path} {value}"
            );
        }
    }
}
