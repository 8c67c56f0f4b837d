//! What in the person's checkout may differ from the index, found without reading any file.
//!
//! Compares what git compares, and more: at worst too much is suspected, and git has the last word
//! on that. Follows no link and enters no directory that the index does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{AtFlags, FileType, RawDir, Stat, statat};

use super::index_file::{FileTime, IndexEntry, IndexFile, NotedTime};
use super::{ObjectFormat, path_of};
use crate::check_ignore::check_ignore;
use crate::command::{GitCall, GitError};
use crate::layer::beneath::{DirectoryRoot, is_absence, kind, size};
use crate::layer::store::{self, ObjectKind};

/// The most suspects that are told apart; of more, git looks at everything.
const SUSPECTS_MAX: usize = 200;
/// The most names looked at in a directory that the index does not know.
const NAMES_MAX: usize = 64;
/// With fewer entries, one thread has looked before another is started.
const ENTRIES_OF_ONE_THREAD: usize = 4_000;
/// More threads than this wait for the same locks of the kernel.
const THREADS_MAX: usize = 8;
/// How much of a directory is listed at a time.
const LIST_BYTES: usize = 32 * 1024;
/// Modes in an index, by their upper bits.
const SUBMODULE: u32 = 0o160_000;
const LINK: u32 = 0o120_000;

/// Paths that may differ.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Files of the index, and directories of them, that are not surely as they were.
    pub(crate) changed: Vec<PathBuf>,
    /// What the index does not know; of a directory, also what is right in it.
    unknown: Vec<UnknownName>,
}

/// A name that the index does not know.
#[derive(Debug)]
struct UnknownName {
    /// Its path.
    path: PathBuf,
    /// What to ask about: the path, then all that is right in it.
    questions: Vec<PathBuf>,
    /// Whether it is a directory, of which nothing was left out in the questions.
    is_whole_directory: bool,
}

impl Suspects {
    /// Tells whether there is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.unknown.is_empty()
    }

    /// Returns them less those that git ignores where this call of `check-ignore` is made, and
    /// directories that hold nothing else.
    pub(crate) fn without_ignored(self, call: GitCall<'_>) -> Result<Vec<PathBuf>, GitError> {
        let questions = self.unknown.iter().flat_map(|unknown| &unknown.questions);
        let ignored = check_ignore(call, questions)?;
        let is_ignored = |unknown: &UnknownName| {
            let mut questions = unknown.questions.iter().map(|path| ignored.contains(path));
            let is_itself = questions.next() == Some(true);
            is_itself || (unknown.is_whole_directory && questions.all(|is_ignored| is_ignored))
        };
        let unknown = self.unknown.iter().filter(|found| !is_ignored(found));
        let unknown: Vec<PathBuf> = unknown.map(|unknown| unknown.path.clone()).collect();
        Ok([self.changed, unknown].concat())
    }
}

/// The stack of a thread that looks at files, in bytes.
pub(super) const STACK_BYTES: usize = 1024 * 1024;

/// Compares a checkout with its index; nothing when there are too many suspects.
pub(super) fn find(top: &Path, index: &IndexFile, format: ObjectFormat) -> Option<Suspects> {
    let dirs = Dir::all(index);
    let look = Look {
        root: DirectoryRoot::open(top).ok()?,
        written: index.written,
        no_content: store::id(format, ObjectKind::Blob, b""),
        dirs,
        next: AtomicUsize::new(0),
    };
    let mut parts = Vec::new();
    if index.entries().count() <= ENTRIES_OF_ONE_THREAD {
        parts.push(look.through());
    } else {
        let n_threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let started: Vec<_> = (0..n_threads.min(THREADS_MAX))
                .map(|_| {
                    let thread = thread::Builder::new().stack_size(STACK_BYTES);
                    thread.spawn_scoped(scope, || look.through())
                })
                .collect();
            // One that died or never began has found nothing that can be relied on.
            let ended = started.into_iter().map(|part| part.ok()?.join().ok()?);
            parts.extend(ended);
        });
    }
    let mut found = Suspects::default();
    for part in parts {
        let part = part?;
        found.changed.extend(part.changed);
        found.unknown.extend(part.unknown);
    }
    (found.changed.len() + found.unknown.len() <= SUSPECTS_MAX).then_some(found)
}

