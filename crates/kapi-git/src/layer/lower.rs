//! What a layer lies over: one directory, or a stack of them of which each hides what is further
//! down.
//!
//! Read as overlayfs reads it, without a mount: the topmost directory that has a path decides, a
//! mark or a file in the place of a directory ends the search. Directories of a stack are never
//! opaque.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, RawDir, Stat};

use super::beneath::{self, DirectoryRoot, is_absence};
use crate::owned_dir::{DirError, failed};

/// How much of a directory is listed at a time.
const LIST_BYTES: usize = 32 * 1024;

/// The directories that a layer lies over, the topmost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerStack {
    top: PathBuf,
    beneath: Vec<PathBuf>,
}

impl LowerStack {
    /// Returns a directory of the person's.
    #[must_use]
    pub fn project(top: &Path) -> Self {
        Self {
            top: top.to_path_buf(),
            beneath: Vec::new(),
        }
    }

    /// Returns the files of a commit.
    pub(crate) fn frozen(top: PathBuf, beneath: Vec<PathBuf>) -> Self {
        Self { top, beneath }
    }

    /// Returns the topmost directory.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the directories that show through it, the topmost first.
    #[must_use]
    pub fn beneath(&self) -> &[PathBuf] {
        &self.beneath
    }

    /// Returns where the file or link is that shows at a path, or the directory; none when nothing does.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn place(&self, path: &Path) -> Result<Option<PathBuf>, DirError> {
        let root = LowerRoot::open(self)?;
        let found = root.find(path);
        let found = found.map_err(failed("inspect", &self.top.join(path)))?;
        Ok(found.map(|(root, _)| root.path().join(path)))
    }

    /// Returns the directories, the topmost first.
    pub fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.top).chain(&self.beneath)
    }
}

/// The open directories of a stack.
#[derive(Debug)]
pub(crate) struct LowerRoot {
    top: DirectoryRoot,
    beneath: Vec<DirectoryRoot>,
}

impl LowerRoot {
    /// Opens them; their own paths are trusted.
    pub(crate) fn open(stack: &LowerStack) -> Result<Self, DirError> {
        let beneath = stack.dirs().skip(1);
        Ok(Self {
            top: DirectoryRoot::open(&stack.top)?,
            beneath: beneath
                .map(|dir| DirectoryRoot::open(dir))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Looks at what shows at `path`; `None` when nothing does.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        Ok(self.find(path)?.map(|(_, found)| found))
    }

    /// Looks at what shows at `path` whose directories the caller has just seen to be directories.
    pub(crate) fn stat_on_way(&self, path: &Path) -> io::Result<Option<Stat>> {
        if self.beneath.is_empty() {
            return match self.top.stat_on_way(path) {
                Ok(found) => Ok(Some(found)),
                Err(error) if is_absence(&error) => Ok(None),
                Err(error) => Err(error),
            };
        }
        self.stat(path)
    }

    /// Opens a regular file for reading; anything else is an error.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let found = self.find(path)?;
        let (root, _) = found.ok_or(io::ErrorKind::NotFound)?;
        root.file(path)
    }

    /// Returns the value of a link.
    pub(crate) fn link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.find(path)?;
        let (root, _) = found.ok_or(io::ErrorKind::NotFound)?;
        root.link(path)
    }

    /// Returns the names that show in a directory; none when there is no such directory.
    pub(crate) fn names(&self, dir: &Path) -> Result<BTreeSet<OsString>, DirError> {
        let (mut names, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for root in self.roots() {
            let at = root.path().join(dir);
            let opened = match root.dir(dir) {
                Ok(opened) => opened,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if is_absence(&error) => break,
                Err(error) => return Err(failed("open", &at)(error)),
            };
            let listed = names_in(&opened).map_err(failed("list", &at))?;
            let is_mark = |name: &OsString| {
                let found = root.stat(&dir.join(name));
                matches!(found, Ok(Some(found)) if is_mark(&found))
            };
            let (marks, shown): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_mark);
            names.extend(shown.into_iter().filter(|name| !hidden.contains(name)));
            hidden.extend(marks);
        }
        Ok(names)
    }

    fn roots(&self) -> impl Iterator<Item = &DirectoryRoot> {
        std::iter::once(&self.top).chain(&self.beneath)
    }

    /// Finds the directory of the stack whose content shows at `path`.
    fn find(&self, path: &Path) -> io::Result<Option<(&DirectoryRoot, Stat)>> {
        for root in self.roots() {
            match root.look(path) {
                Ok(found) if is_mark(&found) => return Ok(None),
                Ok(found) => return Ok(Some((root, found))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A mark or a file in the place of a directory.
                Err(error) if is_absence(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Tells whether this hides what lies further down.
fn is_mark(found: &Stat) -> bool {
    beneath::kind(found) == FileType::CharacterDevice && found.st_rdev == 0
}

/// Returns the names in an open directory.
pub(crate) fn names_in(dir: &OwnedFd) -> io::Result<BTreeSet<OsString>> {
    let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
    let mut listing = RawDir::new(dir.as_fd(), &mut buffer);
    let mut names = BTreeSet::new();
    while let Some(entry) = listing.next() {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.insert(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use super::{LowerRoot, LowerStack};
    use crate::layer::beneath::DirectoryRoot;

    #[test]
    fn the_topmost_directory_decides_and_marks_hide() {
        let location = tempfile::tempdir().unwrap();
        let [top, middle, ground] =
            ["top", "middle", "ground"].map(|name| location.path().join(name));
        for (dir, files) in [
            (&top, vec!["d/new", "same"]),
            (&middle, vec!["same", "only/here"]),
            (&ground, vec!["d/old", "same", "gone/a", "only/b", "kept/c"]),
        ] {
            for file in files {
                let at = dir.join(file);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                let mut file = fs::File::create(at).unwrap();
                let name = dir.file_name().unwrap();
                file.write_all(name.as_encoded_bytes()).unwrap();
            }
        }
        let middle_root = DirectoryRoot::open(&middle).unwrap();
        for mark in ["d", "gone", "only/b"] {
            middle_root.make_whiteout(Path::new(mark)).unwrap();
        }
        let stack = LowerStack::frozen(top.clone(), vec![middle.clone(), ground.clone()]);
        let root = LowerRoot::open(&stack).unwrap();
        let place = |path: &str| {
            let found = stack.place(Path::new(path)).unwrap();
            found.map(|at| {
                at.strip_prefix(location.path())
                    .unwrap()
                    .display()
                    .to_string()
            })
        };
        for (path, expected) in [
            ("same", Some("top/same")),
            ("d/new", Some("top/d/new")),
            ("d/old", None),
            ("gone/a", None),
            ("only/here", Some("middle/only/here")),
            ("only/b", None),
            ("kept/c", Some("ground/kept/c")),
            ("kept", Some("ground/kept")),
            ("nowhere/x", None),
        ] {
            assert_eq!(place(path).as_deref(), expected, "{path}");
        }
        let names = |dir: &str| {
            let names = root.names(Path::new(dir)).unwrap();
            let names: Vec<String> = names
                .into_iter()
                .map(|n| n.into_string().unwrap())
                .collect();
            names.join(" ")
        };
        assert_eq!(names(""), "d kept only same");
        assert_eq!(names("d"), "new");
        assert_eq!(names("only"), "here");
        assert_eq!(names("gone"), "");
    }
}
