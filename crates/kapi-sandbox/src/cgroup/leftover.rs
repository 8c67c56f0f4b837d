//! Groups whose owner died before it could remove them.
//!
//! A group's name says which process owns it, so that the next one to start can tell. Only empty groups
//! can be removed at all: the kernel sees to that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::getpid;

use crate::status::StepFailure;

/// What every group of ours begins with.
const PREFIX: &str = "kapi-";
/// The start time is the 22nd field of a process's `stat`; the first after the name is the third.
const START_AFTER_NAME: usize = 22 - 3;

/// How many names this process has given out.
static MADE: AtomicU64 = AtomicU64::new(0);
/// The directories that this process has looked through.
static LOOKED_THROUGH: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Returns the name of a group that belongs to this process.
pub(super) fn owned_name(name: &str) -> Result<String, StepFailure> {
    let own = getpid().as_raw_nonzero().get();
    let start =
        start_time(own).ok_or_else(|| StepFailure::new("read", "/proc/self/stat", Errno::IO))?;
    Ok(format!("{PREFIX}{name}.{own}-{start}"))
}

/// Returns the name of one of several groups that belong to this process, different at every call.
pub(super) fn unique_name(name: &str) -> Result<String, StepFailure> {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    owned_name(name).map(|name| format!("{name}-{number}"))
}

/// Removes the groups in a directory whose owner is gone, at the first call for it.
pub(super) fn remove_once(directory: &Path) {
    let is_new = LOOKED_THROUGH
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(directory.to_path_buf());
    if !is_new {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_abandoned = name
            .to_str()
            .and_then(owner)
            .is_some_and(|(pid, start)| start_time(pid) != Some(start));
        if is_abandoned {
            match fs::remove_dir(entry.path()) {
                // Another starter was faster, or a process of it still lives and will be gone next time.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// Reads the owner's number and start time from a group's name.
fn owner(name: &str) -> Option<(i32, u64)> {
    let (_, owner) = name.strip_prefix(PREFIX)?.rsplit_once('.')?;
    let mut numbers = owner.splitn(3, '-');
    let (pid, start) = (numbers.next()?, numbers.next()?);
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Returns when a process was started, in ticks since the machine was.
fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name
        .split_whitespace()
        .nth(START_AFTER_NAME)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{owned_name, owner, remove_once, unique_name};

    #[test]
    fn a_name_tells_its_owner() {
        assert_eq!(owner("kapi-007-fix.v2.123-456"), Some((123, 456)));
        assert_eq!(owner("kapi-007-fix.v2.123-456-7"), Some((123, 456)));
        assert_ne!(unique_name("x").unwrap(), unique_name("x").unwrap());
        assert_eq!(owner("kapi-007-fix"), None);
        assert_eq!(owner("user.123-456"), None);
    }

    #[test]
    fn only_groups_of_the_dead_are_removed_and_only_once() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir(directory.path().join(name)).unwrap();
        let own = owned_name("run").unwrap();
        make(&own);
        make("kapi-run.1-999999999999");
        make("other.1-999999999999");
        remove_once(directory.path());
        make("kapi-later.1-999999999999");
        remove_once(directory.path());
        let mut names: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected = vec![
            "kapi-later.1-999999999999".to_owned(),
            own,
            "other.1-999999999999".to_owned(),
        ];
        expected.sort();
        assert_eq!(names, expected);
    }
}
