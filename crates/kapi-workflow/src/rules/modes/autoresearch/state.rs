//! A search as it stands.

use std::collections::BTreeMap;

use kapi_check::rules::measure::MeasurementReport;
use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::branch::{Branch, BranchType, PartBranch};
use crate::rules::context_begin::ContextBegin;
use crate::rules::handover::Spec;
use crate::rules::modes::autoresearch::contract::{Contract, Metric};
use crate::rules::modes::autoresearch::event::{Candidate, Ending};
use crate::rules::modes::autoresearch::groups::Group;
use crate::rules::modes::autoresearch::round::{Round, Try};
use crate::rules::modes::autoresearch::run::{Idea, Run, RunStatus};
use crate::rules::modes::autoresearch::verdict::Reference;

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Autoresearch {
    /// The commit it starts from.
    pub base: String,
    /// The spec of the interview it came from.
    pub spec: Option<Box<Spec>>,
    /// Where it stands.
    pub phase: AutoresearchPhase,
    /// The contract that is proposed or carried out.
    pub contract: Option<Box<Contract>>,
    /// Why another contract is wanted.
    pub reopened: Option<String>,
    /// The segment under way, from 0.
    pub segment: u32,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// What another tool measured, where its runs were taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Metric>,
    /// What each segment measures, once it has a run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<u32, Metric>,
    /// Every decided run, oldest first.
    pub runs: Vec<Run>,
    /// What may be tried; the number of each is its place, from 1.
    pub ideas: Vec<Idea>,
    /// The change at hand.
    pub candidate: Option<Box<Candidate>>,
    /// What it showed so far.
    pub measured: Vec<MeasurementReport>,
    /// The changes that are proposed at once, where several are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
    /// Where branch and worktree have to be put before anything else.
    pub settling: Option<Settling>,
    /// How often each thing was done; parts of the names of effects.
    pub counters: Counters,
    /// Answers of one role that were refused in a row.
    pub refused: Vec<String>,
    /// Why nothing more is tried, once that is so.
    pub ended: Option<Ending>,
    /// What the kept head showed in the end.
    pub verified: Option<Box<MeasurementReport>>,
    /// What was kept, in independent parts.
    pub groups: Vec<Group>,
    /// The branch of each part, in the end.
    pub branches: Vec<PartBranch>,
}

/// How often each thing was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Answers of the drafter.
    pub drafts: u32,
    /// Turns of the researcher.
    pub proposals: u32,
    /// Measurements.
    pub measurements: u32,
    /// Times that branch and worktree were put somewhere.
    pub settlements: u32,
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoresearchPhase {
    /// A contract is drafted.
    Draft,
    /// It waits for its approval.
    Approval,
    /// What the segment is compared with is measured.
    Baseline,
    /// An agent tries something.
    Propose,
    /// It is measured.
    Measure,
    /// What was kept is measured once more.
    Verify,
    /// It is taken apart into branches.
    Split,
}

/// Where branch and worktree have to be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settling {
    /// The candidate goes on the branch.
    Keep,
    /// The worktree goes back to where the branch is.
    Restore,
}

impl Autoresearch {
    /// Returns the state that a workflow begins with.
    pub(crate) fn begun(begin: &ContextBegin) -> Self {
        Self {
            base: begin.base.clone(),
            spec: begin.spec.clone(),
            phase: AutoresearchPhase::Draft,
            contract: None,
            reopened: None,
            segment: 0,
            branch: None,
            imported: None,
            metrics: BTreeMap::new(),
            runs: Vec::new(),
            ideas: Vec::new(),
            candidate: None,
            measured: Vec::new(),
            round: None,
            settling: None,
            counters: Default::default(),
            refused: Vec::new(),
            ended: None,
            verified: None,
            groups: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Returns the name of the branch.
    pub(super) fn branch_name(id: &GoalId) -> String {
        format!("{}/autoresearch-{}", BranchType::Perf.as_str(), id.slug())
    }

    /// Returns where the branch is.
    pub(super) fn head(&self) -> &str {
        self.branch
            .as_ref()
            .map_or(&self.base, |branch| &branch.head)
    }

    /// Returns the runs of a segment.
    pub fn of_segment(&self, segment: u32) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.segment == segment)
    }

    /// Returns the runs of the segment under way.
    pub fn current(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.of_segment(self.segment)
    }

    /// Returns the segments that have a run, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<u32> {
        let mut segments: Vec<u32> = self.runs.iter().map(|run| run.segment).collect();
        segments.dedup();
        segments
    }

    /// Returns what a segment measures.
    #[must_use]
    pub fn metric_of(&self, segment: u32) -> Option<&Metric> {
        let ours = self.contract.as_ref().map(|contract| &contract.metric);
        self.metrics.get(&segment).or(ours)
    }

    /// Returns the run that the branch holds: the last that was kept in this segment, which is its
    /// best one.
    #[must_use]
    pub fn best(&self) -> Option<&Run> {
        self.current().rfind(|run| run.status == RunStatus::Keep)
    }

    /// Returns what a candidate is judged against, once there is a baseline.
    #[must_use]
    pub fn reference(&self) -> Option<Reference> {
        Some(Reference {
            best: self.best()?.metric?,
            lines: self.current().find(|run| run.is_baseline)?.lines,
        })
    }

    /// Returns how many changes are proposed at once from now on.
    #[must_use]
    pub fn width(&self) -> u32 {
        let Some(contract) = &self.contract else {
            return 1;
        };
        let left = contract.runs.saturating_sub(self.experiments());
        contract.parallel.min(left).max(1)
    }

    /// Returns the round under way, or the one that begins with the next answer; nothing where one
    /// change is tried at a time.
    #[must_use]
    pub fn round_or_next(&self) -> Option<Round> {
        if let Some(round) = &self.round {
            return Some(round.clone());
        }
        let width = usize::try_from(self.width()).unwrap_or(1);
        (width > 1).then(|| Round {
            first: self.counters.proposals,
            parent: self.head().to_owned(),
            tries: vec![Try::Asked {}; width],
        })
    }

    /// Returns the runs whose changes are on the branch, oldest first.
    pub fn gains(&self) -> impl Iterator<Item = &Run> {
        let is_gain =
            |run: &&Run| run.status == RunStatus::Keep && !run.is_baseline && !run.tree.is_empty();
        self.runs.iter().filter(is_gain)
    }

    /// Returns how many experiments the segment has made, its baseline apart.
    #[must_use]
    pub fn experiments(&self) -> u32 {
        let n = self.current().filter(|run| !run.is_baseline).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    /// Returns how many of its last runs in a row were discarded or crashed.
    #[must_use]
    pub fn failures(&self) -> u32 {
        let is_failure = |run: &&Run| matches!(run.status, RunStatus::Discard | RunStatus::Crash);
        let n = self.current().rev().take_while(is_failure).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    }
}
