//! Files and directories that only their owner can read, replaced in one step.
//!
//! Readers see the old content or the new, never half of one. Not synced unless asked for:
//! after a power cut there is no run to show.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::StatusError;

/// Whether a replacement must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    Derived,
    Synced,
}

/// Makes a directory for one's own eyes, unless it is there.
pub(super) fn make_dir(dir: &Path) -> Result<(), StatusError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(StatusError::at("create directory", dir))
}

/// Replaces a file; whatever is there under its name, a link too, is replaced and not followed.
///
/// The caller holds the lock of the file: the name of the new one on the way is fixed.
pub(super) fn replace(
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), StatusError> {
    let temporary = temporary_of(path);
    let write = || {
        match fs::remove_file(&temporary) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        if durability == Durability::Synced {
            file.sync_data()?;
        }
        fs::rename(&temporary, path)
    };
    write().map_err(StatusError::at("replace", path))
}

/// Returns the beginning of a regular file; `None` if there is no such file.
///
/// Follows no link in the last place and waits for nobody at a named pipe.
pub(super) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, StatusError> {
    let read = || {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StatusError::at("read", path)(error)),
    }
}

/// Checks that a directory is one, is no link to one, and belongs to this user alone.
pub(super) fn check_dir(dir: &Path) -> Result<(), StatusError> {
    let check = || {
        let metadata = fs::symlink_metadata(dir)?;
        let is_mine = metadata.uid() == rustix::process::geteuid().as_raw();
        let is_private = metadata.mode() & 0o077 == 0;
        if metadata.is_dir() && is_mine && is_private {
            Ok(())
        } else {
            let message = "not a directory for its owner alone";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        }
    };
    check().map_err(StatusError::at("use directory", dir))
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}
