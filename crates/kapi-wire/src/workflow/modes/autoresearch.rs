//! A search as others see it: its contract, its runs, and how far it has come.
//!
//! Numbers are shown as numbers here and as texts in the log, which must not lose a digit.

use kapi_check::rules::measure::number::Number;
use kapi_workflow::rules::branch::{Branch, PartBranch};
use kapi_workflow::rules::modes::autoresearch::contract::{Contract, Keep, Metric};
use kapi_workflow::rules::modes::autoresearch::event::Ending;
use kapi_workflow::rules::modes::autoresearch::groups::Group;
use kapi_workflow::rules::modes::autoresearch::run::{Idea, Run};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::autoresearch::summary::{
    RUNS_SHOWN_MAX, sparkline_of, summary_of,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A search.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AutoresearchView {
    /// The commit it starts from.
    pub base: String,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The contract that is proposed or carried out.
    #[schemars(skip)]
    pub contract: Option<Box<Contract>>,
    /// The segment under way, from 0.
    pub segment: u32,
    /// How far the segment has come, once it has a baseline.
    pub progress: Option<ProgressView>,
    /// Every segment that has a run, oldest first.
    pub segments: Vec<SegmentView>,
    /// Every decided run, oldest first.
    pub runs: Vec<RunView>,
    /// What may be tried, and what was.
    #[schemars(skip)]
    pub ideas: Vec<Idea>,
    /// Why nothing more is tried, once that is so.
    #[schemars(skip)]
    pub ended: Option<Ending>,
    /// What was kept, in independent parts.
    #[schemars(skip)]
    pub groups: Vec<Group>,
    /// The branch of each part, in the end.
    pub branches: Vec<PartBranch>,
}

/// The runs under one approved contract.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SegmentView {
    /// Its number, from 0.
    pub segment: u32,
    /// What it measures.
    pub metric: Option<Metric>,
    /// How far it has come, once it has a baseline.
    pub progress: Option<ProgressView>,
}

/// How far a segment has come.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProgressView {
    /// What its runs are compared with.
    pub baseline: f64,
    /// The best that was kept.
    pub best: f64,
    /// The run that it is of.
    pub best_run: u32,
    /// By how many percent it is better than the baseline.
    pub gain_percent: Option<f64>,
    /// How far samples of the baseline scatter.
    pub noise: Option<f64>,
    /// The same in percent of the baseline.
    pub noise_percent: Option<f64>,
    /// How many times the scatter of all results the gain is; advice only.
    pub confidence: Option<f64>,
    /// The metric of the last runs, one column each.
    pub sparkline: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunView {
    /// Its number, from 1.
    pub run: u32,
    /// The segment, from 0.
    pub segment: u32,
    /// Whether it is what its segment is compared with.
    pub baseline: bool,
    /// `keep`, `discard`, `crash` or `checks_failed`.
    pub status: &'static str,
    /// The commit.
    pub commit: String,
    /// The primary metric; null of what crashed.
    pub metric: Option<f64>,
    /// The primary metric of every sample.
    pub samples: Vec<f64>,
    /// The rule that decided; null where it was not measured.
    pub rule: Option<&'static str>,
    /// The median of its parent, where both were measured in turn.
    pub parent: Option<f64>,
    /// What was changed, in a line.
    pub description: String,
    /// Why it should have helped, in the agent's words.
    pub hypothesis: String,
    /// Why it was decided so, and by which rule.
    pub reason: String,
}

impl AutoresearchView {
    /// Shows a search.
    #[must_use]
    pub fn of(search: &Autoresearch) -> Self {
        Self {
            base: search.base.clone(),
            branch: search.branch.clone(),
            contract: search.contract.clone(),
            segment: search.segment,
            progress: ProgressView::of(search, search.segment),
            segments: search
                .segments()
                .iter()
                .map(|it| SegmentView::of(search, *it))
                .collect(),
            runs: search.runs.iter().map(RunView::of).collect(),
            ideas: search.ideas.clone(),
            ended: search.ended,
            groups: search.groups.clone(),
            branches: search.branches.clone(),
        }
    }
}

impl SegmentView {
    fn of(search: &Autoresearch, segment: u32) -> Self {
        Self {
            segment,
            metric: search.metric_of(segment).cloned(),
            progress: ProgressView::of(search, segment),
        }
    }
}

impl ProgressView {
    fn of(search: &Autoresearch, segment: u32) -> Option<Self> {
        let found = summary_of(search, segment)?;
        Some(Self {
            baseline: found.baseline.get(),
            best: found.best.get(),
            best_run: found.best_run,
            gain_percent: found.gain_percent.map(Number::get),
            noise: found.noise.map(Number::get),
            noise_percent: found.noise_percent.map(Number::get),
            confidence: found.confidence.map(Number::get),
            sparkline: sparkline_of(search, segment, RUNS_SHOWN_MAX),
        })
    }
}

impl RunView {
    fn of(run: &Run) -> Self {
        Self {
            run: run.number,
            segment: run.segment,
            baseline: run.is_baseline,
            status: run.status.as_str(),
            commit: run.commit.clone(),
            metric: run.metric.map(Number::get),
            samples: run.samples.iter().map(|sample| sample.get()).collect(),
            rule: run.rule.map(Keep::as_str),
            parent: run.parent.map(Number::get),
            description: run.description.clone(),
            hypothesis: run.hypothesis.clone(),
            reason: run.reason.clone(),
        }
    }
}