/// A directory of the index.
#[derive(Debug, Default)]
struct Dir<'a> {
    path: &'a [u8],
    files: Vec<IndexEntry<'a>>,
    /// The names of the directories right below.
    dirs: BTreeSet<&'a [u8]>,
}

impl<'a> Dir<'a> {
    /// Returns every directory, the top one too.
    fn all(index: &'a IndexFile) -> Vec<Self> {
        let mut dirs: BTreeMap<&[u8], Self> = BTreeMap::new();
        let parent = |entry: &IndexEntry<'a>| split(entry.path()).0;
        let entries: Vec<IndexEntry<'a>> = index.entries().collect();
        for files in entries.chunk_by(|one, other| parent(one) == parent(other)) {
            let path = files.first().map_or(b"".as_slice(), parent);
            dirs.entry(path).or_default().files.extend(files);
        }
        let paths: Vec<&[u8]> = dirs.keys().copied().collect();
        for mut path in paths {
            let mut is_new = true;
            while is_new && !path.is_empty() {
                let (parent, name) = split(path);
                is_new = dirs.entry(parent).or_default().dirs.insert(name);
                path = parent;
            }
        }
        dirs.entry(b"").or_default();
        let dirs = dirs.into_iter();
        dirs.map(|(path, dir)| Self { path, ..dir }).collect()
    }

    /// Returns the names of all that the index has right in it, sorted.
    fn names(&self) -> Vec<&'a [u8]> {
        let files = self.files.iter().map(|entry| split(entry.path()).1);
        let mut names: Vec<&[u8]> = files.chain(self.dirs.iter().copied()).collect();
        names.sort_unstable();
        names
    }
}

/// Looking through a checkout, by any number of threads.
struct Look<'a> {
    root: DirectoryRoot,
    written: FileTime,
    /// The id of a file without content.
    no_content: String,
    dirs: Vec<Dir<'a>>,
    next: AtomicUsize,
}

impl Look<'_> {
    /// Looks at directories until none is left; nothing when there are too many suspects.
    fn through(&self) -> Option<Suspects> {
        let mut found = Suspects::default();
        let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
        while let Some(dir) = self.dirs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.at(dir, &mut buffer, &mut found)?;
            if found.changed.len() + found.unknown.len() > SUSPECTS_MAX {
                return None;
            }
        }
        Some(found)
    }

    fn at(
        &self,
        dir: &Dir<'_>,
        buffer: &mut [MaybeUninit<u8>],
        found: &mut Suspects,
    ) -> Option<()> {
        let path = path_of(dir.path);
        let opened = match self.root.dir(&path) {
            Ok(opened) => opened,
            // What stands there instead is seen from the directory above.
            Err(error) if is_absence(&error) => {
                found.changed.push(path);
                return Some(());
            }
            Err(_) => return None,
        };
        for entry in &dir.files {
            if !self.is_same(opened.as_fd(), entry)? {
                found.changed.push(path_of(entry.path()));
            }
        }
        let names = dir.names();
        let is_top = dir.path.is_empty();
        for_each_name(opened.as_fd(), buffer, |name, kind| {
            let is_git = is_top && name == b".git";
            if !is_git && names.binary_search(&name).is_err() {
                let path = path.join(OsStr::from_bytes(name));
                found.unknown.push(self.unknown(path, kind)?);
            }
            Some(())
        })
    }

    /// Tells whether a file is surely as it was when the index was written; nothing on an error.
    fn is_same(&self, dir: BorrowedFd<'_>, entry: &IndexEntry<'_>) -> Option<bool> {
        if entry.is_assumed() || entry.mode() == SUBMODULE {
            return Some(true);
        }
        let name = OsStr::from_bytes(split(entry.path()).1);
        let there = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => there,
            Err(error) if is_absence(&error.into()) => return Some(entry.is_left_out()),
            Err(_) => return None,
        };
        let is_written_before = is_before(entry.modified(), self.written);
        // Git notes no size for what may have changed since; or there really is no content.
        let is_sized = entry.size() != 0 || entry.object() == self.no_content;
        Some(!entry.is_left_out() && is_written_before && is_sized && is_noted(entry, &there))
    }

    /// Returns what to ask about a name that the index does not know.
    fn unknown(&self, path: PathBuf, kind: FileType) -> Option<UnknownName> {
        let mut unknown = UnknownName {
            questions: vec![path.clone()],
            is_whole_directory: kind == FileType::Directory,
            path,
        };
        if kind != FileType::Directory {
            return Some(unknown);
        }
        let opened = self.root.dir(&unknown.path).ok()?;
        let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
        for_each_name(opened.as_fd(), &mut buffer, |name, _| {
            // A repository is more than what is in it.
            if name == b".git" || unknown.questions.len() > NAMES_MAX {
                unknown.is_whole_directory = false;
                return Some(());
            }
            let path = unknown.path.join(OsStr::from_bytes(name));
            unknown.questions.push(path);
            Some(())
        })?;
        Some(unknown)
    }
}

