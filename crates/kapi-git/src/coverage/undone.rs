//! What a source brought that the target had taken in and took back before the sources were applied.
//!
//! A merge knows nothing of it: the source's commits are in the target's history already.

use super::blame::{holds, lines_of};
use super::conflict_block::blob;
use super::tally::Changes;
use super::{CoverageFinding, CoveragePlan, FindingKind};
use crate::command::GitError;
use crate::hunks::{Hunk, traced};
use crate::id::CommitId;
use crate::scratch::Scratch;

/// Finds the hunks of sources that the target took back, where they are not in the result either.
pub(super) fn find(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    changes: &Changes,
) -> Result<Vec<CoverageFinding>, GitError> {
    let between = |from: &CommitId, to: &CommitId| {
        traced(scratch.call("diff-tree"), from.as_str(), to.as_str())
    };
    let repository = scratch.repository();
    let mut findings = Vec::new();
    for (place, source) in plan.sources.iter().enumerate() {
        let base = &source.range.base;
        let parted = changes.parted.get(place).and_then(Option::as_ref);
        let since = changes.target.get(place);
        let (Some(parted), Some(since)) = (parted.filter(|it| *it != base), since) else {
            continue;
        };
        if !repository.is_ancestor(base, parted)? {
            continue;
        }
        let taken_in = between(base, parted)?;
        for hunk in &taken_in.hunks {
            let is_undone = since.hunks.iter().any(|other| undoes(other, hunk));
            if is_undone && !is_in_result(scratch, plan, hunk)? {
                findings.push(CoverageFinding {
                    source: Some(place),
                    lost: hunk.added.clone(),
                    found: hunk.removed.clone(),
                    ..CoverageFinding::at(FindingKind::Missed, &hunk.path, hunk.line)
                });
            }
        }
    }
    Ok(findings)
}

fn undoes(later: &Hunk, earlier: &Hunk) -> bool {
    let is_same_place = later.path == earlier.path
        && (later.line_before == earlier.line || later.line == earlier.line_before);
    is_same_place && later.removed == earlier.added && later.added == earlier.removed
}

fn is_in_result(
    scratch: &Scratch<'_>,
    plan: &CoveragePlan<'_>,
    hunk: &Hunk,
) -> Result<bool, GitError> {
    let content = blob(scratch, plan.head.as_str(), &hunk.path)?;
    let lines = lines_of(&content.unwrap_or_default());
    let is_there = hunk.added.is_empty() || holds(&lines, &hunk.added);
    let is_back = !hunk.removed.is_empty() && holds(&lines, &hunk.removed);
    Ok(is_there && !is_back)
}
