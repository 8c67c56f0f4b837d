//! What a layer changes in what lies below it, without git.
//!
//! Lists changed files and links, tells what can be kept nowhere, and notes what a person should
//! look at. Directories count only by what is in them. Never follows a link.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::content::{self, LayerRelation};
use super::lower::LowerStack;
use super::names::is_git_alias;
use super::survey::{LayerEntry, LayerPathKind, LayerSurvey, LowerPath};
use super::{Layer, LayerError};
use crate::candidate::{is_kapi_state, link};
use crate::refused_path::{FILE_BYTES_MAX, RefusalReason, RefusedPath};

/// What a layer holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerWalk {
    /// What differs, by path.
    pub changes: Vec<LayerChange>,
    /// What is in the layer and is never taken out of it, by path.
    pub refused: Vec<RefusedPath>,
    /// What is taken and deserves a look, by path.
    pub notes: Vec<WalkNote>,
}

/// One path where a layer differs from what lies below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerChange {
    /// The path, relative to the layer.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: LayerChangeKind,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerChangeKind {
    /// It is new.
    Added,
    /// Its content differs.
    Modified,
    /// Only its permissions differ.
    Mode,
    /// It is another type of thing now.
    Type,
    /// It is gone; a directory with all that was in it.
    Deleted,
    /// A directory was made anew in the place of one: what was in it and is not listed is gone.
    Replaced,
}

/// Something that is taken and deserves a look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WalkNote {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub about: WalkNoteKind,
}

/// What deserves a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalkNoteKind {
    /// A file that runs with another's rights; it is taken without them.
    SetId,
    /// A link to an absolute path; no commit takes one that is not in its base.
    AbsoluteLink,
    /// A link that may lead out of the tree; no commit takes one that is not in its base.
    EscapingLink,
    /// A name that differs from another only in case.
    CaseCollision,
}

/// Walks over a layer and compares it with what lies below.
pub fn walk(layer: &Layer, lower: &LowerStack) -> Result<LayerWalk, LayerError> {
    let survey = LayerSurvey::of(layer, lower)?;
    Ok(of(&survey))
}

pub(crate) fn of(survey: &LayerSurvey) -> LayerWalk {
    let mut walk = LayerWalk::default();
    for (path, entry) in survey.iter() {
        if let Some(why) = refusal(path, &entry.what) {
            let path = path.to_path_buf();
            walk.refused.push(RefusedPath { path, why });
        } else if let Some(kind) = change(survey, path, entry) {
            let path = path.to_path_buf();
            walk.changes.push(LayerChange { path, kind });
        }
    }
    let taken = walk.changes.iter().map(|change| change.path.as_path());
    walk.notes = notes(survey, taken);
    walk
}

/// Returns what deserves a look among the paths that are taken.
pub(crate) fn notes<'a>(
    survey: &LayerSurvey,
    taken: impl Iterator<Item = &'a Path> + Clone,
) -> Vec<WalkNote> {
    let mut notes = Vec::new();
    let mut by_case: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let lowercase = |path: &Path| path.as_os_str().as_bytes().to_ascii_lowercase();
    for path in taken.clone() {
        *by_case.entry(lowercase(path)).or_default() += 1;
    }
    for path in taken {
        let collides = by_case.get(&lowercase(path)).is_some_and(|&n| n > 1);
        let about = match survey.what(path) {
            Some(LayerPathKind::File { mode, .. }) if mode & 0o6000 != 0 => {
                Some(WalkNoteKind::SetId)
            }
            Some(LayerPathKind::Link { target }) => link_about(path, target),
            _ => None,
        };
        let collision = collides.then_some(WalkNoteKind::CaseCollision);
        for about in about.into_iter().chain(collision) {
            let path = path.to_path_buf();
            notes.push(WalkNote { path, about });
        }
    }
    notes
}

fn refusal(path: &Path, what: &LayerPathKind) -> Option<RefusalReason> {
    match what {
        LayerPathKind::Git => return Some(RefusalReason::GitDirectory),
        LayerPathKind::Special => return Some(RefusalReason::SpecialFile),
        LayerPathKind::Unreadable => return Some(RefusalReason::Unreadable),
        LayerPathKind::TooLong => return Some(RefusalReason::PathTooLong),
        LayerPathKind::Directory { .. } => return None,
        LayerPathKind::File { .. } | LayerPathKind::Link { .. } | LayerPathKind::Whiteout => {}
    }
    if is_kapi_state(path) {
        return Some(RefusalReason::KapiState);
    }
    // What only goes away may have any name.
    if *what != LayerPathKind::Whiteout && path.iter().any(is_git_alias) {
        return Some(RefusalReason::UnsafeName);
    }
    match what {
        LayerPathKind::File { bytes, .. } if *bytes > FILE_BYTES_MAX => {
            Some(RefusalReason::TooLarge)
        }
        _ => None,
    }
}

fn change(survey: &LayerSurvey, path: &Path, entry: &LayerEntry) -> Option<LayerChangeKind> {
    match entry.what {
        LayerPathKind::Whiteout if entry.below == LowerPath::Nothing => None,
        LayerPathKind::Whiteout => Some(LayerChangeKind::Deleted),
        LayerPathKind::Directory { is_opaque } => match entry.below {
            LowerPath::Nothing => None,
            LowerPath::Directory => is_opaque.then_some(LayerChangeKind::Replaced),
            _ => Some(LayerChangeKind::Type),
        },
        _ => match content::relation(survey, path, entry) {
            LayerRelation::New => Some(LayerChangeKind::Added),
            LayerRelation::Same => None,
            LayerRelation::Mode => Some(LayerChangeKind::Mode),
            LayerRelation::Content => Some(LayerChangeKind::Modified),
            LayerRelation::Type => Some(LayerChangeKind::Type),
        },
    }
}

fn link_about(path: &Path, target: &OsStr) -> Option<WalkNoteKind> {
    if Path::new(target).is_absolute() {
        return Some(WalkNoteKind::AbsoluteLink);
    }
    link::leads_out(path, target).then_some(WalkNoteKind::EscapingLink)
}
