//! Which files are nobody else's business, and how they are kept so: 0700 for directories, 0600 for
//! files.
//!
//! State directories are told by their name alone; what a file means is not known here. Whatever an
//! older Kapi left open is tightened by whoever writes there next.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path};

/// The name of every state directory, of a project and of a person.
const STATE_DIRECTORY: &str = ".ilchul";
/// What is directly in one and meant to be tracked, edited or checked out by people.
const SHARED: [&str; 8] = [
    ".gitignore",
    "agents",
    "config.toml",
    "guardrails",
    "loops",
    "policy.yaml",
    "skills",
    "worktrees",
];
/// The bits that let others in.
const OTHERS: u32 = 0o077;

/// Tells whether a file or directory is nobody else's business.
pub(crate) fn is_private(path: &Path) -> bool {
    let mut names = path.components();
    let state = Component::Normal(STATE_DIRECTORY.as_ref());
    if !names.any(|name| name == state) {
        return false;
    }
    match names.next() {
        Some(Component::Normal(name)) => !SHARED.iter().any(|shared| name == *shared),
        Some(_) | None => true,
    }
}

/// Returns the mode with which a directory is made.
fn directory_mode(path: &Path) -> u32 {
    if is_private(path) { 0o700 } else { 0o777 }
}

/// Returns the mode with which a file is made.
pub(crate) fn file_mode(path: &Path) -> u32 {
    if is_private(path) { 0o600 } else { 0o666 }
}

/// Takes away from others what an earlier writer left open: the file, and the directories of the
/// state directory that it is in. What is somebody else's stays as it is.
pub(crate) fn tighten(path: &Path, file: &File) -> io::Result<()> {
    if !is_private(path) {
        return Ok(());
    }
    let found = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if found.mode() & OTHERS != 0 && found.uid() == own {
        file.set_permissions(Permissions::from_mode(found.mode() & 0o700))?;
    }
    for directory in path.ancestors().skip(1).take_while(|dir| is_private(dir)) {
        let found = fs::symlink_metadata(directory)?;
        if found.is_dir() && found.mode() & OTHERS != 0 && found.uid() == own {
            fs::set_permissions(directory, Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Makes a directory and its missing parents; returns whether this very call made the last one.
pub(crate) fn create_dir(dir: &Path) -> io::Result<bool> {
    match make_last(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            let Some(parent) = parent else {
                return Err(error);
            };
            create_dir(parent)?;
            make_last(dir)
        }
        result => result,
    }
}

/// Makes one directory in a parent that is there.
fn make_last(dir: &Path) -> io::Result<bool> {
    let mode = directory_mode(dir);
    match DirBuilder::new().mode(mode).create(dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::metadata(dir)?.is_dir() {
                Ok(false)
            } else {
                Err(error)
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_private;

    #[test]
    fn state_is_private_and_what_people_edit_is_not() {
        for (path, expected) in [
            ("/p/.ilchul", true),
            ("/p/.ilchul/goals/001-a/events.jsonl", true),
            ("/home/user/.ilchul/spend", true),
            ("/p/.ilchul/loops/nightly.md", false),
            ("/p/.ilchul/policy.yaml", false),
            ("/home/user/.ilchul/worktrees/p-1/001-a/main.rs", false),
            ("/p/src/loops.rs", false),
            (".ilchul/inventory.json", true),
        ] {
            assert_eq!(is_private(Path::new(path)), expected, "{path}");
        }
    }
}
