//! Merges within a source that did more than to merge: what they took away or brought by themselves.
//!
//! Such a change is in the source's difference like any other, and in none of its ordinary commits.

use std::path::Path;

use super::blame::{holds, lines_of};
use super::conflict_block::{Meeting, blob};
use super::replay::merged;
use super::{CoverageFinding, CoveragePlan, FindingKind};
use crate::command::GitError;
use crate::hunks::{Hunk, traced};
use crate::id::CommitId;
use crate::scratch::Scratch;

/// Finds what the merges within the sources did by themselves, as far as the result has it.
pub(super) fn find(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
) -> Result<Vec<CoverageFinding>, GitError> {
    let mut findings = Vec::new();
    for (place, source) in plan.sources.iter().enumerate() {
        // What the target has already was judged when it came there.
        let merges = scratch.repository().merges_of(&source.range, &[plan.dev])?;
        for merge in merges {
            findings.extend(of_merge(scratch, plan, &merge, place)?);
        }
    }
    Ok(findings)
}

/// Returns what a merge did by itself, as far as the result has it.
fn of_merge(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    merge: &CommitId,
    place: usize,
) -> Result<Vec<CoverageFinding>, GitError> {
    let mut findings = Vec::new();
    for mut finding in made_by(scratch, merge, place)? {
        if is_in_result(scratch, plan, &finding)? {
            finding.merge = Some(merge.clone());
            findings.push(finding);
        }
    }
    Ok(findings)
}

/// Returns what a merge differs in from what its parents come to.
fn made_by(
    scratch: &Scratch<'_>,
    merge: &CommitId,
    place: usize,
) -> Result<Vec<CoverageFinding>, GitError> {
    let parents = scratch.repository().parents(merge)?;
    let parents: Vec<CommitId> = parents
        .iter()
        .filter_map(|id| CommitId::parse(id).ok())
        .collect();
    let Some((first, others)) = parents.split_first() else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    let mut expected = first.clone();
    for parent in others {
        let meeting = Meeting {
            ours: &expected,
            theirs: parent,
            after: merge,
            place,
            steps: &[],
        };
        let (next, settled) = merged(scratch, &meeting)?;
        let of_source = settled.into_iter().map(|finding| CoverageFinding {
            kind: FindingKind::Reverted,
            source: Some(place),
            ..finding
        });
        findings.extend(of_source);
        expected = next;
    }
    let diff_tree = scratch.call("diff-tree");
    let made = traced(diff_tree, expected.as_str(), merge.as_str())?;
    findings.extend(made.hunks.iter().map(|hunk| by_itself(hunk, place)));
    Ok(findings)
}

fn by_itself(hunk: &Hunk, place: usize) -> CoverageFinding {
    let kind = if hunk.removed.is_empty() || hunk.is_whole_file() {
        FindingKind::Unexpected
    } else {
        FindingKind::Reverted
    };
    CoverageFinding {
        source: Some(place),
        lost: hunk.removed.clone(),
        found: hunk.added.clone(),
        ..CoverageFinding::at(kind, &hunk.path, hunk.line)
    }
}

/// Tells whether what a merge did by itself is in the result, and says where.
fn is_in_result(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    finding: &CoverageFinding,
) -> Result<bool, GitError> {
    let lines = |path: &Path| -> Result<Vec<Vec<u8>>, GitError> {
        let content = blob(scratch, plan.head.as_str(), path)?;
        Ok(lines_of(&content.unwrap_or_default()))
    };
    if finding.line == 0 && finding.found.iter().any(|line| !line.ends_with(b"\n")) {
        return Ok(true);
    }
    let now = lines(&finding.path)?;
    let is_back = holds(&now, &finding.lost);
    let is_there = finding.found.is_empty() || holds(&now, &finding.found);
    Ok(!is_back && is_there)
}
