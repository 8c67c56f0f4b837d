//! Directories that Kapi makes, fills and throws away.
//!
//! A mark beside a directory says that Kapi made it; [`discard`] removes nothing without one. The
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
    #[error("use {}: it is not empty and Kapi did not create it", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// The path has no last component to put a mark beside.
    #[error("use {} as one of Kapi's directories", path.display())]
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
    wipe(path)?;
    wipe(&beside)?;
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
    wipe(path)?;
    wipe(&beside)
}

/// Creates a directory and its missing parents.
pub(crate) fn create(path: &Path) -> Result<(), DirError> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

/// Removes whatever is at `path`, a whole tree too; nothing there is fine.
///
/// For a place whose owner is known to be Kapi, whatever a hostile program made of it: links are
/// removed and not followed, directories shut to their owner are opened, and a tree of any depth
/// takes neither stack nor open files. Asks for no mark.
pub fn wipe(path: &Path) -> Result<(), DirError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if is_absence(&error) => return Ok(()),
        Err(error) => return Err(failed("inspect", path)(error)),
    };
    if !found.is_dir() {
        return fs::remove_file(path).map_err(failed("remove", path));
    }
    // Every directory is moved up to the top before it is emptied, so that no path gets long.
    let mut flat = Flat {
        top: path,
        dirs: Vec::new(),
        n_names: 0,
    };
    flat.empty(path)?;
    while let Some(dir) = flat.dirs.pop() {
        flat.empty(&dir)?;
        fs::remove_dir(&dir).map_err(failed("remove", &dir))?;
    }
    fs::remove_dir(path).map_err(failed("remove", path))
}

/// Makes every directory on the way from `root` to `path` a real one that can be entered.
///
/// What stands in the way is removed, a link included; `root` itself is part of the way.
pub fn make_way(root: &Path, path: &Path) -> Result<(), DirError> {
    let mut dir = root.to_path_buf();
    make_real(&dir)?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        dir.push(part);
        make_real(&dir)?;
    }
    Ok(())
}

/// Lets the owner of a directory list, enter and change it.
pub(crate) fn open_up(dir: &Path) -> Result<(), DirError> {
    let found = fs::symlink_metadata(dir).map_err(failed("inspect", dir))?;
    let mode = found.permissions().mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    let opened = Permissions::from_mode(mode & 0o777 | 0o700);
    fs::set_permissions(dir, opened).map_err(failed("open up", dir))
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
    wipe(&temporary)?;
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
        Err(error) => return Err(failed("inspect", path)(error)),
    };
    if !found.is_dir() {
        return Ok(false);
    }
    let mut entries = fs::read_dir(path).map_err(failed("list", path))?;
    Ok(entries.next().is_none())
}

/// A tree that is being removed: directories still to be emptied, all of them right below `top`.
struct Flat<'a> {
    top: &'a Path,
    dirs: Vec<PathBuf>,
    n_names: u64,
}

impl Flat<'_> {
    /// Removes what is in `dir`, except for directories, which go to the top.
    fn empty(&mut self, dir: &Path) -> Result<(), DirError> {
        open_up(dir)?;
        for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
            let entry = entry.map_err(failed("list", dir))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(failed("inspect", &path))?;
            if !kind.is_dir() {
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            } else if dir == self.top {
                self.dirs.push(path);
            } else {
                self.lift(&path)?;
            }
        }
        Ok(())
    }

    fn lift(&mut self, dir: &Path) -> Result<(), DirError> {
        // A directory that its owner cannot change cannot get another parent either.
        open_up(dir)?;
        // Ends: a name is only taken by an entry that somebody put below the top before.
        loop {
            self.n_names += 1;
            let name = self.top.join(format!(".kapi-wipe-{}", self.n_names));
            if fs::symlink_metadata(&name).is_ok() {
                continue;
            }
            fs::rename(dir, &name).map_err(failed("move up", dir))?;
            self.dirs.push(name);
            return Ok(());
        }
    }
}

fn make_real(dir: &Path) -> Result<(), DirError> {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir());
    if is_dir {
        return open_up(dir);
    }
    wipe(dir)?;
    fs::create_dir(dir).map_err(failed("create", dir))
}

/// Tells whether there is nothing, or a file in the place of a directory.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns the directory whose existence says that Kapi made `path`.
pub(crate) fn beside(path: &Path) -> Result<PathBuf, DirError> {
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
