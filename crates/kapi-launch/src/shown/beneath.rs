//! Reading, making and removing files below a directory that an agent may have written: no link is
//! followed on the way, and nothing is left out of the directory.
//!
//! Knows nothing of what the files are for.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Reads a plain file of at most so many bytes; `None` for anything else.
pub(crate) fn read(root: &Path, path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let top = File::open(root).ok()?;
    let opened = openat2(&top, path, flags, Mode::empty(), RESOLVE).ok()?;
    let file = File::from(opened);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > bytes_max {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Makes a file that is not there, with the directories on its way; `false` when something is in
/// the way.
pub(crate) fn make(root: &Path, path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<bool> {
    let in_the_way = [Errno::EXIST, Errno::NOTDIR, Errno::LOOP, Errno::XDEV];
    match try_make(root, path, mode) {
        Ok(mut file) => file.write_all(bytes).map(|()| true),
        Err(errno) if in_the_way.contains(&errno) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn try_make(root: &Path, path: &Path, mode: u32) -> Result<File, Errno> {
    let mut dir =
        File::open(root).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(Errno::XDEV);
        };
        if parts.peek().is_none() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(mode);
            return openat2(&dir, name, flags, mode, RESOLVE).map(File::from);
        }
        match mkdirat(&dir, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        dir = openat2(&dir, name, flags, Mode::empty(), RESOLVE).map(File::from)?;
    }
    Err(Errno::EXIST)
}

/// Removes a file, and the directories on its way that are empty then.
pub(crate) fn remove(root: &Path, path: &Path) -> std::io::Result<()> {
    let top = File::open(root)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut what = AtFlags::empty();
    for at in path.ancestors() {
        let (Some(name), Some(parent)) = (at.file_name(), at.parent()) else {
            break;
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let dir = openat2(&top, parent, flags, Mode::empty(), RESOLVE)?;
        match unlinkat(&dir, name, what) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Something else is in it.
            Err(Errno::NOTEMPTY | Errno::EXIST) if what == AtFlags::REMOVEDIR => break,
            Err(errno) => return Err(errno.into()),
        }
        what = AtFlags::REMOVEDIR;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{make, read, remove};

    #[test]
    fn what_is_made_can_be_read_and_goes_with_its_directories() {
        let root = tempfile::tempdir().unwrap();
        let path = Path::new("a/b/c.txt");
        assert!(make(root.path(), path, b"x", 0o644).unwrap());
        assert!(!make(root.path(), path, b"y", 0o644).unwrap());
        assert_eq!(read(root.path(), path, 9).unwrap(), b"x");
        assert_eq!(read(root.path(), path, 0), None);
        fs::create_dir(root.path().join("a/kept")).unwrap();
        remove(root.path(), path).unwrap();
        assert!(root.path().join("a").is_dir() && !root.path().join("a/b").exists());
    }

    #[test]
    fn a_link_leads_nowhere() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::File::create(outside.path().join("f")).unwrap();
        symlink(outside.path(), root.path().join("l")).unwrap();
        let path = Path::new("l/f");
        assert_eq!(read(root.path(), path, 9), None);
        assert!(!make(root.path(), Path::new("l/g"), b"x", 0o644).unwrap());
        assert!(!make(root.path(), Path::new("../g"), b"x", 0o644).unwrap());
        remove(root.path(), path).unwrap_err();
        assert!(outside.path().join("f").exists() && !outside.path().join("g").exists());
    }
}
