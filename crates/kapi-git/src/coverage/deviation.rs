//! Where a result differs from what should come of its sources, each line traced to who brought it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::blame::{StepHunk, count, holds, hunk_of, origin, past_paths};
use super::duplicate::is_repeated;
use super::replay::Replay;
use super::{CoverageFinding, CoveragePlan, FindingKind};
use crate::command::GitError;
use crate::hunks::{Hunk, TracedHunks, traced};
use crate::id::CommitId;
use crate::scratch::Scratch;

/// What became of one hunk of a source.
#[derive(Debug, Default)]
struct HunkFate {
    path: PathBuf,
    line: u64,
    /// Lines it brought that are not there.
    lost: Vec<Vec<u8>>,
    /// Lines it took away that are there again.
    restored: Vec<Vec<u8>>,
    /// Lines that stand in its place.
    found: Vec<Vec<u8>>,
}

/// What a comparison shows.
#[derive(Debug, Default)]
struct Differences {
    fates: BTreeMap<StepHunk, HunkFate>,
    others: Vec<CoverageFinding>,
}

/// Compares the result of a plan with what should come of it.
pub(super) fn find(
    scratch: &Scratch<'_>,
    replay: &Replay,
    plan: &CoveragePlan<'_>,
) -> Result<Vec<CoverageFinding>, GitError> {
    let expected = replay.heads.last().unwrap_or(plan.dev);
    let differences = compare(scratch, &replay.steps, [expected, plan.head])?;
    let mut findings = differences.others;
    let mut there_once = BTreeMap::new();
    for (at, fate) in differences.fates {
        let Some(hunk) = hunk_of(&replay.steps, at) else {
            continue;
        };
        let was_there = match there_once.get(&at.source) {
            Some(lost) => lost,
            None => {
                let lost = lost_at_once(scratch, replay, plan, at.source)?;
                there_once.entry(at.source).or_insert(lost)
            }
        };
        let was_there = was_there.as_ref().is_some_and(|lost| !lost.contains(&at));
        findings.push(finding(at, fate, hunk, was_there));
    }
    Ok(findings)
}

/// Returns the hunks that were lost already where a source was applied; nothing where that is not known.
fn lost_at_once(
    scratch: &Scratch<'_>,
    replay: &Replay,
    plan: &CoveragePlan<'_>,
    source: usize,
) -> Result<Option<BTreeSet<StepHunk>>, GitError> {
    let after = plan.sources.get(source).map(|one| &one.after);
    let (Some(after), Some(expected), Some(steps)) = (
        after.filter(|after| *after != plan.head),
        replay.heads.get(source),
        replay.steps.get(..=source),
    ) else {
        return Ok(None);
    };
    let differences = compare(scratch, steps, [expected, after])?;
    Ok(Some(differences.fates.into_keys().collect()))
}

fn finding(at: StepHunk, fate: HunkFate, hunk: &Hunk, was_there: bool) -> CoverageFinding {
    let is_whole = fate.lost.len() == hunk.added.len()
        && (!hunk.added.is_empty() || fate.restored.len() == hunk.removed.len());
    let kind = match (was_there, is_whole && fate.found.is_empty()) {
        (true, _) => FindingKind::Reverted,
        (false, true) => FindingKind::Missed,
        (false, false) => FindingKind::Altered,
    };
    let found = if fate.found.is_empty() {
        fate.restored
    } else {
        fate.found
    };
    CoverageFinding {
        source: Some(at.source),
        lost: fate.lost,
        found,
        ..CoverageFinding::at(kind, &fate.path, fate.line)
    }
}

/// Compares what should be with what is.
fn compare(
    scratch: &Scratch<'_>,
    steps: &[TracedHunks],
    trees: [&CommitId; 2],
) -> Result<Differences, GitError> {
    let [expected, found] = trees.map(CommitId::as_str);
    let made = traced(scratch.call("diff-tree"), expected, found)?;
    let mut differences = Differences::default();
    for (to, from) in &made.renames {
        differences.others.push(renamed(steps, from, to));
    }
    for hunk in &made.hunks {
        let before = made.renames.get(&hunk.path).unwrap_or(&hunk.path);
        differences.add(steps, hunk, before);
    }
    Ok(differences)
}

