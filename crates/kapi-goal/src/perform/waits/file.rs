//! Whether a file is in the state that is waited for.
//!
//! A path of the workspace is resolved by the kernel below it: the agent may make links there, and
//! none of them leads out. Only that a file is there and when it changed is looked at.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_run::failure;
use kapi_run::goal_paths::GoalPaths;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, stat};
use rustix::io::Errno;

use crate::rules::wait::FileState;

/// How far the clock that stamps files may be behind the one that told when the goal was parked.
const STAMP_LAG_MS: i64 = 10;
/// How often a resolution is tried again that the kernel gave up because of a rename elsewhere.
const RESOLVE_TRIES_MAX: usize = 16;

/// Tells whether a file is in a state; a relative path is one of the workspace.
pub(super) fn is_met(
    location: &GoalPaths,
    path: &str,
    until: FileState,
    since_ms: i64,
) -> Result<bool, Failure> {
    let found = match relative(path) {
        Some(relative) => stat_beneath(&location.worktree, relative),
        None => stat(path),
    };
    let found = match found {
        Ok(found) => Some(found),
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        Err(error) => return Err(failure::file("inspect", Path::new(path), &error.into())),
    };
    Ok(match until {
        FileState::Exists => found.is_some(),
        FileState::Gone => found.is_none(),
        FileState::Changed => {
            found.is_some_and(|found| changed_ms(&found) >= since_ms.saturating_sub(STAMP_LAG_MS))
        }
    })
}

/// Returns the directories whose changes are a reason to look at a file again.
pub(super) fn directories(location: &GoalPaths, path: &str) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    match relative(path) {
        Some(relative) => {
            let is_there = |parent: &&Path| {
                !parent.as_os_str().is_empty()
                    && open_beneath(&location.worktree, parent, OFlags::DIRECTORY).is_ok()
            };
            let parent = relative.ancestors().skip(1).find(is_there);
            directories.insert(parent.map_or_else(
                || location.worktree.clone(),
                |parent| location.worktree.join(parent),
            ));
        }
        None => {
            let above = Path::new(path).ancestors().skip(1);
            directories.extend(above.map(Path::to_path_buf).find(|parent| parent.is_dir()));
        }
    }
    directories
}

fn relative(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    path.is_relative().then_some(path)
}

/// Looks at what is below a directory. A link that leads out of it is itself what is there.
fn stat_beneath(root: &Path, path: &Path) -> Result<Stat, Errno> {
    let opened = match open_beneath(root, path, OFlags::empty()) {
        Err(Errno::XDEV | Errno::LOOP) => match open_beneath(root, path, OFlags::NOFOLLOW) {
            // One on the way there leads out: below it there is nothing of the workspace.
            Err(Errno::XDEV | Errno::LOOP) => Err(Errno::NOENT),
            opened => opened,
        },
        opened => opened,
    };
    fstat(opened?)
}

fn open_beneath(root: &Path, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let root_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, root_flags, Mode::empty())?;
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let mut tries = 0;
    loop {
        match openat2(&root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if tries < RESOLVE_TRIES_MAX => tries += 1,
            opened => return opened,
        }
    }
}

/// Returns when a file was changed last, in milliseconds since the epoch.
///
/// The time of the inode, not of the content: whoever writes a file can set the latter, and a file
/// that was moved here is a change too.
fn changed_ms(found: &Stat) -> i64 {
    let ms = i64::try_from(found.st_ctime_nsec / 1_000_000).unwrap_or(0);
    found.st_ctime.saturating_mul(1000).saturating_add(ms)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use kapi_run::goal_paths::GoalPaths;
    use kapi_sys::clock::{Clock as _, SystemClock};
    use tempfile::TempDir;

    use super::{directories, is_met};
    use crate::rules::wait::FileState;

    fn machine() -> (TempDir, GoalPaths) {
        let root = tempfile::tempdir().unwrap();
        let worktree = root.path().join("worktree");
        fs::create_dir(&worktree).unwrap();
        let unused = PathBuf::new;
        let location = GoalPaths {
            project: unused(),
            ref_name: String::new(),
            worktree,
            runs: unused(),
            hidden: unused(),
            scratch: unused(),
            stores: unused(),
        };
        (root, location)
    }

    fn is(location: &GoalPaths, path: &str, until: FileState) -> bool {
        is_met(location, path, until, 0).unwrap()
    }

    fn make(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap();
    }

    #[test]
    fn a_relative_path_is_one_of_the_workspace() {
        let (_root, location) = machine();
        assert!(!is(&location, "build/out", FileState::Exists));
        assert!(is(&location, "build/out", FileState::Gone));
        make(&location.worktree.join("build/out"));
        assert!(is(&location, "build/out", FileState::Exists));
        assert!(is(&location, "build", FileState::Exists));
        assert!(!is(&location, "build/out/deeper", FileState::Exists));
    }

    #[test]
    fn no_link_of_the_workspace_leads_out_of_it() {
        let (root, location) = machine();
        make(&root.path().join("secret/file"));
        let inside = |name: &str| location.worktree.join(name);
        symlink("../secret", inside("dir")).unwrap();
        symlink(root.path().join("secret/file"), inside("absolute")).unwrap();
        symlink("/proc/self/cwd", inside("magic")).unwrap();
        symlink("loop", inside("loop")).unwrap();
        symlink("there", inside("within")).unwrap();
        assert!(is(&location, "dir/file", FileState::Gone), "by a directory");
        assert!(is(&location, "magic/Cargo.toml", FileState::Gone));
        for link in ["absolute", "dir", "loop"] {
            assert!(
                is(&location, link, FileState::Exists),
                "the link itself is there: {link}"
            );
        }
        assert!(
            is(&location, "within", FileState::Gone),
            "it leads nowhere yet"
        );
        make(&inside("there"));
        assert!(is(&location, "within", FileState::Exists));
        let watched = directories(&location, "dir/file");
        assert!(watched.iter().eq([&location.worktree]), "{watched:?}");
    }

    #[test]
    fn a_change_is_what_happened_after_the_goal_was_parked() {
        let (root, location) = machine();
        make(&location.worktree.join("old"));
        let later_ms = SystemClock.now_ms() + 3_600_000;
        let has_changed =
            |path: &str, since_ms| is_met(&location, path, FileState::Changed, since_ms);
        assert!(!has_changed("old", later_ms).unwrap());
        assert!(has_changed("old", later_ms - 7_200_000).unwrap());
        assert!(!has_changed("missing", 0).unwrap());
        // A file whose own time is long ago is new here.
        let moved = root.path().join("moved");
        make(&moved);
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        fs::File::open(&moved)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        let parked_ms = SystemClock.now_ms();
        fs::rename(&moved, location.worktree.join("old")).unwrap();
        assert!(has_changed("old", parked_ms).unwrap());
    }

    #[test]
    fn a_person_may_wait_for_any_file() {
        let (root, location) = machine();
        let file = root.path().join("far/ready");
        let path = file.to_str().unwrap();
        assert!(is(&location, path, FileState::Gone));
        let watched = directories(&location, path);
        assert!(
            watched.iter().eq([root.path()]),
            "the nearest that is there: {watched:?}"
        );
        make(&file);
        assert!(is(&location, path, FileState::Exists));
        let watched = directories(&location, path);
        assert!(watched.iter().eq([&root.path().join("far")]), "{watched:?}");
    }
}
