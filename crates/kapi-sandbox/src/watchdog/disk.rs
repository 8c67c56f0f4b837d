//! How much a run has added to the sandbox's host directories.
//!
//! What they held before the run does not count, so a limit once met does not end every later run. The
//! trees are hostile and change while they are walked: nothing is followed, opened or trusted but
//! directories. What cannot be looked into counts as much as the file system grew since the start.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat, statvfs};
use rustix::io::Errno;

/// The deepest tree that is walked; each level holds a descriptor.
const DEPTH_MAX: usize = 128;
/// The most entries that are looked at in one walk.
const ENTRIES_MAX: u64 = 4_000_000;
/// What `st_blocks` counts in.
const BLOCK_BYTES: u64 = 512;
/// The longest a walk is put off because the file system has hardly grown.
const WALK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// The watched directories before anything runs.
#[derive(Debug)]
pub(crate) struct DiskBaseline {
    locations: Vec<WatchedDirectory>,
    walked: DiskWalk,
}

/// The watch over what a run adds to them.
#[derive(Debug)]
pub(super) struct Disk<'a> {
    locations: &'a [WatchedDirectory],
    last_walk: DiskWalk,
}

#[derive(Debug)]
struct WatchedDirectory {
    path: PathBuf,
    /// Bytes it held at the start; not known of a tree that could not be walked to its end.
    bytes_at_start: Option<u64>,
    /// Bytes in use on its file system at the start.
    used_at_start: u64,
}

#[derive(Debug, Clone, Copy)]
struct DiskWalk {
    at: Instant,
    took: Duration,
    /// Bytes that all places together had grown by.
    grown: u64,
    /// Bytes in use on all the file systems together.
    used: u64,
}

/// What one walk has found so far.
#[derive(Debug, Default)]
struct WalkCount {
    bytes: u64,
    n_entries: u64,
    /// Files with several names, which count once.
    seen: BTreeSet<(u64, u64)>,
    /// Something could not be looked into.
    is_partial: bool,
}

impl DiskBaseline {
    /// Measures directories; one inside another counts once.
    pub(crate) fn new(paths: &[PathBuf]) -> Self {
        let at = Instant::now();
        let is_inside_another = |path: &Path| {
            paths
                .iter()
                .any(|other| path != other && path.starts_with(other))
        };
        let unique: BTreeSet<&PathBuf> = paths
            .iter()
            .filter(|path| !is_inside_another(path))
            .collect();
        let locations: Vec<WatchedDirectory> = unique
            .into_iter()
            .map(|path| WatchedDirectory::new(path))
            .collect();
        let walked = DiskWalk {
            at,
            took: at.elapsed(),
            grown: 0,
            used: locations
                .iter()
                .map(|location| location.used_at_start)
                .sum(),
        };
        Self { locations, walked }
    }
}

impl<'a> Disk<'a> {
    /// Begins to watch directories that were measured before the run.
    pub(super) fn new(start: &'a DiskBaseline) -> Self {
        Self {
            locations: &start.locations,
            last_walk: start.walked,
        }
    }

    /// Returns how long the last walk took.
    pub(super) fn last_walk_took(&self) -> Duration {
        self.last_walk.took
    }

    /// Tells whether the directories grew by more than a limit. They are walked only if they can have
    /// grown by half of what was left at the last walk: nothing grows without its file system.
    pub(super) fn is_over(&mut self, limit: u64) -> bool {
        let used = self
            .locations
            .iter()
            .map(|location| used(&location.path))
            .sum();
        let walked = self.last_walk;
        let left = limit.saturating_sub(walked.grown);
        let grown = u64::saturating_sub(used, walked.used);
        if grown < left / 2 && walked.at.elapsed() < WALK_AT_LEAST_EVERY {
            return false;
        }
        let at = Instant::now();
        let grown = self.locations.iter().map(WatchedDirectory::grown).sum();
        self.last_walk = DiskWalk {
            at,
            took: at.elapsed(),
            grown,
            used,
        };
        grown > limit
    }
}

impl WatchedDirectory {
    fn new(path: &Path) -> Self {
        let used_at_start = used(path);
        let mut count = WalkCount::default();
        let walked = count.walk(path);
        Self {
            path: path.to_path_buf(),
            bytes_at_start: (walked.is_ok() && !count.is_partial).then_some(count.bytes),
            used_at_start,
        }
    }

    /// Returns by how many bytes it has grown; what was removed since makes room. A tree that cannot be
    /// walked to its end, now or at the start, has grown as much as its file system at least.
    fn grown(&self) -> u64 {
        let mut count = WalkCount::default();
        let walked = count.walk(&self.path);
        let since = |bytes: u64| count.bytes.saturating_sub(bytes);
        let grown = self.bytes_at_start.map_or(0, since);
        if self.bytes_at_start.is_some() && walked.is_ok() && !count.is_partial {
            return grown;
        }
        grown.max(used(&self.path).saturating_sub(self.used_at_start))
    }
}

