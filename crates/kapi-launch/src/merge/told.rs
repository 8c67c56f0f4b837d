//! What happens to each path of a merge, in words; what is held back stands among the rest.
//!
//! Decides nothing but what counts as held.

use std::path::Path;

use kapi_git::apply::{self, Preview, Verdict};
use kapi_git::layer::walk::Walk;

use super::gate::AutoRun;
use super::{MergeResult, MergedPath, left_out_of};

/// What is held back, and what would happen to it.
pub(super) struct Aside {
    pub(super) preview: Preview,
    pub(super) held: Vec<AutoRun>,
}

impl Aside {
    pub(super) fn n_held(&self) -> usize {
        let verdicts = self.preview.verdicts.iter();
        verdicts.filter(|(_, verdict)| is_wanted(verdict)).count()
    }

    /// Returns a path of what is held back.
    fn path(&self, path: &Path, verdict: &Verdict) -> MergedPath {
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

pub(super) fn why_held(held: &[AutoRun], path: &Path) -> Option<&'static str> {
    let path = path.to_string_lossy();
    let mut fitting = held.iter().filter(|one| one.path == path);
    fitting.next().map(|one| one.why)
}

/// Tells whether a path would be written if it were not held back.
const fn is_wanted(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Create | Verdict::Replace | Verdict::Merge | Verdict::Marked { .. } => true,
        Verdict::Delete | Verdict::Same | Verdict::Conflict(_) | Verdict::Refused(_) => false,
    }
}

pub(super) fn merged(preview: &Preview, applied: bool, walk: &Walk, aside: &Aside) -> MergeResult {
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
        not_selected: preview.n_left_out + aside.preview.n_left_out,
        unmatched: unmatched.cloned().collect(),
        left_out: left_out_of(walk),
        paths,
    }
}

fn merged_path(path: &Path, verdict: &Verdict) -> MergedPath {
    let (word, why) = match verdict {
        Verdict::Create => ("create", None),
        Verdict::Replace => ("replace", None),
        Verdict::Delete => ("delete", None),
        Verdict::Merge => ("merge", None),
        Verdict::Same => ("same", None),
        Verdict::Marked { n_places } => ("marked", Some(format!("conflicts in {n_places} places"))),
        Verdict::Conflict(conflict) => ("conflict", Some(conflict_text(*conflict))),
        Verdict::Refused(refusal) => ("refused", Some(refusal_text(*refusal).to_owned())),
    };
    MergedPath {
        path: path.to_string_lossy().into_owned(),
        verdict: word,
        why,
    }
}

fn conflict_text(conflict: apply::Conflict) -> String {
    use apply::Conflict;
    match conflict {
        Conflict::ChangedHere => "it has changed in the project since".to_owned(),
        Conflict::GoneHere => "it was removed from the project since".to_owned(),
        Conflict::AppearedHere => "it was created in the project since".to_owned(),
        Conflict::SamePlaces { n_places } => {
            format!("both changed it in the same {n_places} places")
        }
        Conflict::NotEmpty => "the directory in the project has other content".to_owned(),
        Conflict::NoDirectory => "part of the path is not a directory in the project".to_owned(),
        Conflict::SpecialFile => "it is a device, pipe or socket in the project".to_owned(),
    }
}

const fn refusal_text(refusal: apply::Refusal) -> &'static str {
    use apply::Refusal;
    match refusal {
        Refusal::NotBelow => "not a path in the project",
        Refusal::GitData => "git's own data",
        Refusal::KapiState => "Kapi's own state",
        Refusal::LinkOut => {
            "a symbolic link that points outside the project; allow it with \
            `--link-out`"
        }
        Refusal::NoFile => "not a regular file",
        Refusal::TooLarge => "too large",
    }
}