/// Tells whether a file is what an entry says of it.
fn is_noted(entry: &IndexEntry<'_>, there: &Stat) -> bool {
    let kind_and_mode = match kind(there) {
        FileType::RegularFile if there.st_mode & 0o100 != 0 => 0o100_755,
        FileType::RegularFile => 0o100_644,
        FileType::Symlink => LINK,
        _ => return false,
    };
    let low = |number: u64| u32::try_from(number & 0xffff_ffff).ok();
    entry.mode() == kind_and_mode
        && low(size(there)) == Some(entry.size())
        && low(there.st_ino) == Some(entry.inode())
        && entry.owner() == (there.st_uid, there.st_gid)
        && is_time(
            entry.modified(),
            there.st_mtime,
            i64::try_from(there.st_mtime_nsec).ok(),
        )
        && is_time(
            entry.changed(),
            there.st_ctime,
            i64::try_from(there.st_ctime_nsec).ok(),
        )
}

/// Tells whether a noted time is this one; one that was noted without a fraction has zero there.
fn is_time(noted: NotedTime, seconds: i64, nanoseconds: Option<i64>) -> bool {
    let is_fraction = noted.nanoseconds == 0 || nanoseconds == Some(noted.nanoseconds.into());
    i64::from(noted.seconds) == seconds && is_fraction
}

/// Tells whether a noted time is surely earlier than another.
fn is_before(noted: NotedTime, other: FileTime) -> bool {
    let (seconds, nanoseconds) = (i64::from(noted.seconds), i64::from(noted.nanoseconds));
    let is_in_same_second = seconds == other.seconds && nanoseconds != 0;
    seconds < other.seconds || (is_in_same_second && nanoseconds < other.nanoseconds)
}

/// Calls `take` for everything in a directory until it, or the system, gives up.
fn for_each_name(
    dir: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    mut take: impl FnMut(&[u8], FileType) -> Option<()>,
) -> Option<()> {
    let mut listing = RawDir::new(dir, buffer);
    while let Some(entry) = listing.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                kind(&statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?)
            }
            known => known,
        };
        take(name, kind)?;
    }
    Some(())
}

/// Splits a path into its directory and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|&b| b == b'/');
    let parts = at.and_then(|at| Some((path.get(..at)?, path.get(at + 1..)?)));
    parts.unwrap_or((b"", path))
}
