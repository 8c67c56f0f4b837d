//! The same change in two sources, by its lines without white space.
//!
//! Finds what may be there twice; that it is there twice is counted in the result. Few short lines say
//! nothing: many files close the same brackets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::conflict_block::blob;
use super::tally::Changes;
use super::{CoverageFinding, CoveragePlan, FindingKind};
use crate::command::GitError;
use crate::hunks::{Hunk, TracedHunks};
use crate::scratch::Scratch;

/// The fewest letters and digits of a change that is known again.
const LETTERS_MIN: usize = 12;
/// The fewest lines with letters of a change that is known again in another file, or within another.
const RUN_LINES: usize = 4;
/// The fewest letters and digits of these lines.
const RUN_LETTERS_MIN: usize = 60;

/// Lines without white space, and without those that are empty then.
type PlainLines = Vec<Vec<u8>>;

/// A change that two make.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Repetition {
    lines: PlainLines,
    /// Where the one makes it, and where the other does.
    paths: [PathBuf; 2],
    /// The line of the other's version.
    line: u64,
    /// Whether the whole hunks are the same.
    is_whole: bool,
}

/// Tells whether lines that nobody brought repeat what a hunk added.
pub(super) fn is_repeated(added: &[Vec<u8>], again: &[Vec<u8>]) -> bool {
    let (added, again) = (plain(added), plain(again));
    letters(&again) >= LETTERS_MIN && occurrences(&added, &again) > 0
}

/// Finds what two sources make, or a source and the target.
pub(super) fn find(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    changes: &Changes,
) -> Result<Vec<CoverageFinding>, GitError> {
    let mut findings = Vec::new();
    let repository = scratch.repository();
    for (place, own) in changes.sources.iter().enumerate() {
        let Some(source) = plan.sources.get(place) else {
            continue;
        };
        let versions = [plan.dev.as_str(), source.range.commit.as_str()];
        if let Some(target) = changes.target.get(place) {
            for same in repetitions(target, own) {
                let found = judged(scratch, plan, &same, &versions)?;
                findings.extend(found.map(|one| named(one, place, None)));
            }
        }
        for (other, theirs) in changes.sources.iter().enumerate().skip(place + 1) {
            let Some(later) = plan.sources.get(other) else {
                continue;
            };
            let same = repetitions(own, theirs);
            // What both have by one commit is one change.
            if same.is_empty()
                || repository.is_ancestor(&source.range.commit, &later.range.commit)?
                || repository.is_ancestor(&later.range.commit, &source.range.commit)?
            {
                continue;
            }
            let versions = [versions[0], versions[1], later.range.commit.as_str()];
            for same in same {
                let found = judged(scratch, plan, &same, &versions)?;
                findings.extend(found.map(|one| named(one, other, Some(place))));
            }
        }
    }
    Ok(findings)
}

fn named(finding: CoverageFinding, source: usize, other: Option<usize>) -> CoverageFinding {
    CoverageFinding {
        source: Some(source),
        other,
        ..finding
    }
}

/// Counts a change in the result, and says what is the matter with it.
fn judged(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    same: &Repetition,
    versions: &[&str],
) -> Result<Option<CoverageFinding>, GitError> {
    let paths: BTreeSet<&PathBuf> = same.paths.iter().collect();
    let times = |treeish: &str| -> Result<usize, GitError> {
        let mut n = 0;
        for path in &paths {
            n += occurrences(&text(scratch, treeish, path)?, &same.lines);
        }
        Ok(n)
    };
    let now = times(plan.head.as_str())?;
    let mut at_most = 0;
    for version in versions {
        at_most = at_most.max(times(version)?);
    }
    let kind = match (now > at_most, same.is_whole && now > 0) {
        (true, _) if now > 1 => FindingKind::Duplicated,
        (false, true) if paths.len() == 1 => FindingKind::Shared,
        _ => return Ok(None),
    };
    let [_, path] = &same.paths;
    let found = same.lines.iter();
    Ok(Some(CoverageFinding {
        found: found
            .map(|line| [line.as_slice(), b"\n"].concat())
            .collect(),
        ..CoverageFinding::at(kind, path, same.line)
    }))
}

fn text(scratch: &Scratch<'_>, treeish: &str, path: &Path) -> Result<PlainLines, GitError> {
    let content = blob(scratch, treeish, path)?.unwrap_or_default();
    let lines: Vec<&[u8]> = content.split(|&b| b == b'\n').collect();
    Ok(lines
        .iter()
        .map(|line| squeezed(line))
        .filter(|line| !line.is_empty())
        .collect())
}

/// Returns the changes that both make.
fn repetitions(one: &TracedHunks, other: &TracedHunks) -> BTreeSet<Repetition> {
    let with_lines = |hunks: &TracedHunks| -> Vec<(Hunk, PlainLines)> {
        let own = hunks.hunks.iter().filter(|hunk| !hunk.is_whole_file());
        let pairs = own.map(|hunk| (hunk.clone(), plain(&hunk.added)));
        pairs
            .filter(|(_, lines)| letters(lines) >= LETTERS_MIN)
            .collect()
    };
    let (one, other) = (with_lines(one), with_lines(other));
    let mut wholes: BTreeMap<&PlainLines, Vec<&Hunk>> = BTreeMap::new();
    let mut runs: BTreeMap<&[Vec<u8>], &Hunk> = BTreeMap::new();
    for (hunk, lines) in &one {
        wholes.entry(lines).or_default().push(hunk);
        let windows = lines.windows(RUN_LINES).filter(|run| is_telling(run));
        runs.extend(windows.map(|run| (run, hunk)));
    }
    let mut found = BTreeSet::new();
    for (hunk, lines) in &other {
        let same = wholes.get(lines).into_iter().flatten();
        let in_file = same.clone().find(|it| it.path == hunk.path);
        if let Some(it) = in_file.or(same.clone().find(|_| is_telling(lines))) {
            found.insert(repetition(it, hunk, lines, true));
            continue;
        }
        let run = lines
            .windows(RUN_LINES)
            .find_map(|run| Some((run, *runs.get(run)?)));
        if let Some((run, it)) = run {
            found.insert(repetition(it, hunk, run, false));
        }
    }
    found
}

fn repetition(one: &Hunk, other: &Hunk, lines: &[Vec<u8>], is_whole: bool) -> Repetition {
    Repetition {
        lines: lines.to_vec(),
        paths: [one.path.clone(), other.path.clone()],
        line: other.line,
        is_whole,
    }
}

/// Tells whether lines are hardly the same by chance.
fn is_telling(lines: &[Vec<u8>]) -> bool {
    let with_letters = lines.iter().filter(|line| letters_of(line) > 0).count();
    with_letters >= RUN_LINES && letters(lines) >= RUN_LETTERS_MIN
}

fn plain(lines: &[Vec<u8>]) -> PlainLines {
    lines
        .iter()
        .map(|line| squeezed(line))
        .filter(|line| !line.is_empty())
        .collect()
}

fn squeezed(line: &[u8]) -> Vec<u8> {
    let bytes = line.iter().copied();
    bytes.filter(|b| !b.is_ascii_whitespace()).collect()
}

fn letters(lines: &[Vec<u8>]) -> usize {
    lines.iter().map(|line| letters_of(line)).sum()
}

fn letters_of(line: &[u8]) -> usize {
    let letters = line.iter().filter(|b| b.is_ascii_alphanumeric());
    letters.count()
}

fn occurrences(text: &[Vec<u8>], part: &[Vec<u8>]) -> usize {
    if part.is_empty() {
        return 0;
    }
    text.windows(part.len())
        .filter(|window| *window == part)
        .count()
}
