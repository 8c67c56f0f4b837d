//! What a judge is shown of a change: every file that differs, and as much of each as there is room.
//!
//! Made in one place and of git's objects alone. Nothing is left out without being named, code stands
//! before bulk, and no file can push another out: each has room of its own. What pretends to be binary
//! is shown as text. All of it is foreign, so it is made visible and fenced.

mod kind;
mod patches;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_core::quote::visible;
use kapi_git::change::ChangeKind;
use kapi_git::changed_file::ChangedFile;
use kapi_git::id::CommitId;
use kapi_run::failure;
use kapi_run::repository_session::RepositorySession;

use crate::perform::judge::evidence::kind::{EvidenceFileKind, Paths};

/// Bytes at the beginning of a patch that tell text from what is none.
const SAMPLE_BYTES_MAX: usize = 16 * 1024;
/// Files that git takes for binary and that are looked into.
const SAMPLES_MAX: usize = 100;

/// A change: two commits of a repository.
pub struct JudgedChange<'a> {
    /// The repository.
    pub repo: &'a RepositorySession,
    /// What was there before; nothing where nothing was changed.
    pub base: Option<CommitId>,
    /// What is judged.
    pub commit: CommitId,
}

/// How much of a change is shown.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceLimits {
    /// Bytes of all patches together.
    pub patch_bytes: usize,
    /// Bytes of the list of files.
    pub table_bytes: usize,
    /// What is said where something is not shown.
    pub if_cut: &'static str,
}

impl EvidenceLimits {
    /// For somebody who has all of the result in a checkout.
    pub(crate) const BESIDE_CHECKOUT: Self = Self {
        patch_bytes: 100_000,
        table_bytes: 24 * 1024,
        if_cut: "What is not shown here stands in the working directory, which holds the whole \
                 result: look at it there.",
    };
    /// For somebody who has nothing else.
    pub(crate) const ALONE: Self = Self {
        patch_bytes: 200_000,
        table_bytes: 24 * 1024,
        if_cut: "What is not shown proves nothing.",
    };
}

/// A file that differs, with what it is to a judge.
struct Exhibit {
    file: ChangedFile,
    kind: EvidenceFileKind,
    /// The path from which it was moved without any change.
    moved_from: Option<String>,
    /// Whether it was only moved away, to a file that says so.
    is_moved_away: bool,
}

/// Returns a change as a judge is shown it: the list of files, then their patches.
pub fn of(change: &JudgedChange<'_>, limits: &EvidenceLimits) -> Result<String, Failure> {
    let Some(base) = &change.base else {
        return Ok(
            "# The change\n\nNothing was changed; the work is what the agent said.".to_owned(),
        );
    };
    let exhibits = exhibits(change, base)?;
    if exhibits.is_empty() {
        return Ok("# The change\n\nNo file differs from the base.".to_owned());
    }
    let listed = table::table(&exhibits, limits.table_bytes);
    let shown = patches::patches(change, base, &exhibits, limits)?;
    Ok(format!("{listed}\n\n{shown}"))
}

/// Returns the list of files alone.
pub fn files(change: &JudgedChange<'_>, limits: &EvidenceLimits) -> Result<String, Failure> {
    match &change.base {
        None => Ok(String::new()),
        Some(base) => Ok(table::table(&exhibits(change, base)?, limits.table_bytes)),
    }
}

/// Returns every file that differs, what weighs most first: code before tests before bulk, and within
/// these what was there before it was changed.
fn exhibits(change: &JudgedChange<'_>, base: &CommitId) -> Result<Vec<Exhibit>, Failure> {
    let repository = &change.repo.repository;
    let files = repository
        .changed_files(base, &change.commit)
        .map_err(|error| failure::plain(&error))?;
    let moves = moves(&files);
    let kinds = kinds(change, base, &files)?;
    let mut exhibits: Vec<Exhibit> = files
        .into_iter()
        .zip(moves)
        .zip(kinds)
        .map(|((file, (moved_from, is_moved_away)), kind)| Exhibit {
            file,
            kind,
            moved_from,
            is_moved_away,
        })
        .collect();
    exhibits.sort_by_key(|exhibit| {
        let is_new = exhibit.file.kind == ChangeKind::Added;
        (exhibit.kind, is_new, exhibit.file.path.clone())
    });
    Ok(exhibits)
}

/// Returns what each file is. What git takes for binary is looked into, but for code, which is always
/// shown.
fn kinds(
    change: &JudgedChange<'_>,
    base: &CommitId,
    files: &[ChangedFile],
) -> Result<Vec<EvidenceFileKind>, Failure> {
    let by_path = Paths::read(change, base, files)?.kinds(files);
    let mut n_samples = 0;
    let mut kinds = Vec::with_capacity(files.len());
    for (file, kind) in files.iter().zip(by_path) {
        let looks_binary = file.lines.is_none() && kind::has_content(file);
        if !looks_binary || kind.is_always_text() {
            kinds.push(kind);
            continue;
        }
        n_samples += 1;
        let is_text = n_samples <= SAMPLES_MAX && is_text(change, base, file)?;
        kinds.push(if is_text {
            kind
        } else {
            EvidenceFileKind::Binary
        });
    }
    Ok(kinds)
}

fn is_text(
    change: &JudgedChange<'_>,
    base: &CommitId,
    file: &ChangedFile,
) -> Result<bool, Failure> {
    let repository = &change.repo.repository;
    let patch = repository
        .file_patch(base, &change.commit, &file.path, SAMPLE_BYTES_MAX)
        .map_err(|error| failure::plain(&error))?;
    Ok(kind::is_text(&patch.bytes))
}

/// Tells for each file whence it was moved, and whether it was moved away: an object that is gone from
/// one path and new at another.
fn moves(files: &[ChangedFile]) -> Vec<(Option<String>, bool)> {
    let mut gone: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.after.is_none()) {
        if let Some(before) = &file.before {
            gone.entry(&before.object).or_default().push(&file.path);
        }
    }
    let mut sources = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for file in files.iter().filter(|file| file.before.is_none()) {
        let source = file
            .after
            .as_ref()
            .and_then(|after| gone.get_mut(&*after.object)?.pop());
        if let Some(source) = source {
            sources.insert(&file.path, named(source));
            taken.insert(source);
        }
    }
    let reported = |file: &ChangedFile| {
        (
            sources.get(&file.path).cloned(),
            taken.contains(file.path.as_path()),
        )
    };
    files.iter().map(reported).collect()
}

/// Returns a path as it is shown: quoted, on one line, with nothing hidden.
fn named(path: &Path) -> String {
    format!(
        "\"{}\"",
        visible(&path.to_string_lossy().escape_debug().to_string())
    )
}

#[cfg(test)]
mod tests;
