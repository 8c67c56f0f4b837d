//! What Kapi put into a client's files, kept in the person's home so that exactly this can be taken out.
//!
//! Holds no other text of those files: there may be secrets in them.

use std::path::{Path, PathBuf};

use kapi_store::layout::HomeLayout;
use kapi_sys::disk::{Disk as _, replace_durably};
use serde::{Deserialize, Serialize};

use super::entry::SettingsEntry;
use super::patch::TextPatch;
use crate::context::Context;
use crate::error::Error;

/// What was put into the files of one client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupReceipt {
    /// The files, in the order in which they were changed.
    pub(super) files: Vec<FileReceipt>,
    /// The directories that were made for them, the innermost first; they go when they are empty.
    pub(super) directories: Vec<PathBuf>,
}

/// What was put into one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileReceipt {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Whether the file is new.
    pub(super) is_new: bool,
    /// What changed in it.
    pub(super) patch: TextPatch,
    /// The entry, where it is a file of settings.
    pub(super) entry: Option<SettingsEntry>,
}

/// What a file is without what was put into it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UndoneFile {
    /// This text.
    Text(String),
    /// It is gone.
    Gone,
    /// It has nothing of it any more.
    Already,
    /// What was put in was changed since, and is not ours to take out.
    Changed,
}

impl FileReceipt {
    /// Returns what a file is without what was put into it.
    pub(super) fn undo(&self, text: Option<&str>) -> UndoneFile {
        let Some(text) = text else {
            return UndoneFile::Already;
        };
        if self.is_new && text == self.patch.inserted {
            return UndoneFile::Gone;
        }
        let undone = self
            .patch
            .undo(text)
            .filter(|undone| self.entry.as_ref().is_none_or(|it| it.is_absent(undone)))
            .or_else(|| {
                let entry = self.entry.as_ref()?;
                entry.take_out_of(text, &self.patch.inserted)
            });
        match undone {
            // A file that was made for the entry is not left behind empty.
            Some(undone) if self.is_new && undone.trim().is_empty() => UndoneFile::Gone,
            Some(undone) => UndoneFile::Text(undone),
            None if self.entry.as_ref().is_some_and(|it| it.is_absent(text)) => UndoneFile::Already,
            None => UndoneFile::Changed,
        }
    }
}

/// Returns where a client's receipt is.
fn path(context: &Context, client: &str) -> PathBuf {
    let layout = HomeLayout::new(&context.home);
    layout
        .state_dir()
        .join("setup")
        .join(format!("{client}.json"))
}

/// Reads the receipt of a client; `None` where nothing was put in.
pub(super) fn read(context: &Context, client: &str) -> Result<Option<SetupReceipt>, Error> {
    let path = path(context, client);
    let Some(bytes) = context
        .disk
        .read(&path, 0)
        .map_err(|error| Error::failed(&error))?
    else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::usage(format!("{}: {error}", path.display())).with_hint(
            "it records what `kapi setup` wrote. Remove it, and remove the entries by hand.",
        )
    })
}

/// Keeps the receipt of a client.
pub(super) fn keep(context: &Context, client: &str, receipt: &SetupReceipt) -> Result<(), Error> {
    let path = path(context, client);
    let failed = |error| Error::failed(&error);
    let parent = path.parent().unwrap_or(Path::new("/"));
    context.disk.create_dir(parent).map_err(failed)?;
    let mut bytes = serde_json::to_vec_pretty(receipt)
        .map_err(|error| Error::usage(format!("the receipt cannot be written: {error}")))?;
    bytes.push(b'\n');
    replace_durably(&context.disk, &path, &bytes).map_err(failed)
}

/// Removes the receipt of a client.
pub(super) fn remove(context: &Context, client: &str) -> Result<(), Error> {
    super::files::remove(&path(context, client))
}
