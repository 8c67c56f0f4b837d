//! How conflicts were settled before, kept in the repository by the three contents that met.
//!
//! A path is no part of the name, nor which side came first, so that the same conflict is known again
//! after a rename and in another order. Nothing is ever taken from here unasked: a resolution is offered.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::change::TreeFile;
use crate::changed_file::FileMode;
use crate::command::GitError;
use crate::commit_object::{CommitObject, utc};
use crate::diff::nothing;
use crate::id::CommitId;
use crate::land::LandError;
use crate::land::merge::{ConflictPath, ConflictSide};
use crate::land::source::SettledContent;
use crate::owned_dir;
use crate::repository::Repository;
use crate::rescue::Signature;
use crate::scratch::Objects;
use crate::tree_edit::TreeEdit;

/// Below which resolutions are kept.
const RESOLUTION_REFS: &str = "refs/kapi/resolutions";

/// The name of what it was settled as.
const SETTLED: &str = "settled";

/// A conflict of one path, and how it was settled.
#[derive(Debug, Clone, Copy)]
pub struct Resolution<'a> {
    /// The conflict.
    pub conflict: &'a ConflictPath,
    /// What the path is to be; nothing where it goes.
    pub content: Option<&'a SettledContent>,
    /// Why.
    pub rationale: &'a str,
}

/// A resolution that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedResolution {
    /// What the path was settled as; nothing where it went.
    pub content: Option<SettledContent>,
    /// Why.
    pub rationale: String,
    /// The commit that keeps it, with the three contents beside it.
    pub commit: CommitId,
}

impl Repository {
    /// Keeps how a conflict was settled, in the place of what was kept for the same contents before.
    ///
    /// `scratch` is a directory of ours for git's own files; nothing is left in it.
    ///
    /// # Errors
    /// When git fails.
    pub fn remember_resolution(
        &self,
        resolution: &Resolution<'_>,
        signature: Signature<'_>,
        scratch: &Path,
    ) -> Result<CommitId, LandError> {
        let work = self.merging(scratch, Objects::Shared)?;
        let conflict = resolution.conflict;
        let sides = [
            ("base", &conflict.base),
            ("ours", &conflict.ours),
            ("theirs", &conflict.theirs),
        ];
        let sides = sides.into_iter().filter_map(|(name, side)| {
            let side = side.as_ref()?;
            // A commit of another repository is no object of this one.
            let is_here = side.mode != FileMode::Submodule;
            is_here.then(|| {
                TreeEdit::File(TreeFile {
                    mode: FileMode::Plain.as_str().to_owned(),
                    object: side.object.clone(),
                    path: PathBuf::from(name),
                })
            })
        });
        let mut edits: Vec<TreeEdit> = sides.collect();
        if let Some(SettledContent { mode, bytes }) = resolution.content {
            let file = work.stored(Path::new(SETTLED), *mode, bytes)?;
            edits.push(TreeEdit::File(file));
        }
        let tree = work.edited(nothing(self.object_format()), &edits)?;
        let at = utc(signature.at_unix_seconds);
        let commit = CommitObject {
            tree: &tree,
            parents: &[],
            message: resolution.rationale.as_bytes(),
            author: signature.author,
            authored: &at,
            committer: signature.author,
            committed: &at,
        };
        let commit = commit.write(self.call("commit-tree"))?;
        let name = name_of(conflict);
        let before = self.ref_value(&name)?;
        if before.as_ref() != Some(&commit) {
            let change = match before {
                None => format!("create {name} {commit}"),
                Some(before) => format!("update {name} {commit} {before}"),
            };
            self.change_refs(&[change], &[&name])?;
        }
        owned_dir::wipe(scratch)?;
        Ok(commit)
    }

    /// Returns how the same contents were settled before, wherever the path lay.
    ///
    /// # Errors
    /// When git fails.
    pub fn remembered_resolution(
        &self,
        conflict: &ConflictPath,
    ) -> Result<Option<RememberedResolution>, GitError> {
        let Some(commit) = self.ref_value(&name_of(conflict))? else {
            return Ok(None);
        };
        let entries = self.entries(commit.as_str(), &[])?;
        let settled = entries
            .into_iter()
            .find(|entry| entry.path == Path::new(SETTLED));
        let content = match settled {
            None => None,
            Some(TreeFile { mode, object, .. }) => Some(SettledContent {
                mode: FileMode::of(&mode).unwrap_or(FileMode::Plain),
                bytes: self.blob(&object)?,
            }),
        };
        Ok(Some(RememberedResolution {
            content,
            rationale: self.message_of(&commit)?,
            commit,
        }))
    }
}

/// Returns the ref of a conflict. Either side may come first.
fn name_of(conflict: &ConflictPath) -> String {
    let object = |side: &Option<ConflictSide>| {
        let object = side.as_ref().map(|side| side.object.clone());
        object.unwrap_or_else(|| "-".to_owned())
    };
    let mut sides = [object(&conflict.ours), object(&conflict.theirs)];
    sides.sort();
    let text = format!("{} {}", object(&conflict.base), sides.join(" "));
    let mut name = format!("{RESOLUTION_REFS}/");
    for byte in Sha256::digest(text.as_bytes()) {
        name.extend(
            [byte >> 4, byte & 0xf]
                .map(|half| char::from_digit(half.into(), 16))
                .into_iter()
                .flatten(),
        );
    }
    name
}
