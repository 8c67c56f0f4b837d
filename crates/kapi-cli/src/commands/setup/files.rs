//! The files of a client, read and written as their owner would: through links, with the mode they have.
//!
//! Knows no client and no format.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use kapi_sys::disk::replace_durably;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The mode of a file that is new: not everything in a client's settings is for others.
const NEW_FILE_MODE: u32 = 0o600;

/// Reads a text; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            Error::usage(format!("{} is not UTF-8", path.display()))
                .with_hint("Kapi changes nothing in it. Repair the file, then try again.")
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, &error)),
    }
}

/// Writes a text. Returns the directories that were made for it, the innermost first.
pub(super) fn write(context: &Context, path: &Path, text: &str) -> Result<Vec<PathBuf>, Error> {
    let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    for dir in missing.iter().rev() {
        fs::create_dir(dir).map_err(|error| failed("create", dir, &error))?;
    }
    // A link leads to where its owner keeps the file, and stays one.
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(failed("find", path, &error)),
    };
    let mode = fs::metadata(&real).map_or(NEW_FILE_MODE, |it| it.permissions().mode());
    replace_durably(&context.disk, &real, text.as_bytes())
        .map_err(|error| Error::failed(&error))?;
    fs::set_permissions(&real, fs::Permissions::from_mode(mode))
        .map_err(|error| failed("set the mode of", &real, &error))?;
    Ok(missing)
}

/// Removes a file, which may be gone.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", path, &error)),
    }
}

/// Removes a directory if nothing is in it.
pub(super) fn remove_empty(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir(dir) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(failed("remove", dir, &error)),
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        Exit::Failed,
        format!("failed to {action} {}: {error}", path.display()),
    )
}
