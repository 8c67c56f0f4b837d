//! What happens to each path of a merge, in words; what is held back stands among the rest.
//!
//! Decides nothing but what counts as held.

use std::path::{Path, PathBuf};

use kapi_core::text::counted;
use kapi_git::apply::{self, PathVerdict, Preview};
use kapi_git::layer::walk::LayerWalk;

use super::gate::AutoRun;
use super::{MergeResult, MergedPath, left_out_of};

/// What is held back, and what would happen to it.
pub(super) struct HeldBackFiles {
    pub(super) preview: Preview,
    pub(super) held: Vec<AutoRun>,
}

impl HeldBackFiles {
    pub(super) fn n_held(&self) -> usize {
        let verdicts = self.preview.verdicts.iter();
        verdicts.filter(|(_, verdict)| is_wanted(verdict)).count()
    }

    /// Returns a path of what is held back.
    fn path(&self, path: &Path, verdict: &PathVerdict) -> MergedPath {
        let merged = merged_path(path, verdict);
        match why_held(&self.held, path) {
            Some(why) if is_wanted(verdict) => MergedPath {
                verdict: "held",
                why: Some(why.to_owned()),
                ..merged
            },
            Some(_) | None => merged,
        }
    }
}

/// Returns the texts in which the changes of both sides were brought together.
pub(super) fn both_sides(preview: &Preview) -> impl Iterator<Item = &PathBuf> {
    let merged = |verdict: &PathVerdict| *verdict == PathVerdict::Merge;
    let verdicts = preview.verdicts.iter();
    verdicts.filter_map(move |(path, verdict)| merged(verdict).then_some(path))
}

pub(super) fn why_held(held: &[AutoRun], path: &Path) -> Option<&'static str> {
    let path = path.to_string_lossy();
    let mut fitting = held.iter().filter(|one| one.path == path);
    fitting.next().map(|one| one.why)
}

/// Tells whether a path would be written if it were not held back.
const fn is_wanted(verdict: &PathVerdict) -> bool {
    match verdict {
        PathVerdict::Create
        | PathVerdict::Replace
        | PathVerdict::Merge
        | PathVerdict::Marked { .. } => true,
        PathVerdict::Delete
        | PathVerdict::Same
        | PathVerdict::Conflict(_)
        | PathVerdict::Refused(_) => false,
    }
}

pub(super) fn merged(
    preview: &Preview,
    applied: bool,
    walk: &LayerWalk,
    aside: &HeldBackFiles,
) -> MergeResult {
    let verdicts = preview.verdicts.iter();
    let verdicts = verdicts.map(|(path, verdict)| merged_path(path, verdict));
    let held = aside.preview.verdicts.iter();
    let held = held.map(|(path, verdict)| aside.path(path, verdict));
    let mut paths: Vec<MergedPath> = verdicts.chain(held).collect();
    paths.sort_by(|one, other| one.path.cmp(&other.path));
    let unmatched = preview.unmatched.iter();
    // A pattern that matches nothing of the one kind may match something of the other.
    let unmatched = unmatched.filter(|pattern| aside.preview.unmatched.contains(pattern));
    MergeResult {
        applied,
        obstacles: preview.n_obstacles() + aside.preview.n_obstacles() + aside.n_held(),
        held: aside.n_held(),
        mass_deletion: None,
        deceptive: Vec::new(),
        not_selected: preview.n_left_out + aside.preview.n_left_out,
        unmatched: unmatched.cloned().collect(),
        left_out: left_out_of(walk),
        paths,
    }
}

fn merged_path(path: &Path, verdict: &PathVerdict) -> MergedPath {
    let (word, why) = match verdict {
        PathVerdict::Create => ("create", None),
        PathVerdict::Replace => ("replace", None),
        PathVerdict::Delete => ("delete", None),
        PathVerdict::Merge => ("merge", None),
        PathVerdict::Same => ("same", None),
        PathVerdict::Marked { n_locations } => {
            ("marked", Some(format!("conflicts in {n_locations} places")))
        }
        PathVerdict::Conflict(conflict) => ("conflict", Some(conflict_text(*conflict))),
        PathVerdict::Refused(refusal) => ("refused", Some(refusal_text(*refusal).to_owned())),
    };
    MergedPath {
        path: path.to_string_lossy().into_owned(),
        verdict: word,
        why,
    }
}

fn conflict_text(conflict: apply::ApplyConflict) -> String {
    use apply::ApplyConflict;
    match conflict {
        ApplyConflict::ChangedHere => "it has changed in the project since".to_owned(),
        ApplyConflict::GoneHere => "it was removed from the project since".to_owned(),
        ApplyConflict::AppearedHere => "it was created in the project since".to_owned(),
        ApplyConflict::SamePlaces { n_locations } => {
            format!(
                "both changed it in the same {}",
                counted(n_locations, "place")
            )
        }
        ApplyConflict::NotEmpty => "the directory in the project has other content".to_owned(),
        ApplyConflict::NoDirectory => {
            "part of the path is not a directory in the project".to_owned()
        }
        ApplyConflict::SpecialFile => "it is a device, pipe or socket in the project".to_owned(),
    }
}

const fn refusal_text(refusal: apply::ApplyRefusal) -> &'static str {
    use apply::ApplyRefusal;
    match refusal {
        ApplyRefusal::NotBelow => "not a path in the project",
        ApplyRefusal::GitData => "git's own data",
        ApplyRefusal::KapiState => "Kapi's own state",
        ApplyRefusal::LinkOut => {
            "a symbolic link that points outside the project; allow it with \
            `--link-out`"
        }
        ApplyRefusal::NoFile => "not a regular file",
        ApplyRefusal::TooLarge => "too large",
    }
}
