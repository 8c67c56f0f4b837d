//! The hunks of the sources, of the target and of the result, and how many of them are accounted for.

use super::blame::count;
use super::{Coverage, CoverageFinding, CoveragePlan, FindingKind, HunkCount};
use crate::command::GitError;
use crate::hunks::{Hunk, TracedHunks, traced};
use crate::id::CommitId;
use crate::scratch::Scratch;

/// What everybody changed.
#[derive(Debug)]
pub(super) struct Changes {
    /// What each source brings, by its place.
    pub(super) sources: Vec<TracedHunks>,
    /// Where each source and the target parted.
    pub(super) parted: Vec<Option<CommitId>>,
    /// What the target brought since then.
    pub(super) target: Vec<TracedHunks>,
    /// What the result brings to the target.
    pub(super) result: TracedHunks,
}

/// Reads what everybody changed.
pub(super) fn changes(scratch: &Scratch<'_>, plan: &CoveragePlan<'_>) -> Result<Changes, GitError> {
    let between = |from: &CommitId, to: &CommitId| {
        if from == to {
            return Ok(TracedHunks::default());
        }
        traced(scratch.call("diff-tree"), from.as_str(), to.as_str())
    };
    let (mut sources, mut target, mut all_parted) = (Vec::new(), Vec::new(), Vec::new());
    let repository = scratch.repository();
    for source in plan.sources {
        let range = &source.range;
        sources.push(between(&range.base, &range.commit)?);
        let parted = repository.merge_base(plan.dev, &range.commit)?;
        target.push(match &parted {
            Some(parted) => between(parted, plan.dev)?,
            None => TracedHunks::default(),
        });
        all_parted.push(parted);
    }
    Ok(Changes {
        sources,
        parted: all_parted,
        target,
        result: between(plan.dev, plan.head)?,
    })
}

/// Counts what is accounted for.
pub(super) fn count_all(changes: &Changes, findings: Vec<CoverageFinding>) -> Coverage {
    let sources = changes.sources.iter().enumerate().map(|(place, own)| {
        let lost = findings.iter().filter(|one| {
            let is_lost = matches!(one.kind, FindingKind::Missed | FindingKind::Altered)
                || (one.kind == FindingKind::Reverted && one.merge.is_none());
            one.source == Some(place) && is_lost
        });
        let total = size(own);
        HunkCount {
            covered: total.saturating_sub(u64::try_from(lost.count()).unwrap_or(u64::MAX)),
            total,
        }
    });
    let sources = sources.collect();
    let explained = changes.result.hunks.iter().filter(|hunk| {
        let touching = findings.iter().any(|one| touches(hunk, one));
        !touching
    });
    let moved = changes.result.renames.keys().filter(|path| {
        let mut findings = findings.iter();
        !findings.any(|one| one.path == **path && one.kind == FindingKind::Unexpected)
    });
    let covered = explained.count() + moved.count();
    Coverage {
        result: HunkCount {
            covered: u64::try_from(covered).unwrap_or(u64::MAX),
            total: size(&changes.result),
        },
        sources,
        findings,
    }
}

fn size(changes: &TracedHunks) -> u64 {
    u64::try_from(changes.hunks.len() + changes.renames.len()).unwrap_or(u64::MAX)
}

/// Tells whether a hunk of the result is what a finding is about.
fn touches(hunk: &Hunk, finding: &CoverageFinding) -> bool {
    let is_about_result = match finding.kind {
        FindingKind::Altered
        | FindingKind::Duplicated
        | FindingKind::Reverted
        | FindingKind::Unexpected => true,
        FindingKind::Missed | FindingKind::Shared => false,
    };
    let own_end = hunk.line + count(&hunk.added);
    let end = finding.line + count(&finding.found);
    is_about_result
        && hunk.path == finding.path
        && hunk.line <= end
        && finding.line <= own_end
        && hunk.is_whole_file() == (finding.line == 0 && hunk.line_before == 0)
}
