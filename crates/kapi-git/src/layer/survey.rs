//! What lies in a layer, found by one walk that believes nothing.
//!
//! Directories are entered by descriptor, files are not opened but for marks, and what no commit
//! or copy may hold is told apart. Knows nothing of git but its directory's name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, Stat, chmodat, fgetxattr, openat, readlinkat, statat,
};

use super::beneath::{self, DirectoryRoot};
use super::lower::{LowerRoot, LowerStack};
use super::{Layer, LayerError, Marks};
use crate::owned_dir::failed;

/// The most entries one walk looks at.
pub const ENTRIES_MAX: usize = 4_000_000;

/// The longest path below a layer that is looked into; git opens none that is longer.
pub const PATH_BYTES_MAX: usize = 4_000;

/// How much of a directory is listed at a time.
const LIST_BYTES: usize = 32 * 1024;

/// Everything in a layer, by path.
#[derive(Debug)]
pub(crate) struct LayerSurvey {
    pub(crate) upper: DirectoryRoot,
    pub(crate) lower: LowerRoot,
    /// By the bytes of the path, which compare far faster than its parts.
    entries: BTreeMap<OsString, LayerEntry>,
}

/// One thing in a layer, and what lies below it.
#[derive(Debug, Clone)]
pub(crate) struct LayerEntry {
    pub(crate) what: LayerPathKind,
    pub(crate) below: LowerPath,
}

/// What is in a layer at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LayerPathKind {
    /// A directory; an opaque one hides everything below it.
    Directory { is_opaque: bool },
    /// A regular file with its permission bits.
    File { bytes: u64, mode: u32 },
    /// A symbolic link.
    Link { target: OsString },
    /// The mark that what lies below is gone.
    Whiteout,
    /// A pipe, socket or device.
    Special,
    /// Anything named `.git`; not entered.
    Git,
    /// Could not be looked at or entered.
    Unreadable,
    /// A path longer than [`PATH_BYTES_MAX`]; not entered.
    TooLong,
}

/// What lies below a path, in the lower directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LowerPath {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File { bytes: u64, mode: u32 },
    /// A symbolic link.
    Link,
    /// Something else.
    Other,
}

impl LowerPath {
    /// Returns what this is.
    pub(crate) fn of(found: &Stat) -> Self {
        match beneath::kind(found) {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File {
                bytes: beneath::size(found),
                mode: found.st_mode & 0o7777,
            },
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl LayerSurvey {
    /// Walks over the upper directory of a layer.
    pub(crate) fn of(layer: &Layer, lower: &LowerStack) -> Result<Self, LayerError> {
        let upper = layer.upper();
        if !upper.is_dir() {
            return Err(LayerError::Gone { path: upper });
        }
        let mut walk = SurveyWalk {
            survey: Self {
                upper: DirectoryRoot::open(&upper)?,
                lower: LowerRoot::open(lower)?,
                entries: BTreeMap::new(),
            },
            marks: layer.marks(),
            dirs: vec![(PathBuf::new(), LowerPath::Directory)],
        };
        let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
        while let Some((dir, below)) = walk.dirs.pop() {
            walk.list(&dir, below, &mut buffer)?;
        }
        Ok(walk.survey)
    }

    /// Returns everything in the layer, a directory before what is in it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &LayerEntry)> {
        let entries = self.entries.iter();
        entries.map(|(path, entry)| (Path::new(path), entry))
    }

    /// Returns what the layer has at a path, and what lies below there.
    pub(crate) fn entry(&self, path: &Path) -> Option<&LayerEntry> {
        self.entries.get(path.as_os_str())
    }

    /// Returns what the layer has at a path.
    pub(crate) fn what(&self, path: &Path) -> Option<&LayerPathKind> {
        self.entry(path).map(|entry| &entry.what)
    }

    /// Tells whether the layer keeps what lies below `dir`, a directory or not, from being seen.
    pub(crate) fn hides(&self, dir: &Path) -> bool {
        dir.ancestors()
            .filter(|at| !at.as_os_str().is_empty())
            .any(|at| match self.what(at) {
                None => false,
                Some(LayerPathKind::Directory { is_opaque }) => *is_opaque,
                Some(_) => true,
            })
    }
}

struct SurveyWalk {
    survey: LayerSurvey,
    marks: Marks,
    /// Directories to list, with what lies below them.
    dirs: Vec<(PathBuf, LowerPath)>,
}

/// A directory of the layer, open, with what lies below it.
struct SurveyDirectory<'a> {
    path: &'a Path,
    upper: OwnedFd,
    below: LowerPath,
}

impl SurveyWalk {
    fn list(
        &mut self,
        path: &Path,
        below: LowerPath,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<(), LayerError> {
        let opened = self.survey.upper.dir(path);
        let Ok(upper) = opened.or_else(|_shut| self.survey.upper.open_up(path)) else {
            self.record(path, LayerPathKind::Unreadable, below);
            return Ok(());
        };
        if !path.as_os_str().is_empty() {
            let is_opaque = self.is_opaque(upper.as_fd(), path)?;
            self.record(path, LayerPathKind::Directory { is_opaque }, below);
        }
        let opened = SurveyDirectory { path, upper, below };
        let mut listing = RawDir::new(&opened.upper, buffer);
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(|error| {
                let at = self.survey.upper.path().join(path);
                failed("list", &at)(error.into())
            })?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                self.look(&opened, name, entry.file_type())?;
            }
        }
        Ok(())
    }

