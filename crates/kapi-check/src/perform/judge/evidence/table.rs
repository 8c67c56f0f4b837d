//! The list of every file that differs: what happened to it, what it is, how large it was and is.
//!
//! There is room for so many lines; what is beyond it is counted by kind and directory, and what
//! weighs most stands first, so that no number of files hides one that matters.

use std::collections::BTreeMap;

use kapi_core::quote::fenced;
use kapi_git::change::ChangeKind;
use kapi_git::changed_file::{FileMode, FileVersion};

use crate::perform::judge::evidence::kind::EvidenceFileKind;
use crate::perform::judge::evidence::{Exhibit, named};

/// Lines that count what is beyond the list.
const SUMMED_MAX: usize = 60;
/// Digits of an object's name.
const OBJECT_DIGITS: usize = 12;

/// Returns the list, in at most so many bytes and the lines that count the rest.
pub(super) fn table(exhibits: &[Exhibit], bytes_max: usize) -> String {
    let mut lines = Vec::new();
    let mut n_bytes = 0;
    for exhibit in exhibits {
        let line = line(exhibit);
        n_bytes += line.len() + 1;
        if n_bytes > bytes_max {
            break;
        }
        lines.push(line);
    }
    let rest = exhibits.get(lines.len()..).unwrap_or_default();
    lines.extend(summed(rest));
    let counted: Vec<String> = EvidenceFileKind::ALL
        .into_iter()
        .map(|kind| (kind, exhibits.iter().filter(|it| it.kind == kind).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {}", kind.word()))
        .collect();
    format!(
        "# Every file that differs from the base\n\n{} in all: {}. A name is quoted, and its kind is \
         guessed from its path.\n\n{}",
        exhibits.len(),
        counted.join(", "),
        fenced(&lines.join("\n"), "text")
    )
}

fn line(exhibit: &Exhibit) -> String {
    let file = &exhibit.file;
    let what = match (&exhibit.moved_from, file.kind) {
        (Some(_), _) => "moved",
        (None, ChangeKind::Added) => "new",
        (None, ChangeKind::Modified) => "changed",
        (None, ChangeKind::Deleted) => "deleted",
        (None, ChangeKind::Mode) => "mode",
        (None, ChangeKind::Type) => "type",
    };
    let (before, after) = (file.before.as_ref(), file.after.as_ref());
    let mut parts = vec![format!(
        "{what:<8} {:<9} {}",
        exhibit.kind.word(),
        named(&file.path)
    )];
    parts.extend(
        exhibit
            .moved_from
            .iter()
            .map(|from| format!(" from {from}, with the same content")),
    );
    if exhibit.is_moved_away {
        parts.push(" (moved, see its new name)".to_owned());
    }
    parts.push(sizes(before, after));
    let counts = file.lines.iter();
    parts.extend(counts.map(|count| format!(", +{} -{} lines", count.added, count.removed)));
    parts.push(modes(before, after));
    if let Some(version) = after
        .or(before)
        .filter(|_| exhibit.kind == EvidenceFileKind::Binary)
    {
        let digits = version.object.get(..OBJECT_DIGITS);
        parts.push(format!(", content {}", digits.unwrap_or_default()));
    }
    parts.concat()
}

fn sizes(before: Option<&FileVersion>, after: Option<&FileVersion>) -> String {
    let bytes = |version: &FileVersion| {
        version
            .bytes
            .map_or_else(|| "?".to_owned(), |bytes| bytes.to_string())
    };
    match (before, after) {
        (Some(before), Some(after)) => format!(": {} -> {} bytes", bytes(before), bytes(after)),
        (Some(one), None) | (None, Some(one)) => format!(": {} bytes", bytes(one)),
        (None, None) => String::new(),
    }
}

/// Returns what is to be said of modes: that one changed, or that it is no plain file.
fn modes(before: Option<&FileVersion>, after: Option<&FileVersion>) -> String {
    let word = |mode: FileMode| match mode {
        FileMode::Plain => "a plain file",
        FileMode::Executable => "executable",
        FileMode::Link => "a symbolic link",
        FileMode::Submodule => "a submodule",
    };
    match (before.map(|it| it.mode), after.map(|it| it.mode)) {
        (Some(before), Some(after)) if before != after => {
            format!(", was {}, is {}", word(before), word(after))
        }
        (_, Some(mode)) | (Some(mode), None) if mode != FileMode::Plain => {
            format!(", {}", word(mode))
        }
        (_, _) => String::new(),
    }
}

/// Returns lines that count files by kind and directory, what weighs most first.
fn summed(rest: &[Exhibit]) -> Vec<String> {
    if rest.is_empty() {
        return Vec::new();
    }
    let mut counts: BTreeMap<(EvidenceFileKind, String), usize> = BTreeMap::new();
    for exhibit in rest {
        let parent = exhibit.file.path.parent();
        let top = parent.map(|parent| parent.components().take(2).collect::<std::path::PathBuf>());
        let location = (exhibit.kind, named(&top.unwrap_or_default()));
        *counts.entry(location).or_default() += 1;
    }
    let mut lines = vec![format!(
        "and {} more, all in these directories:",
        rest.len()
    )];
    let shown = counts.iter().take(SUMMED_MAX);
    lines.extend(shown.map(|((kind, top), count)| format!("  {count} {} in {top}", kind.word())));
    let beyond: usize = counts.values().skip(SUMMED_MAX).sum();
    if beyond > 0 {
        let n_locations = counts.len().saturating_sub(SUMMED_MAX);
        lines.push(format!("  {beyond} in {n_locations} other directories"));
    }
    lines
}
