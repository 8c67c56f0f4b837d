//! Taking the progress file of an agent out of a workspace, before anything of it is kept.
//!
//! The agent wrote what is there, so no link is followed. Knows nothing of what the file says.

use std::path::Path;

use kapi_run::failure;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};
use rustix::io::Errno;

use super::error::LaunchError;

/// The directory and the file.
const DIRECTORY: &str = ".kapsis";
const NAME: &str = "progress.json";

/// Removes the progress file, and its directory if nothing else is in it.
pub(crate) fn forget(workspace: &Path) -> Result<(), LaunchError> {
    removed(workspace).map_err(|errno| {
        let error = std::io::Error::from(errno);
        failure::file("remove the progress file in", workspace, &error).into()
    })
}

fn removed(workspace: &Path) -> Result<(), Errno> {
    let directory = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let top = open(
        workspace,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let folder = match openat(&top, DIRECTORY, directory, Mode::empty()) {
        Ok(folder) => folder,
        // Nothing, a file, a link, or a directory closed to us: none of them has our file.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    match unlinkat(&folder, NAME, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM | Errno::ACCESS) => {}
        Err(errno) => return Err(errno),
    }
    match unlinkat(&top, DIRECTORY, AtFlags::REMOVEDIR) {
        Ok(())
        | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::ACCESS | Errno::PERM) => {
            Ok(())
        }
        Err(errno) => Err(errno),
    }
}