    fn look(
        &mut self,
        dir: &SurveyDirectory<'_>,
        name: &OsStr,
        listed_as: FileType,
    ) -> Result<(), LayerError> {
        if self.survey.entries.len() >= ENTRIES_MAX {
            let path = self.survey.upper.path().to_path_buf();
            return Err(LayerError::TooManyEntries { path });
        }
        let path = dir.path.join(name);
        let below = self.below(dir, &path);
        if name == ".git" {
            self.record(&path, LayerPathKind::Git, below);
            return Ok(());
        }
        if path.as_os_str().len() > PATH_BYTES_MAX {
            self.record(&path, LayerPathKind::TooLong, below);
            return Ok(());
        }
        if listed_as == FileType::Directory {
            self.dirs.push((path, below));
            return Ok(());
        }
        let Ok(found) = statat(&dir.upper, name, AtFlags::SYMLINK_NOFOLLOW) else {
            self.record(&path, LayerPathKind::Unreadable, below);
            return Ok(());
        };
        let what = match beneath::kind(&found) {
            FileType::Directory => {
                self.dirs.push((path, below));
                return Ok(());
            }
            FileType::RegularFile => self.look_at_file(dir, name, &found)?,
            FileType::Symlink => match readlinkat(&dir.upper, name, Vec::new()) {
                Ok(target) => LayerPathKind::Link {
                    target: OsString::from_vec(target.into_bytes()),
                },
                Err(_gone) => LayerPathKind::Unreadable,
            },
            FileType::CharacterDevice if found.st_rdev == 0 => LayerPathKind::Whiteout,
            _ => LayerPathKind::Special,
        };
        self.record(&path, what, below);
        Ok(())
    }

    fn look_at_file(
        &self,
        dir: &SurveyDirectory<'_>,
        name: &OsStr,
        found: &Stat,
    ) -> Result<LayerPathKind, LayerError> {
        open_up(dir, name, found, 0o400);
        let bytes = beneath::size(found);
        let file = LayerPathKind::File {
            bytes,
            mode: found.st_mode & 0o7777,
        };
        // Only a file without content can be a mark, and only layers of root can lack content.
        if bytes > 0 && self.marks == Marks::User {
            return Ok(file);
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(opened) = openat(&dir.upper, name, flags, Mode::empty()) else {
            return Ok(LayerPathKind::Unreadable);
        };
        if bytes == 0 && self.mark(opened.as_fd(), "whiteout").is_some() {
            return Ok(LayerPathKind::Whiteout);
        }
        let path = dir.path.join(name);
        self.refuse_mark(opened.as_fd(), "metacopy", &path)?;
        Ok(file)
    }

    fn is_opaque(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<bool, LayerError> {
        self.refuse_mark(dir, "redirect", path)?;
        // An `x` says that files in it may be marks, not that it hides anything.
        Ok(self.mark(dir, "opaque") == Some(b'y'))
    }

    /// Fails on a mark that refers to content elsewhere, which is never to be trusted.
    fn refuse_mark(
        &self,
        fd: BorrowedFd<'_>,
        name: &'static str,
        path: &Path,
    ) -> Result<(), LayerError> {
        // In a namespace of a user's own the kernel makes none, and whoever did is not to be asked.
        if self.marks == Marks::Trusted && self.mark(fd, name).is_some() {
            let path = path.to_path_buf();
            return Err(LayerError::Unsupported { path, mark: name });
        }
        Ok(())
    }

    /// Returns the first byte of a mark of the kernel's overlay, zero for an empty one.
    fn mark(&self, fd: BorrowedFd<'_>, name: &str) -> Option<u8> {
        let space = match self.marks {
            Marks::User => "user.overlay.",
            Marks::Trusted => "trusted.overlay.",
        };
        let mut value = [0; 256];
        match fgetxattr(fd, [space, name].concat(), &mut value) {
            Ok(0) => Some(0),
            Ok(_length) => value.first().copied(),
            Err(rustix::io::Errno::RANGE) => Some(0),
            Err(_none) => None,
        }
    }

    fn below(&self, dir: &SurveyDirectory<'_>, path: &Path) -> LowerPath {
        // Every directory on the way was seen to be one, so no link is on it.
        if dir.below != LowerPath::Directory || path.as_os_str().len() > PATH_BYTES_MAX {
            return LowerPath::Nothing;
        }
        let Ok(Some(found)) = self.survey.lower.stat_on_way(path) else {
            return LowerPath::Nothing;
        };
        LowerPath::of(&found)
    }

    fn record(&mut self, path: &Path, what: LayerPathKind, below: LowerPath) {
        let entry = LayerEntry { what, below };
        let path = path.as_os_str().to_owned();
        self.survey.entries.insert(path, entry);
    }
}

/// Gives the owner the missing rights; what cannot be opened shows when it is opened.
fn open_up(dir: &SurveyDirectory<'_>, name: &OsStr, found: &Stat, rights: u32) {
    if found.st_mode & rights == rights {
        return;
    }
    let mode = Mode::from_raw_mode(found.st_mode & 0o777 | rights);
    // The entry was just seen not to be a link, and nothing runs in a layer that is being walked.
    match chmodat(&dir.upper, name, mode, AtFlags::empty()) {
        Ok(()) | Err(_) => {}
    }
}
