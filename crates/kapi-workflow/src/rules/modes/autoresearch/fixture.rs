//! A search that tests drive by hand: a contract, changes and measurements.
//!
//! Only for tests.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::{MeasurementReport, Reading, Sample, ScriptRun};
use kapi_core::actor::Actor;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;

use crate::rules::branch::PartBranch;
use crate::rules::changed::LandedPaths;
use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::context_begin::ContextBegin;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::autoresearch::answer::{AutoresearchAnswer, Experiment};
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::{Contract, Direction, Metric, Rule};
use crate::rules::modes::autoresearch::run::{Run, RunStatus};
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase};
use crate::rules::modes::{Begin, Body, ModeAnswer};
use crate::rules::outcome::{ProposalReport, ProposedCommit, RestorationReport, WorkflowOutcome};
use crate::rules::scenario::{NOW_MS, WorkflowTestScenario, human, identity, terms};
use crate::rules::state::Workflow;
use crate::rules::terms::WorkflowTerms;

/// Returns a contract by which fewer operations are better.
pub(crate) fn contract() -> Contract {
    Contract {
        objective: "Sort with fewer operations.".to_owned(),
        metric: Metric {
            name: "ops".to_owned(),
            unit: "ops".to_owned(),
            direction: Direction::Lower,
        },
        secondary: Vec::new(),
        benchmark: "sh bench/run.sh".to_owned(),
        checks: Some("sh tests/run.sh".to_owned()),
        no_checks: None,
        benchmark_seconds: 10,
        checks_seconds: 10,
        warmups: 0,
        processors: Vec::new(),
        held_back: None,
        scope: vec!["src/**".to_owned()],
        off_limits: vec!["bench/**".to_owned()],
        constraints: vec!["No new dependency.".to_owned()],
        runs: 19,
        failures: 20,
        parallel: 1,
        rule: Rule::default(),
    }
}

/// Returns how a script ended.
pub(crate) fn ended(exit_code: Option<i32>, timed_out: bool) -> ScriptRun {
    ScriptRun {
        exit_code,
        timed_out,
        duration_ms: 5,
        output_tail: String::new(),
    }
}

/// Returns a run of the benchmark that printed a number of operations.
pub(crate) fn sample(ops: f64) -> Sample {
    Sample {
        run: ended(Some(0), false),
        readings: vec![Reading::of("ops".to_owned(), Number::new(ops).unwrap())],
    }
}

/// Returns a measurement whose checks pass.
pub(crate) fn measured(commit: &str, ops: &[f64]) -> MeasurementReport {
    MeasurementReport {
        commit: commit.to_owned(),
        tree: tree(commit),
        held_back: false,
        samples: ops.iter().map(|ops| sample(*ops)).collect(),
        against: Vec::new(),
        checks: Some(ended(Some(0), false)),
        tampered: Vec::new(),
    }
}

fn tree(commit: &str) -> String {
    format!("tree-{}", commit.trim_start_matches("kept-"))
}

/// Returns inputs that no agent sees.
pub(crate) fn held_back_set() -> HiddenCheckSet {
    HiddenCheckSet {
        source: "/inputs".to_owned(),
        sha256: "5e".repeat(32),
        files: 2,
    }
}

/// Returns a kept run.
pub(crate) fn run(number: u32, ops: f64) -> Run {
    Run {
        number,
        segment: 0,
        is_baseline: false,
        commit: format!("c{number}"),
        tree: format!("tree-c{number}"),
        status: RunStatus::Keep,
        metric: Number::new(ops),
        samples: Number::new(ops).into_iter().collect(),
        parent: None,
        lines: 1,
        rule: None,
        metrics: Vec::new(),
        description: format!("change {number}"),
        hypothesis: String::new(),
        reason: String::new(),
        changed: LandedPaths::of(vec![format!("src/{number}.rs")]),
        benchmark_ms: 5,
        at_ms: NOW_MS,
    }
}

/// Returns a search with a contract and no run.
pub(crate) fn searching() -> Autoresearch {
    let begin = ContextBegin {
        base: "base".to_owned(),
        interview: None,
        spec: None,
    };
    let mut search = Autoresearch::begun(&begin);
    search.contract = Some(Box::new(contract()));
    search.phase = AutoresearchPhase::Propose;
    search
}

/// Returns the command that begins a search.
pub(crate) fn start(terms: WorkflowTerms) -> WorkflowCommand {
    WorkflowCommand::Start(Box::new(WorkflowStart {
        id: GoalId::parse("003-sort-faster").unwrap(),
        purpose: "Sort faster".to_owned(),
        terms,
        begin: Begin::Autoresearch(ContextBegin {
            base: "base".to_owned(),
            interview: None,
            spec: None,
        }),
    }))
}

/// Returns what an agent says of a change.
pub(crate) fn experiment(description: &str) -> Experiment {
    Experiment {
        hypothesis: "It is done twice.".to_owned(),
        description: description.to_owned(),
        ..Experiment::default()
    }
}

