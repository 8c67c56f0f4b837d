//! The lines of both sides of a conflict, one after the other, for files of entries: changelogs.

use std::path::Path;

use super::LandError;
use super::merge::{ConflictPath, ConflictSide};
use crate::changed_file::FileMode;
use crate::command::GitError;
use crate::owned_dir;
use crate::repository::Repository;
use crate::scratch::Objects;

/// The exit codes from which git could not merge at all.
const FAILED_MIN: i32 = 128;

impl Repository {
    /// Returns a file with the lines of both sides wherever they conflict; nothing where a side is
    /// gone or is no text.
    ///
    /// `scratch` is a directory of ours for git's own files; nothing is left in it.
    ///
    /// # Errors
    /// When git fails.
    pub fn union_of(
        &self,
        conflict: &ConflictPath,
        scratch: &Path,
    ) -> Result<Option<Vec<u8>>, LandError> {
        let (Some(ours), Some(theirs)) = (&conflict.ours, &conflict.theirs) else {
            return Ok(None);
        };
        let is_file =
            |side: &ConflictSide| matches!(side.mode, FileMode::Plain | FileMode::Executable);
        if !is_file(ours) || !is_file(theirs) {
            return Ok(None);
        }
        let work = self.merging(scratch, Objects::Private)?;
        let sides = [
            ("ours", Some(ours)),
            ("base", conflict.base.as_ref()),
            ("theirs", Some(theirs)),
        ];
        for (name, side) in sides {
            let bytes = match side {
                None => Vec::new(),
                Some(side) => self.blob(&side.object)?,
            };
            owned_dir::write(&scratch.join("files").join(name), &bytes)?;
        }
        let call = work.call("merge-file").args(["-p", "-q", "--union"]);
        let exit = call.args(["ours", "base", "theirs"]).exit()?;
        owned_dir::wipe(scratch)?;
        Ok((0..FAILED_MIN).contains(&exit.code).then_some(exit.stdout))
    }

    /// Returns the content of an object.
    ///
    /// # Errors
    /// When it is not here, or git fails.
    pub fn blob(&self, object: &str) -> Result<Vec<u8>, GitError> {
        self.call("cat-file").args(["blob", object]).bytes()
    }
}