/// A file that is elsewhere: where a source had moved it from, or where nobody moved it.
fn renamed(steps: &[TracedHunks], from: &Path, to: &Path) -> CoverageFinding {
    let moves = |step: &TracedHunks| step.renames.get(from).is_some_and(|was| was == to);
    let source = steps.iter().rposition(moves);
    let kind = match source {
        Some(_) => FindingKind::Missed,
        None => FindingKind::Unexpected,
    };
    CoverageFinding {
        source,
        ..CoverageFinding::at(kind, to, 0)
    }
}

impl Differences {
    /// Takes in one place where the result differs; `path` is where the file should be.
    fn add(&mut self, steps: &[TracedHunks], hunk: &Hunk, path: &Path) {
        let mut by_hunk: BTreeMap<StepHunk, Vec<Vec<u8>>> = BTreeMap::new();
        let mut earlier = Vec::new();
        for (offset, line) in (0_u64..).zip(&hunk.removed) {
            let at = if hunk.is_whole_file() {
                0
            } else {
                hunk.line_before + offset
            };
            match origin(steps, path, at) {
                Some(by) => by_hunk.entry(by).or_default().push(line.clone()),
                None => earlier.push(line.clone()),
            }
        }
        let first = by_hunk.keys().next().copied();
        for (by, lost) in by_hunk {
            let is_undone = hunk_of(steps, by).is_some_and(|own| holds(&own.removed, &hunk.added));
            let fate = self.fate(by, hunk);
            fate.lost.extend(lost);
            if first == Some(by) && is_undone {
                fate.restored.extend_from_slice(&hunk.added);
            } else if first == Some(by) {
                fate.found.extend_from_slice(&hunk.added);
            }
        }
        let added = if first.is_some() {
            &[]
        } else {
            hunk.added.as_slice()
        };
        match (
            earlier.is_empty(),
            added.is_empty(),
            taken_by(steps, hunk, path),
        ) {
            (true, true, _) => {}
            (false, ..) => self.others.push(CoverageFinding {
                lost: earlier,
                found: added.to_vec(),
                ..CoverageFinding::at(FindingKind::Reverted, &hunk.path, hunk.line)
            }),
            (true, false, Some(by)) => {
                let fate = self.fate(by, hunk);
                fate.restored.extend_from_slice(added);
            }
            (true, false, None) => self.others.push(unexplained(steps, hunk)),
        }
    }

    fn fate(&mut self, by: StepHunk, hunk: &Hunk) -> &mut HunkFate {
        self.fates.entry(by).or_insert_with(|| HunkFate {
            path: hunk.path.clone(),
            line: hunk.line,
            ..HunkFate::default()
        })
    }
}

/// Returns the hunk that took away what is there again.
fn taken_by(steps: &[TracedHunks], made: &Hunk, path: &Path) -> Option<StepHunk> {
    let paths = past_paths(steps, path);
    let steps = steps.iter().enumerate().rev();
    let mut hunks = steps.flat_map(|(source, step)| {
        let hunks = step.hunks.iter().enumerate();
        hunks.map(move |(idx, hunk)| (StepHunk { source, hunk: idx }, hunk))
    });
    let found = hunks.find(|(_, hunk)| {
        let is_own = paths.contains(&hunk.path) && hunk.is_whole_file() == made.is_whole_file();
        is_own && holds(&hunk.removed, &made.added)
    });
    found.map(|(at, _)| at)
}

/// Lines that nobody brought, or that somebody brought once.
fn unexplained(steps: &[TracedHunks], made: &Hunk) -> CoverageFinding {
    let source = steps.iter().rposition(|step| {
        let hunks = step.hunks.iter();
        let mut others = hunks.filter(|hunk| !hunk.is_whole_file());
        others.any(|hunk| is_repeated(&hunk.added, &made.added))
    });
    let kind = match source {
        Some(_) => FindingKind::Duplicated,
        None => FindingKind::Unexpected,
    };
    debug_assert!(
        count(&made.added) > 0,
        "there are lines that nobody brought"
    );
    CoverageFinding {
        source,
        found: made.added.clone(),
        ..CoverageFinding::at(kind, &made.path, made.line)
    }
}