/// Returns a turn that left a commit with these paths changed, or none.
pub(crate) fn proposed(said: Experiment, commit: Option<(&str, &[&str])>) -> WorkflowOutcome {
    let candidate = commit.map(|(commit, paths)| ProposedCommit {
        commit: commit.to_owned(),
        tree: tree(commit),
        changed: LandedPaths::of(paths.iter().map(|&path| path.to_owned()).collect()),
        left_out: Vec::new(),
    });
    WorkflowOutcome::Proposed(Box::new(ProposalReport {
        by: identity("r1"),
        answer: ModeAnswer::Autoresearch(AutoresearchAnswer::Experiment(said)),
        candidate,
        usage: Usage::default(),
    }))
}

/// Returns a change as it is on another commit.
pub(crate) fn reapplied(commit: &str, path: &str) -> WorkflowOutcome {
    WorkflowOutcome::Reapplied(Box::new(ProposedCommit {
        commit: commit.to_owned(),
        tree: tree(commit),
        changed: LandedPaths::of(vec![path.to_owned()]),
        left_out: Vec::new(),
    }))
}

/// A search and everything that was recorded of it.
#[derive(Debug, Clone)]
pub(crate) struct Search(pub(crate) WorkflowTestScenario);

impl Search {
    /// Begins one with this contract, approved, with the branch there.
    pub(crate) fn with(contract: Contract) -> Self {
        let mut search = Self(WorkflowTestScenario::begin(&start(terms())));
        let contract = Box::new(contract);
        search.send(AutoresearchCommand::Draft { contract });
        search.0.approve();
        search.0.perform(WorkflowOutcome::Prepared {
            branch: "perf/autoresearch-sort-faster".to_owned(),
            worktree: "/wt".to_owned(),
            baseline: None,
        });
        search
    }

    /// Returns one whose baseline of 100 operations was measured.
    pub(crate) fn at_propose() -> Self {
        Self::measured_from(contract())
    }

    /// Does the same with another contract.
    pub(crate) fn measured_from(contract: Contract) -> Self {
        let mut search = Self::with(contract);
        search.measure(&[100.0, 100.0, 100.0]);
        search.settle();
        search
    }

    pub(crate) fn send(&mut self, command: AutoresearchCommand) -> Vec<WorkflowEvent> {
        self.0.send(&human(), &command.into())
    }

    pub(crate) fn workflow(&self) -> &Workflow {
        self.0.workflow()
    }

    pub(crate) fn search(&self) -> &Autoresearch {
        of(self.workflow())
    }

    /// Lets the agent leave a change of one file.
    pub(crate) fn propose(&mut self, commit: &str, path: &str) -> Vec<WorkflowEvent> {
        let said = experiment(&format!("try {commit}"));
        self.0.perform(proposed(said, Some((commit, &[path]))))
    }

    /// Lets what is asked for be measured with these results.
    pub(crate) fn measure(&mut self, ops: &[f64]) -> Vec<WorkflowEvent> {
        let measured = measured(&self.measured_commit(), ops);
        self.0
            .perform(WorkflowOutcome::Measured(Box::new(measured)))
    }

    /// Returns what is to be measured.
    pub(crate) fn measured_commit(&self) -> String {
        let WorkflowAction::Measure(wanted) = &next(self.workflow())[0].action else {
            panic!("nothing is to be measured");
        };
        wanted.commit.clone()
    }

    /// Lets branch and worktree be put where they belong.
    pub(crate) fn settle(&mut self) -> Vec<WorkflowEvent> {
        self.0.perform(restored(self.workflow()))
    }

    /// Makes one whole experiment and returns the run.
    pub(crate) fn experiment(&mut self, commit: &str, path: &str, ops: f64) -> Run {
        self.propose(commit, path);
        self.measure(&[ops]);
        self.settle();
        self.search().runs.last().unwrap().clone()
    }
}

/// Returns what comes back where everything is put where it is asked for.
pub(crate) fn restored(workflow: &Workflow) -> WorkflowOutcome {
    let WorkflowAction::Restore(wanted) = &next(workflow)[0].action else {
        panic!("nothing is to be put anywhere");
    };
    let commit = wanted.keep.as_ref().map_or_else(
        || wanted.head.clone(),
        |keep| format!("kept-{}", keep.commit),
    );
    WorkflowOutcome::Restored(RestorationReport {
        tree: tree(&commit),
        commit,
        n_removed: 0,
    })
}

/// Returns the branches that are asked for.
pub(crate) fn split(workflow: &Workflow) -> WorkflowOutcome {
    let WorkflowAction::Split(wanted) = &next(workflow)[0].action else {
        panic!("nothing is to be split");
    };
    let made = wanted.parts.iter().map(|part| PartBranch {
        branch: part.branch.clone(),
        commit: format!("c-{}", part.branch),
    });
    WorkflowOutcome::Split {
        branches: made.collect(),
    }
}

/// Returns the search of a workflow.
pub(crate) fn of(workflow: &Workflow) -> &Autoresearch {
    let Body::Autoresearch(search) = &workflow.body else {
        panic!("not a search");
    };
    search
}

/// Tells whether an actor is the engine, which alone reports.
pub(crate) fn engine() -> Actor {
    Actor::Engine
}
