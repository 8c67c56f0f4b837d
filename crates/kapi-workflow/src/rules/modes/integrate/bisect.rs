//! Who makes a result fail: what is known of the sources, put to the bisection of a batch.
//!
//! A beginning of the order is on the branch already; any other set is put together first.

use std::collections::BTreeSet;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;

use crate::rules::batch::SourceDependency;
use crate::rules::batch::bisection::{BisectionStep, SetResult, SetResults, SourceBatch, next};
use crate::rules::modes::integrate::state::Integrate;

/// What a protected file that was changed is called among the checks.
const PROTECTED: &str = "the protected files";

/// What is to be found out next, or who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// These are put together.
    Try(Vec<GoalId>),
    /// This commit, which has these, is verified.
    Verify {
        /// The commit.
        commit: String,
        /// The sources.
        sources: Vec<GoalId>,
    },
    /// These fail together, the last of them being the one that goes; nobody where nothing fails.
    Culprits(Vec<GoalId>),
}

/// Returns what is to be found out next of a result that fails.
pub(crate) fn suspicion(state: &Integrate) -> Suspicion {
    let there = state.there();
    let order: Vec<usize> = (0..there.len()).collect();
    let dependencies = dependencies(state, &there);
    let batch = SourceBatch {
        order: &order,
        dependencies: &dependencies,
        // What fails without any source is not run.
        baseline: &BTreeSet::new(),
    };
    match next(&batch, &results(state, &there)) {
        BisectionStep::Verify(set) => unknown(state, &named(&there, &set)),
        BisectionStep::Holds => Suspicion::Culprits(Vec::new()),
        BisectionStep::Found(found) => {
            let mut culprits = named(&there, &found.with);
            culprits.extend(there.get(found.source).cloned());
            Suspicion::Culprits(culprits)
        }
    }
}

/// Returns the commands that failed, and how, on the smallest set that shows it.
pub(crate) fn evidence(state: &Integrate, culprits: &[GoalId]) -> Option<VerifyReport> {
    let is_all = |sources: &[GoalId]| culprits.iter().all(|id| sources.contains(id));
    let trials = state.trials.iter().filter(|trial| is_all(&trial.sources));
    let failing = trials.filter_map(|trial| {
        let report = trial.report.as_ref().filter(|report| !report.passed())?;
        Some((trial.sources.len(), report))
    });
    let smallest = failing.min_by_key(|(n, _)| *n).map(|(_, report)| report);
    smallest.or(state.verified.as_ref()).cloned()
}

fn unknown(state: &Integrate, sources: &[GoalId]) -> Suspicion {
    let trial = state.trials.iter().find(|trial| trial.sources == sources);
    let made = trial.and_then(|trial| trial.commit.clone());
    let beginning = state.applied.get(..sources.len()).unwrap_or_default();
    let is_beginning = beginning.iter().map(|it| &it.source).eq(sources);
    let on_branch = beginning.last().filter(|_| is_beginning);
    match made.or_else(|| on_branch.map(|applied| applied.after.clone())) {
        Some(commit) => Suspicion::Verify {
            commit,
            sources: sources.to_vec(),
        },
        None => Suspicion::Try(sources.to_vec()),
    }
}

fn results(state: &Integrate, there: &[GoalId]) -> SetResults {
    let set = |sources: &[GoalId]| {
        let places = sources.iter();
        places
            .filter_map(|id| there.iter().position(|other| other == id))
            .collect::<BTreeSet<usize>>()
    };
    let mut results = SetResults::new();
    for trial in &state.trials {
        let result = match (&trial.commit, &trial.report) {
            (None, _) => SetResult::NoFit,
            (Some(_), None) => continue,
            (Some(_), Some(report)) => ran(report),
        };
        results.insert(set(&trial.sources), result);
    }
    let whole = state.verified.as_ref().map(ran);
    results.extend(whole.map(|result| (set(there), result)));
    results
}

fn ran(report: &VerifyReport) -> SetResult {
    let failing = report.runs.iter().filter(|run| !run.passed());
    let mut failed: BTreeSet<String> = failing.map(|run| run.command.clone()).collect();
    if !report.tampered.is_empty() {
        failed.insert(PROTECTED.to_owned());
    }
    SetResult::Ran { failed }
}

fn dependencies(state: &Integrate, there: &[GoalId]) -> Vec<SourceDependency> {
    let place = |id: &GoalId| there.iter().position(|other| other == id);
    let plan = state.plan.iter().flat_map(|plan| &plan.foresight.order);
    let pairs = plan.flat_map(|ordered| ordered.after.iter().map(move |on| (&ordered.source, on)));
    pairs
        .filter_map(|(source, on)| {
            Some(SourceDependency {
                source: place(source)?,
                on: place(on)?,
            })
        })
        .collect()
}

fn named(there: &[GoalId], places: &BTreeSet<usize>) -> Vec<GoalId> {
    let found = places.iter().filter_map(|place| there.get(*place));
    found.cloned().collect()
}