impl WalkCount {
    /// Adds a whole tree, except what is mounted in it.
    fn walk(&mut self, top: &Path) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, top, flags, Mode::empty())?;
        let device = fstat(&top)?.st_dev;
        let mut open = vec![WalkLevel::read(top)?];
        while let Some(level) = open.last_mut() {
            let Some(name) = level.names.pop() else {
                open.pop();
                continue;
            };
            if self.n_entries >= ENTRIES_MAX {
                self.is_partial = true;
                break;
            }
            self.n_entries += 1;
            let Ok(stat) = statat(&level.directory, &name, AtFlags::SYMLINK_NOFOLLOW) else {
                // It was removed meanwhile.
                continue;
            };
            if stat.st_dev != device {
                continue;
            }
            self.add(&stat);
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            let flags = flags | OFlags::NOFOLLOW;
            let below =
                openat(&level.directory, &name, flags, Mode::empty()).and_then(WalkLevel::read);
            match below {
                Ok(below) if open.len() < DEPTH_MAX => open.push(below),
                Err(Errno::NOENT) => {}
                Ok(_) | Err(_) => self.is_partial = true,
            }
        }
        Ok(())
    }

    fn add(&mut self, stat: &Stat) {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_first_name =
            is_directory || stat.st_nlink < 2 || self.seen.insert((stat.st_dev, stat.st_ino));
        if is_first_name {
            let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
            self.bytes = self
                .bytes
                .saturating_add(blocks.saturating_mul(BLOCK_BYTES));
        }
    }
}

/// One directory on the way down, and the names in it that were not looked at yet.
struct WalkLevel {
    directory: OwnedFd,
    names: Vec<CString>,
}

impl WalkLevel {
    fn read(directory: OwnedFd) -> Result<Self, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory.as_fd())? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push(name.to_owned());
            }
        }
        Ok(Self { directory, names })
    }
}

/// Returns the bytes in use on a path's file system; 0 if it does not say.
fn used(path: &Path) -> u64 {
    statvfs(path).map_or(0, |stat| {
        let n_used = stat.f_blocks.saturating_sub(stat.f_bfree);
        n_used.saturating_mul(stat.f_frsize)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{DEPTH_MAX, Disk, DiskBaseline, WALK_AT_LEAST_EVERY, WalkCount, WatchedDirectory};

    fn fill(path: &Path, bytes: usize) {
        let mut file = fs::File::create(path).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        file.sync_all().unwrap();
    }

    #[test]
    fn content_counts_once_and_links_lead_nowhere() {
        let location = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fill(&outside.path().join("big"), 8 << 20);
        let deep = location.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fill(&deep.join("one"), 1 << 20);
        fs::hard_link(deep.join("one"), deep.join("again")).unwrap();
        symlink(outside.path(), location.path().join("way-out")).unwrap();
        fs::File::create(deep.join("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let mut count = WalkCount::default();
        count.walk(location.path()).unwrap();
        assert!(!count.is_partial);
        assert!(
            (1 << 20..2 << 20).contains(&count.bytes),
            "{} bytes",
            count.bytes
        );
    }

    #[test]
    fn a_tree_too_deep_to_walk_is_noticed() {
        let location = tempfile::tempdir().unwrap();
        let mut deep = location.path().to_path_buf();
        for _ in 0..=DEPTH_MAX {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let mut count = WalkCount::default();
        count.walk(location.path()).unwrap();
        assert!(count.is_partial);
    }

    fn grown(start: &DiskBaseline) -> u64 {
        start.locations.iter().map(WatchedDirectory::grown).sum()
    }

    #[test]
    fn nested_places_count_once_and_growth_is_seen() {
        let location = tempfile::tempdir().unwrap();
        let inner = location.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let start = DiskBaseline::new(&[inner.clone(), location.path().to_path_buf()]);
        assert_eq!(start.locations.len(), 1);
        fill(&inner.join("file"), 3 << 20);
        assert_eq!(grown(&start) >> 20, 3);
        fill(&inner.join("second"), 3 << 20);
        assert_eq!(grown(&start) >> 20, 6);
        let mut disk = Disk::new(&start);
        // However the rest of the machine uses the disk, a walk is due.
        disk.last_walk.at -= WALK_AT_LEAST_EVERY;
        assert!(disk.is_over(4 << 20));
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let location = tempfile::tempdir().unwrap();
        let before = location.path().join("before");
        fill(&before, 8 << 20);
        let start = DiskBaseline::new(&[location.path().to_path_buf()]);
        assert_eq!(grown(&start), 0);
        fill(&location.path().join("after"), 3 << 20);
        assert_eq!(grown(&start) >> 20, 3);
        fs::remove_file(&before).unwrap();
        assert_eq!(grown(&start), 0);
    }
}
