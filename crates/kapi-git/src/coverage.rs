//! Whether a result has what its sources bring, all of it and nothing else.
//!
//! What should come of the sources is made again, by merges of our own whose results are thrown away;
//! where the result differs from that, each line is traced to who brought it. Lines are compared byte
//! by byte. Whether a difference is justified is for others to say.

mod blame;
mod conflict_block;
mod deviation;
mod duplicate;
mod inner_merge;
mod replay;
mod tally;
mod undone;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::id::CommitId;
use crate::land::LandError;
use crate::owned_dir;
use crate::repository::Repository;
use crate::repository::range::CommitRange;
use crate::scratch::Objects;

/// A result, and what it was made of.
#[derive(Debug, Clone, Copy)]
pub struct CoveragePlan<'a> {
    /// What the sources were applied to.
    pub dev: &'a CommitId,
    /// The result.
    pub head: &'a CommitId,
    /// The sources in the order in which they were applied.
    pub sources: &'a [IntegratedSource],
    /// Files that tools wrote anew: their lines are nobody's, and none of them is looked for.
    pub generated: &'a BTreeSet<PathBuf>,
    /// A directory of ours for git's own files; nothing is left in it.
    pub scratch: &'a Path,
}

/// A source of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegratedSource {
    /// What it brings.
    pub range: CommitRange,
    /// The head right after it was applied; the result where that is not known.
    pub after: CommitId,
}

/// What is in a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// What is wrong with it or not explained, by path and line.
    pub findings: Vec<CoverageFinding>,
    /// Of the result's hunks, how many the sources explain.
    pub result: HunkCount,
    /// Of each source's hunks, how many are in the result, in the order of the plan.
    pub sources: Vec<HunkCount>,
}

/// Some hunks of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HunkCount {
    /// How many are accounted for.
    pub covered: u64,
    /// How many there are.
    pub total: u64,
}

/// One thing about a result that is wrong or not explained.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoverageFinding {
    /// The file: where it is in the result, or was.
    pub path: PathBuf,
    /// The line of the result, from 1; 0 where it is no place in a text.
    pub line: u64,
    /// What is the matter.
    pub kind: FindingKind,
    /// Whose it is, by the place among the sources; nothing where it was on the target before, or is
    /// nobody's.
    pub source: Option<usize>,
    /// Another source that makes the same change.
    pub other: Option<usize>,
    /// The lines that should be there and are not, with their ends.
    pub lost: Vec<Vec<u8>>,
    /// The lines that are there instead, with their ends.
    pub found: Vec<Vec<u8>>,
    /// The merge within a source that did it.
    pub merge: Option<CommitId>,
    /// Whether it lies in a conflict, which somebody settled.
    pub is_settled: bool,
}

/// What may be the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// Nothing of a source's hunk is in the result, and nothing stands in its place.
    Missed,
    /// Only a part of a source's hunk is in the result, or something else in its place.
    Altered,
    /// The result has twice what two sources brought, or one of them once.
    Duplicated,
    /// Several sources make the same change, and the result has it once.
    Shared,
    /// What the target or a source had brought is gone, and no source took it away.
    Reverted,
    /// It is in the result, and no source brought it.
    Unexpected,
}

impl FindingKind {
    /// Tells whether somebody must justify it before the result may land.
    #[must_use]
    pub const fn needs_justification(self) -> bool {
        match self {
            Self::Missed | Self::Altered | Self::Duplicated | Self::Reverted | Self::Unexpected => {
                true
            }
            Self::Shared => false,
        }
    }
}

impl CoverageFinding {
    /// Returns a finding of which only the place is known.
    fn at(kind: FindingKind, path: &Path, line: u64) -> Self {
        Self {
            path: path.to_path_buf(),
            line,
            kind,
            source: None,
            other: None,
            lost: Vec::new(),
            found: Vec::new(),
            merge: None,
            is_settled: false,
        }
    }
}

impl Repository {
    /// Compares a result with what its sources bring.
    ///
    /// # Errors
    /// When a commit is not here, git is too old or fails, or a change is larger than git's output may
    /// be.
    pub fn coverage(&self, plan: &CoveragePlan<'_>) -> Result<Coverage, LandError> {
        let scratch = self.merging(plan.scratch, Objects::Private)?;
        let replay = replay::replay(&scratch, plan)?;
        let mut findings = replay.settled.clone();
        findings.extend(deviation::find(&scratch, &replay, plan)?);
        findings.extend(inner_merge::find(&scratch, plan)?);
        let changes = tally::changes(&scratch, plan)?;
        findings.extend(undone::find(&scratch, plan, &changes)?);
        findings.extend(duplicate::find(&scratch, plan, &changes)?);
        findings.retain(|finding| !plan.generated.contains(&finding.path));
        findings.sort();
        findings.dedup();
        let coverage = tally::count_all(&changes, findings);
        owned_dir::wipe(plan.scratch)?;
        Ok(coverage)
    }
}
