//! The version of the installed git, in the words of every vendor.
//!
//! What a version is needed for is not known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::command::{GIT_VERSION_MIN, Git, GitError, VERSION};

/// A major and a minor version.
type GitVersion = (u32, u32);

/// The versions of the gits that are new enough: a process asks each of them once.
static NEW_ENOUGH: Mutex<BTreeMap<PathBuf, GitVersion>> = Mutex::new(BTreeMap::new());

impl Git {
    /// Returns its major and minor version.
    ///
    /// # Errors
    /// When it is too old for anything, or fails.
    pub(crate) fn version(&self) -> Result<GitVersion, GitError> {
        let new_enough = || NEW_ENOUGH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = new_enough().get(&self.binary) {
            return Ok(*known);
        }
        let (version, found) = self.asked_version()?;
        if version >= GIT_VERSION_MIN {
            new_enough().insert(self.binary.clone(), version);
            return Ok(version);
        }
        Err(GitError::TooOld { found })
    }

    /// Makes sure that it is new enough.
    pub(super) fn check(&self) -> Result<(), GitError> {
        self.version().map(drop)
    }

    fn asked_version(&self) -> Result<(GitVersion, String), GitError> {
        let output = self.call(Path::new("/"), VERSION).text()?;
        let found = output.trim().trim_start_matches("git version ").to_owned();
        match version_of(&found) {
            Some(version) => Ok((version, found)),
            None => Err(GitError::TooOld { found }),
        }
    }
}

/// Returns major and minor version, of what `git version` says.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn version_is_read_from_every_vendors_format() {
        for (text, expected) in [
            ("2.47.3", Some((2, 47))),
            ("2.39.5 (Apple Git-154)", Some((2, 39))),
            ("2.45.1.windows.1", Some((2, 45))),
            ("3.0.0-rc1", Some((3, 0))),
            ("unknown", None),
            ("2", None),
        ] {
            assert_eq!(version_of(text), expected, "{text}");
        }
    }
}
