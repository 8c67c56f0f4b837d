//! Directories that Kapi makes, fills and throws away.
//!
//! A file beside the directory says that Kapi made it; without it nothing is ever removed. The
//! mark is beside and not inside, because what is inside may have been written by an agent.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A file system operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The system refused.
    #[error("{op} {}", path.display())]
    Failed {
        /// The operation, as a verb.
        op: &'static str,
        /// The path it was for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is something at this path that Kapi did not make.
    #[error("use {}: it is not empty and Kapi did not make it", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// The path has no last component to put a mark beside.
    #[error("use {} as a directory of Kapi's own", path.display())]
    Unnamed {
        /// The path.
        path: PathBuf,
    },
}

/// Returns a function that turns an IO error into a [`DirError`].
pub(crate) fn failed(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirError {
    move |source| DirError::Failed {
        op,
        path: path.to_path_buf(),
        source,
    }
}

/// Makes `path` an empty directory, removing what Kapi put there before.
///
/// Returns a second directory beside it, also empty, for what belongs to the first but must not
/// be inside; its existence is the mark.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, DirError> {
    let beside = beside(path)?;
    let is_ours = fs::symlink_metadata(&beside).is_ok();
    if !is_ours && !is_missing_or_empty(path)? {
        return Err(DirError::Foreign {
            path: path.to_path_buf(),
        });
    }
    if let Some(parent) = path.parent() {
        create(parent)?;
    }
    // The mark goes last when removing and comes first when making, so that a crash between the
    // two never leaves a directory of ours without it.
    remove(path)?;
    remove(&beside)?;
    create(&beside)?;
    create(path)?;
    Ok(beside)
}

/// Removes a directory made by `prepare` and its mark; nothing there is fine.
pub fn discard(path: &Path) -> Result<(), DirError> {
    let beside = beside(path)?;
    if fs::symlink_metadata(&beside).is_err() {
        if is_missing_or_empty(path)? {
            return Ok(());
        }
        return Err(DirError::Foreign {
            path: path.to_path_buf(),
        });
    }
    remove(path)?;
    remove(&beside)
}

/// Creates a directory and its missing parents.
pub(crate) fn create(path: &Path) -> Result<(), DirError> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

/// Removes whatever is at `path`, a whole tree too, without following links.
///
/// Directories that their owner made unwritable are opened up first.
pub(crate) fn remove(path: &Path) -> Result<(), DirError> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.is_dir() {
        return fs::remove_file(path).map_err(failed("remove", path));
    }
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path, DEPTH_MAX);
    fs::remove_dir_all(path).map_err(failed("remove", path))
}

/// Writes a whole file that can be made again; not synced.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), DirError> {
    let mut file = File::create(path).map_err(failed("create", path))?;
    file.write_all(bytes).map_err(failed("write", path))
}

/// Replaces a file atomically and makes it durable.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), DirError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".kapi-tmp");
    let temporary = path.with_file_name(name);
    remove(&temporary)?;
    let mut file = File::create_new(&temporary).map_err(failed("create", &temporary))?;
    file.write_all(bytes).map_err(failed("write", &temporary))?;
    file.sync_all().map_err(failed("sync", &temporary))?;
    fs::rename(&temporary, path).map_err(failed("replace", path))?;
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let dir = File::open(parent).map_err(failed("open", parent))?;
    dir.sync_all().map_err(failed("sync", parent))
}

/// Tells whether there is nothing at `path`, or an empty directory.
pub(crate) fn is_missing_or_empty(path: &Path) -> Result<bool, DirError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(failed("look at", path)(error)),
    };
    if !found.is_dir() {
        return Ok(false);
    }
    let mut entries = fs::read_dir(path).map_err(failed("list", path))?;
    Ok(entries.next().is_none())
}

/// The deepest directory that is opened up before a removal is tried again.
const DEPTH_MAX: usize = 512;

fn open_up(dir: &Path, depth_left: usize) {
    let opened = fs::set_permissions(dir, Permissions::from_mode(0o700));
    let (Ok(()), Ok(entries), true) = (opened, fs::read_dir(dir), depth_left > 0) else {
        // The removal that follows names the path that could not be opened.
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth_left - 1);
        }
    }
}

fn beside(path: &Path) -> Result<PathBuf, DirError> {
    let Some(name) = path.file_name() else {
        return Err(DirError::Unnamed {
            path: path.to_path_buf(),
        });
    };
    let mut mark = OsString::from(".");
    mark.push(name);
    mark.push(".kapi");
    Ok(path.with_file_name(mark))
}
