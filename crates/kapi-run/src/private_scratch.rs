//! A directory in which one process has its homes, checkouts and layers.
//!
//! Nothing in it outlives the process. What a killed one left is removed by the next.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::owned_dir;
use kapi_sys::lock::Lock;

use crate::failure;
use crate::private_dir::make_private;

/// How long another process may take to make its directory or to clear up after a killed one.
const WAIT_MS: u64 = 60_000;
/// The lock of the whole, and of one directory in it.
const LOCK: &str = "lock";
/// How many directories one process may have at once.
const DIRECTORIES_MAX: usize = 1_000;

/// A directory of this process, removed when it is dropped.
#[derive(Debug)]
pub struct PrivateScratch {
    path: PathBuf,
    /// Held as long as the directory is in use.
    _held: Lock,
}

impl PrivateScratch {
    /// Makes a directory below `all`, which must not lie in the working tree that is checked.
    pub fn open(all: &Path, top: &Path, command: &str) -> Result<Self, Failure> {
        if all.starts_with(top) {
            return Err(Failure {
                message: format!("check {}: it contains Kapi's own state", top.display()),
                hint: Some("name a subdirectory with `--path`.".to_owned()),
            });
        }
        make_private(all)?;
        let owner = format!("pid {}, {command}", std::process::id());
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let _alone =
            Lock::acquire(&all.join(LOCK), &owner, WAIT_MS).map_err(|error| failed(&error))?;
        sweep(all)?;
        let pid = std::process::id();
        let names = (0..DIRECTORIES_MAX).map(|n| all.join(format!("{pid}-{n}")));
        let path = names
            .into_iter()
            .find(|path| !path.exists())
            .ok_or_else(|| Failure {
                message: format!("make another directory in {}", all.display()),
                hint: None,
            })?;
        let held = Lock::acquire(&path.join(LOCK), &owner, 0).map_err(|error| failed(&error))?;
        Ok(Self { path, _held: held })
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateScratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next process.
        drop(owned_dir::wipe(&self.path));
    }
}

/// Removes what nobody holds any more.
fn sweep(all: &Path) -> Result<(), Failure> {
    let entries = fs::read_dir(all).map_err(|error| failure::file("list", all, &error))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        // A directory whose lock cannot be read is not ours to judge.
        if matches!(Lock::holder(&path.join(LOCK)), Ok(None)) {
            owned_dir::wipe(&path).map_err(|error| failure::plain(&error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::PrivateScratch;

    #[test]
    fn each_has_its_own_and_what_nobody_holds_is_removed() {
        let all = tempfile::tempdir().unwrap();
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(all.path().join("123-0/layer/upper")).unwrap();
        let one = PrivateScratch::open(all.path(), top.path(), "a test").unwrap();
        assert!(!all.path().join("123-0").exists());
        let other = PrivateScratch::open(all.path(), top.path(), "a test").unwrap();
        assert_ne!(one.path(), other.path());
        assert!(one.path().is_dir() && other.path().is_dir());
        let gone = one.path().to_path_buf();
        drop(one);
        assert!(!gone.exists() && other.path().is_dir());
    }

    #[test]
    fn a_tree_that_holds_our_own_state_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let failure =
            PrivateScratch::open(&top.path().join("state"), top.path(), "a test").unwrap_err();
        assert!(failure.message.contains("Kapi's own state"), "{failure:?}");
        assert!(!top.path().join("state").exists());
    }
}
