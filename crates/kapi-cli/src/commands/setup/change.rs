//! What setting a client up, or undoing it, does to its files: worked out whole before anything is
//! written, so that a person sees it first.

use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::client::{ClientFile, FileContent};
use super::entry::{EntryError, SettingsEntry};
use super::files;
use super::patch::TextPatch;
use super::receipt::{FileReceipt, SetupReceipt, UndoneFile};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Lines around a change that are shown with it.
const CONTEXT_LINES: usize = 2;

/// What happens to one file.
#[derive(Debug, PartialEq)]
pub(super) struct FileChange {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its text now; `None` where it is not there.
    pub(super) before: Option<String>,
    /// Its text afterwards; `None` where it is gone.
    pub(super) after: Option<String>,
    /// What is noted of it, where something of Kapi's is in it afterwards.
    pub(super) receipt: Option<FileReceipt>,
    /// What the person should know.
    pub(super) note: Option<String>,
}

impl FileChange {
    /// Tells whether anything changes.
    pub(super) fn is_one(&self) -> bool {
        self.before != self.after
    }

    /// Returns the word for what happens.
    pub(super) const fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, Some(_)) => "create",
            (Some(_), None) => "remove",
            (Some(_), Some(_)) | (None, None) => "change",
        }
    }

    /// Returns the change as a diff.
    pub(super) fn diff(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (before, after) = (text(&self.before), text(&self.after));
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        TextDiff::from_lines(&before, &after)
            .unified_diff()
            .context_radius(CONTEXT_LINES)
            .header(&name(&self.before), &name(&self.after))
            .to_string()
    }

    /// Makes the change. Returns the directories that were made for it, the innermost first.
    pub(super) fn apply(&self, context: &Context) -> Result<Vec<PathBuf>, Error> {
        match &self.after {
            _ if !self.is_one() => Ok(Vec::new()),
            Some(text) => files::write(context, &self.path, text),
            None => files::remove(&self.path).map(|()| Vec::new()),
        }
    }
}

/// Returns what happens when a client gets what it needs; what it got before is replaced.
pub(super) fn installing(
    wanted: &[ClientFile],
    known: &SetupReceipt,
) -> Result<Vec<FileChange>, Error> {
    let mut changes = Vec::new();
    for file in wanted {
        changes.push(install(file, known)?);
    }
    // What a client needed once and needs no more is taken out.
    for receipt in &known.files {
        if !wanted.iter().any(|file| file.path == receipt.path) {
            changes.push(undo(receipt)?);
        }
    }
    Ok(changes)
}

/// Returns what happens when what was put in is taken out.
pub(super) fn undoing(known: &SetupReceipt) -> Result<Vec<FileChange>, Error> {
    known.files.iter().rev().map(undo).collect()
}

fn install(file: &ClientFile, known: &SetupReceipt) -> Result<FileChange, Error> {
    let before = files::read(&file.path)?;
    let mut receipts = known.files.iter();
    let old = receipts.find(|receipt| receipt.path == file.path);
    let wanted = WantedFile {
        path: &file.path,
        before,
        old,
    };
    match &file.content {
        FileContent::Entry(entry) => wanted.with_entry(entry),
        FileContent::EntryIfFree(entry) => {
            let is_theirs =
                |text: &String| matches!(entry.put_into(text), Err(EntryError::Foreign { .. }));
            if wanted.clean().as_ref().is_some_and(is_theirs) {
                return Ok(wanted.left(&format!("your own `{}` stays", entry.dotted())));
            }
            wanted.with_entry(entry)
        }
        FileContent::Whole(text) => wanted.whole(text),
        FileContent::WholeIfFree(text) if wanted.is_theirs(text) => {
            Ok(wanted.left("your own file stays, so the stop gate does not hold there"))
        }
        FileContent::WholeIfFree(text) => wanted.whole(text),
    }
}

/// A file that is to get something.
struct WantedFile<'a> {
    path: &'a Path,
    before: Option<String>,
    old: Option<&'a FileReceipt>,
}

impl WantedFile<'_> {
    /// Returns its text without what was put in before.
    fn clean(&self) -> Option<String> {
        match self.old.map(|old| old.undo(self.before.as_deref())) {
            Some(UndoneFile::Text(text)) => Some(text),
            Some(UndoneFile::Gone) => None,
            Some(UndoneFile::Already | UndoneFile::Changed) | None => self.before.clone(),
        }
    }

    /// Tells whether a file of Kapi's own would replace somebody else's.
    fn is_theirs(&self, text: &str) -> bool {
        self.clean().is_some_and(|there| there != text)
    }

    /// Nothing changes.
    fn left(self, why: &str) -> FileChange {
        let note = format!("{}: {why}", self.path.display());
        FileChange {
            note: Some(note),
            ..self.unchanged()
        }
    }

    fn unchanged(self) -> FileChange {
        FileChange {
            path: self.path.to_path_buf(),
            after: self.before.clone(),
            before: self.before,
            receipt: self.old.cloned(),
            note: None,
        }
    }

    fn with_entry(self, entry: &SettingsEntry) -> Result<FileChange, Error> {
        let is_there =
            |text: &String| !entry.is_absent(text) && entry.put_into(text).as_ref() == Ok(text);
        if self.before.as_ref().is_some_and(is_there) {
            // Somebody's own entry that says the same is theirs: nothing is noted of it.
            return Ok(self.unchanged());
        }
        let clean = self.clean();
        let text = clean.clone().unwrap_or_default();
        let after = entry.put_into(&text).map_err(|error| {
            Error::usage(format!("{}: {error}", self.path.display())).with_hint(format!(
                "Kapi changes nothing in it. Repair the file, or remove or rename the entry `{}`, \
                 then try again.",
                entry.dotted()
            ))
        })?;
        let receipt = FileReceipt {
            path: self.path.to_path_buf(),
            is_new: clean.is_none(),
            patch: TextPatch::between(&text, &after),
            entry: Some(entry.clone()),
        };
        Ok(self.changed(after, receipt))
    }

    fn whole(self, text: &str) -> Result<FileChange, Error> {
        if self.before.as_deref() == Some(text) {
            return Ok(self.unchanged());
        }
        if self.is_theirs(text) {
            let what = format!(
                "{} is there, and Kapi did not write it",
                self.path.display()
            );
            return Err(Error::usage(what)
                .with_hint("Kapi changes nothing in it. Move it away, or add `--only-server`."));
        }
        let receipt = FileReceipt {
            path: self.path.to_path_buf(),
            is_new: true,
            patch: TextPatch::between("", text),
            entry: None,
        };
        Ok(self.changed(text.to_owned(), receipt))
    }

    fn changed(self, after: String, receipt: FileReceipt) -> FileChange {
        FileChange {
            path: self.path.to_path_buf(),
            before: self.before,
            after: Some(after),
            receipt: Some(receipt),
            note: None,
        }
    }
}

fn undo(receipt: &FileReceipt) -> Result<FileChange, Error> {
    let before = files::read(&receipt.path)?;
    let after = match receipt.undo(before.as_deref()) {
        UndoneFile::Text(text) => Some(text),
        UndoneFile::Gone => None,
        UndoneFile::Already => before.clone(),
        UndoneFile::Changed => return Err(changed(&receipt.path)),
    };
    Ok(FileChange {
        path: receipt.path.clone(),
        before,
        after,
        receipt: None,
        note: None,
    })
}

fn changed(path: &Path) -> Error {
    Error::new(
        Exit::Denied,
        format!(
            "what Kapi put into {} was changed since, so it is not taken out",
            path.display()
        ),
    )
    .with_hint("take it out by hand, then undo again.")
}
