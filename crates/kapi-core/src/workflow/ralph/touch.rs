//! What landings changed: beside what the plan said they would, and since somebody's checks passed.
//!
//! A plan's paths decide who may work at once; what a commit really changed is seen by Kapi when it
//! lands. Knows paths and patterns only.

use serde::{Deserialize, Serialize};

use crate::workflow::ralph::plan::PlanTask;
use crate::workflow::ralph::state::{Ralph, Stand, TaskState};

/// The most paths that are kept of one landing.
pub const PATHS_MAX: usize = 500;
/// The most steps that one pattern takes on one path.
const STEPS_MAX: u32 = 10_000;

/// The paths that a landing changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    /// The paths, relative to the top.
    pub paths: Vec<String>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Changed {
    /// Keeps as many paths as are kept.
    #[must_use]
    pub fn of(mut paths: Vec<String>) -> Self {
        let n_more = paths.len().saturating_sub(PATHS_MAX);
        paths.truncate(PATHS_MAX);
        Self {
            paths,
            n_more: u64::try_from(n_more).unwrap_or(u64::MAX),
        }
    }

    /// Tells whether two landings may have changed one path.
    fn meets(&self, other: &Self) -> bool {
        self.n_more > 0
            || other.n_more > 0
            || self.paths.iter().any(|path| other.paths.contains(path))
    }
}

/// Returns the paths that a task changed and that its plan does not name; none for a task that names
/// no paths and runs alone.
#[must_use]
pub fn outside<'a>(task: &PlanTask, changed: &'a Changed) -> Vec<&'a str> {
    if task.touches.is_empty() {
        return Vec::new();
    }
    let is_named = |path: &str| task.touches.iter().any(|glob| matches(glob, path));
    let paths = changed.paths.iter().map(String::as_str);
    paths.filter(|path| !is_named(path)).collect()
}

/// Returns the other tasks under way that the plan gives one of these paths to: those at work or
/// proved, which were begun without them.
#[must_use]
pub fn overlapped<'a>(ralph: &'a Ralph, task: &PlanTask, paths: &[&str]) -> Vec<&'a TaskState> {
    let is_under_way = |state: &&TaskState| {
        state.task.id != task.id
            && (state.is_working || matches!(state.stand, Stand::Proved { .. }))
    };
    let is_theirs = |state: &&TaskState| {
        let mut globs = state.task.touches.iter();
        globs.any(|glob| paths.iter().any(|path| matches(glob, path)))
    };
    let under_way = ralph.tasks.values().filter(is_under_way);
    under_way.filter(is_theirs).collect()
}

/// Tells whether something that landed since a task's checks last passed changed a path that the task
/// changed, too; where nobody looked at what was changed, it may have.
#[must_use]
pub fn is_stale(ralph: &Ralph, state: &TaskState) -> bool {
    let since = ralph.changes.get(state.verified_with..).unwrap_or_default();
    let own = ralph.landed.iter().rposition(|id| *id == state.task.id);
    let own = own.and_then(|at| ralph.changes.get(at)).cloned().flatten();
    let Some(own) = own else {
        return !since.is_empty();
    };
    since
        .iter()
        .any(|landed| landed.as_ref().is_none_or(|landed| landed.meets(&own)))
}

/// Tells whether a pattern of a plan names a path: `*`, `?` and `[…]` within a name, `**` for any
/// directories, and a directory for all below it. Alternatives in braces stand for each of them.
fn matches(glob: &str, path: &str) -> bool {
    let glob = glob.trim_start_matches("./").trim_end_matches('/');
    if glob.is_empty() || glob == "." {
        return true;
    }
    let path: Vec<&str> = path.split('/').collect();
    alternatives(glob).iter().any(|glob| {
        let names: Vec<&str> = glob.split('/').collect();
        let mut steps = STEPS_MAX;
        is_path(&names, &path, &mut steps)
    })
}

/// Returns a pattern without braces for each alternative of the first pair, and so on.
fn alternatives(glob: &str) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(glob) = open.pop() {
        let inner = glob.split_once('{').and_then(|(before, rest)| {
            let (inner, after) = rest.split_once('}')?;
            Some((before, inner, after))
        });
        match inner {
            Some((before, inner, after)) if done.len() + open.len() < PATHS_MAX => {
                let each = inner.split(',').map(|one| format!("{before}{one}{after}"));
                open.extend(each);
            }
            Some(_) | None => done.push(glob),
        }
    }
    done
}

fn is_path(globs: &[&str], names: &[&str], steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    match (globs.split_first(), names.split_first()) {
        // A directory stands for all below it.
        (None, _) => true,
        (Some((&"**", rest)), Some((_, below))) => {
            is_path(rest, names, steps) || is_path(globs, below, steps)
        }
        (Some(_), None) => false,
        (Some((glob, globs)), Some((name, below))) => {
            is_name(glob, name, steps) && is_path(globs, below, steps)
        }
    }
}

fn is_name(glob: &str, name: &str, steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    let mut rest = glob.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let after = rest.as_str();
            is_name(after, name, steps)
                || without_first(name).is_some_and(|(_, name)| is_name(glob, name, steps))
        }
        Some('[') => {
            let Some((set, after)) = rest.as_str().split_once(']') else {
                return glob == name;
            };
            without_first(name)
                .is_some_and(|(c, name)| is_among(set, c) && is_name(after, name, steps))
        }
        Some(first) => without_first(name).is_some_and(|(c, name)| {
            (first == '?' || first == c) && is_name(rest.as_str(), name, steps)
        }),
    }
}

fn without_first(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    Some((first, chars.as_str()))
}

/// Tells whether a character is among those of a set: `abc`, `a-z`, `!a`.
fn is_among(set: &str, c: char) -> bool {
    let (set, is_not) = set
        .strip_prefix(['!', '^'])
        .map_or((set, false), |set| (set, true));
    let chars: Vec<char> = set.chars().collect();
    let mut found = false;
    let mut at = 0;
    while let Some(first) = chars.get(at) {
        if let (Some('-'), Some(last)) = (chars.get(at + 1), chars.get(at + 2)) {
            found |= (*first..=*last).contains(&c);
            at += 3;
        } else {
            found |= *first == c;
            at += 1;
        }
    }
    found != is_not
}

#[cfg(test)]
mod tests;
