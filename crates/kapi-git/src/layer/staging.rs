//! A directory of Kapi's own where git sees a few files as if they were the whole tree.
//!
//! Holds copies of what a layer changed and of the rules that apply to it, so that git itself
//! ignores and converts as it would in a worktree, and never looks into the layer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::beneath::DirectoryRoot;
use crate::owned_dir::{self, DirError, failed};

/// A directory that was empty when it was opened.
#[derive(Debug)]
pub(crate) struct Staging {
    root: DirectoryRoot,
    made: BTreeSet<PathBuf>,
}

impl Staging {
    /// Empties the directory, or makes it.
    pub(crate) fn new(path: &Path) -> Result<Self, DirError> {
        owned_dir::wipe(path)?;
        owned_dir::create(path)?;
        Ok(Self {
            root: DirectoryRoot::open(path)?,
            made: BTreeSet::new(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Writes a small file.
    pub(crate) fn put_bytes(&mut self, path: &Path, bytes: &[u8]) -> Result<(), DirError> {
        let mut file = self.create(path, 0o600)?;
        file.write_all(bytes).map_err(self.failed("write", path))
    }

    /// Copies a file, at most `bytes_max` of it; returns how many bytes there were.
    pub(crate) fn put_file(
        &mut self,
        path: &Path,
        from: File,
        mode: u32,
        bytes_max: u64,
    ) -> Result<u64, DirError> {
        let mode = if mode & 0o100 == 0 { 0o600 } else { 0o700 };
        let mut file = self.create(path, mode)?;
        let mut limited = from.take(bytes_max);
        io::copy(&mut limited, &mut file).map_err(self.failed("copy to", path))
    }

    /// Makes a link.
    pub(crate) fn put_link(&mut self, path: &Path, target: &[u8]) -> Result<(), DirError> {
        self.make_way(path)?;
        let made = self.root.make_link(path, target);
        made.map_err(self.failed("create", path))
    }

    /// Takes a file back out; nothing there is fine.
    pub(crate) fn take_out(&self, path: &Path) -> Result<(), DirError> {
        match self.root.remove(path) {
            Err(error) if !super::beneath::is_absence(&error) => {
                Err(self.failed("remove", path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn create(&mut self, path: &Path, mode: u32) -> Result<File, DirError> {
        self.make_way(path)?;
        let made = self.root.create(path, mode);
        made.map_err(self.failed("create", path))
    }

    fn make_way(&mut self, path: &Path) -> Result<(), DirError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() || self.made.contains(parent) {
            return Ok(());
        }
        let mut dir = PathBuf::new();
        for part in parent.components() {
            dir.push(part);
            if self.made.contains(&dir) {
                continue;
            }
            let made = self.root.make_dir(&dir, 0o700);
            made.map_err(self.failed("create", &dir))?;
            self.made.insert(dir.clone());
        }
        Ok(())
    }

    fn failed(&self, op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirError + use<> {
        let path = self.path().join(path);
        move |error| failed(op, &path)(error)
    }
}
