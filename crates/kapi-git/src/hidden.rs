//! Copying hidden checks over a clean checkout.
//!
//! The files come from the person and are trusted; the directory they go to holds a commit of an
//! agent's, so a link there is replaced and never written through.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use crate::owned_dir::{self, DirError, failed};

/// The most files, links and directories taken.
pub const ENTRIES_MAX: usize = 20_000;

/// The most bytes taken.
pub const BYTES_MAX: u64 = 1 << 30;

/// What a directory of hidden checks holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenFiles {
    /// The files and links, relative to the directory, by path.
    pub paths: Vec<PathBuf>,
    /// The bytes of all files.
    pub bytes: u64,
}

/// Hidden checks that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum HiddenError {
    /// A link whose target is outside the directory.
    #[error("use {}: the symbolic link points outside its directory", path.display())]
    LeavesDirectory {
        /// The link.
        path: PathBuf,
    },
    /// Something that is no file, link or directory.
    #[error("use {}: it is neither a file nor a directory", path.display())]
    SpecialFile {
        /// The path.
        path: PathBuf,
    },
    /// Git data at the top, where a checkout has its own.
    #[error("use {}: repository data cannot be copied over a checkout", path.display())]
    GitData {
        /// The path.
        path: PathBuf,
    },
    /// More than is taken.
    #[error("use {}: more than {ENTRIES_MAX} entries or {BYTES_MAX} bytes", dir.display())]
    TooMuch {
        /// The directory.
        dir: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error(transparent)]
    Dir(#[from] DirError),
}

/// Looks a directory of hidden checks over without opening any file in it.
///
/// An error here is the error that [`copy_hidden`] would give. The paths are what the checks will
/// replace, so that a caller can refuse those that the base tracks.
pub fn check(dir: &Path) -> Result<HiddenFiles, HiddenError> {
    let root = fs::canonicalize(dir).map_err(failed("resolve", dir))?;
    let mut found = HiddenFiles::default();
    let mut dirs = vec![PathBuf::new()];
    let mut n_entries = 0;
    while let Some(below) = dirs.pop() {
        let listed = dir.join(&below);
        for entry in fs::read_dir(&listed).map_err(failed("list", &listed))? {
            let entry = entry.map_err(failed("list", &listed))?;
            let path = below.join(entry.file_name());
            let metadata = entry.metadata().map_err(failed("inspect", &entry.path()))?;
            if below.as_os_str().is_empty() && path.as_os_str().eq_ignore_ascii_case(".git") {
                return Err(HiddenError::GitData { path: entry.path() });
            }
            n_entries += 1;
            if metadata.is_file() {
                found.bytes = found.bytes.saturating_add(metadata.len());
            }
            if n_entries > ENTRIES_MAX || found.bytes > BYTES_MAX {
                let dir = dir.to_path_buf();
                return Err(HiddenError::TooMuch { dir });
            }
            if metadata.is_dir() {
                dirs.push(path);
                continue;
            }
            if metadata.is_symlink() {
                check_link(dir, &root, &path)?;
            } else if !metadata.is_file() {
                return Err(HiddenError::SpecialFile { path: entry.path() });
            }
            found.paths.push(path);
        }
    }
    found.paths.sort();
    Ok(found)
}

/// Copies every file below `from` to the same relative path below `to`, replacing what is there.
///
/// Nothing is copied unless [`check`] accepts all of `from`.
pub fn copy_hidden(from: &Path, to: &Path) -> Result<HiddenFiles, HiddenError> {
    let found = check(from)?;
    let mut bytes_left = BYTES_MAX;
    for path in &found.paths {
        let (source, target) = (from.join(path), to.join(path));
        owned_dir::make_way(to, path)?;
        owned_dir::wipe(&target)?;
        if source.is_symlink() {
            let value = fs::read_link(&source).map_err(failed("read", &source))?;
            std::os::unix::fs::symlink(&value, &target).map_err(failed("create", &target))?;
        } else {
            // One more than may be, to see that a file grew since.
            let bytes = copy_file(&source, &target, bytes_left.saturating_add(1))?;
            let dir = from.to_path_buf();
            bytes_left = bytes_left
                .checked_sub(bytes)
                .ok_or(HiddenError::TooMuch { dir })?;
        }
    }
    Ok(found)
}

fn copy_file(source: &Path, target: &Path, bytes_max: u64) -> Result<u64, DirError> {
    let file = File::open(source).map_err(failed("open", source))?;
    let mode = file
        .metadata()
        .map_err(failed("inspect", source))?
        .permissions()
        .mode()
        & 0o777;
    let mut written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode | 0o600)
        .open(target)
        .map_err(failed("create", target))?;
    let mut limited = io::Read::take(file, bytes_max);
    let bytes = io::copy(&mut limited, &mut written).map_err(failed("copy to", target))?;
    fs::set_permissions(target, Permissions::from_mode(mode))
        .map_err(failed("set permissions of", target))?;
    Ok(bytes)
}

fn check_link(dir: &Path, root: &Path, path: &Path) -> Result<(), HiddenError> {
    let link = dir.join(path);
    let value = fs::read_link(&link).map_err(failed("read", &link))?;
    // The text catches a dangling link; where it really ends catches one that goes by other links.
    let ends_outside = fs::canonicalize(&link).is_ok_and(|end| !end.starts_with(root));
    if ends_outside || leaves(path, &value) {
        return Err(HiddenError::LeavesDirectory { path: link });
    }
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
