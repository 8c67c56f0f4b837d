//! The story of a search: a contract that is drafted twice, a baseline that fails once, and one
//! experiment of each kind.
//!
//! What agents propose and what is measured are functions of the search as it stands.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::{Measurement, MeasurementReport, Reading, Sample, ScriptRun};
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::branch::PartBranch;
use kapi_workflow::rules::changed::LandedPaths;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::effect::{
    AgentQuestion, Proposal, Restoration, Split, WorkflowAction, WorkflowEffect,
};
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::modes::autoresearch::answer::{AutoresearchAnswer, Experiment};
use kapi_workflow::rules::modes::autoresearch::command::AutoresearchCommand;
use kapi_workflow::rules::modes::autoresearch::contract::{Contract, Direction, Metric, Rule};
use kapi_workflow::rules::modes::autoresearch::event::AutoresearchEvent;
use kapi_workflow::rules::modes::autoresearch::history::History;
use kapi_workflow::rules::modes::autoresearch::run::{Run, RunStatus};
use kapi_workflow::rules::modes::autoresearch::state::Autoresearch;
use kapi_workflow::rules::modes::{Begin, Body, ModeAnswer, ModeCommand};
use kapi_workflow::rules::outcome::{
    ProposalReport, ProposedCommit, RestorationReport, WorkflowOutcome,
};
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::modes::NoAnswer;
use crate::workflow_sim::outcomes::oid;
use crate::workflow_sim::script::{Deed, NextStep, WorkflowScript, by_person};
use crate::workflow_sim::world::USED;

/// What the experiments are, in their order; the rest says that nothing is left.
const EXPERIMENTS: [Trial; 7] = [
    Trial::Unreadable,
    Trial::Gain(90.0),
    Trial::Cheat,
    Trial::Crash,
    Trial::Broken,
    Trial::Gain(95.0),
    Trial::Gain(70.0),
];

/// What they are where two are proposed at once: two gains from one parent among them.
const AT_ONCE: [Trial; 6] = [
    Trial::Unreadable,
    Trial::Gain(90.0),
    Trial::Gain(70.0),
    Trial::Gain(60.0),
    Trial::Broken,
    Trial::Cheat,
];
/// The purpose of a search in which two are.
const TWO_PURPOSE: &str = "Sort with fewer operations, two at once";

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trial {
    /// Nobody can read what is said of it.
    Unreadable,
    /// It is measured, and this is its metric.
    Gain(f64),
    /// It changes what is off limits.
    Cheat,
    /// Its benchmark ends badly.
    Crash,
    /// It breaks a check.
    Broken,
}

kinds! {
    KINDS, kind: AutoresearchEvent as "Autoresearch::"
    [
        ContractDrafted, HistoryImported, BranchPrepared, BaselineFailed, CandidateProposed,
        TryAnswered, GainHeld, GainChosen, GainReapplied, Measured, RunDecided, Settled, AnswerRefused, IdeaNoted, SegmentOpened, SearchEnded,
        HeadVerified, BranchesMade,
    ]
}

/// The story: a search with one experiment of each kind.
pub(super) const TALES: &[WorkflowScript] = &[
    WorkflowScript {
        name: "search",
        end: WorkflowStatus::Completed,
        next: |known| next(known, "Sort with fewer operations"),
        deed,
    },
    WorkflowScript {
        name: "search, two at once",
        end: WorkflowStatus::Completed,
        next: |known| next(known, TWO_PURPOSE),
        deed,
    },
];

fn next<'a>(known: &'a [Workflow], purpose: &'static str) -> NextStep<'a> {
    let is_search = |workflow: &&Workflow| matches!(workflow.body, Body::Autoresearch(_));
    match known.iter().find(is_search) {
        None => NextStep::Start(purpose, begin()),
        Some(search) => NextStep::Drive(search),
    }
}

fn begin() -> Begin {
    Begin::Autoresearch(ContextBegin {
        base: "0".repeat(40),
        interview: None,
        spec: None,
    })
}

fn deed(workflow: &Workflow) -> Option<Deed> {
    let Body::Autoresearch(search) = &workflow.body else {
        return None;
    };
    let asked = |command| by_person(WorkflowCommand::Mode(ModeCommand::Autoresearch(command)));
    match workflow.status {
        WorkflowStatus::Blocked => return by_person(WorkflowCommand::Unblock {}),
        WorkflowStatus::Active => {}
        WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => return None,
    }
    let pending = workflow.pending.as_ref()?;
    if search.runs.is_empty() {
        let history = Box::new(history());
        return asked(AutoresearchCommand::Import { history });
    }
    if search.ideas.is_empty() {
        let idea = "Use a heap.".to_owned();
        return asked(AutoresearchCommand::Note { idea });
    }
    if workflow.revisions.is_empty() {
        let text = "Count comparisons, too.".to_owned();
        return by_person(WorkflowCommand::Revise { text });
    }
    Some(Deed::Approve(pending.sha256.clone()))
}

/// The drafter takes long the second time.
pub(super) const fn takes_long(_: &AgentQuestion, search: &Autoresearch) -> bool {
    search.counters.drafts == 1
}

/// Returns the drafter's answer; nobody can read the first.
pub(super) fn reply(
    _: &AgentQuestion,
    workflow: &Workflow,
    search: &Autoresearch,
    _: usize,
) -> Result<AutoresearchAnswer, NoAnswer> {
    if search.counters.drafts == 0 {
        return Err(NoAnswer::Unreadable("it is no contract"));
    }
    let mut contract = contract();
    if workflow.purpose == TWO_PURPOSE {
        contract.parallel = 2;
    }
    Ok(AutoresearchAnswer::Contract(Box::new(contract)))
}

/// Returns what its own verbs come to.
pub(super) fn outcome(effect: &WorkflowEffect, workflow: &Workflow) -> Option<WorkflowOutcome> {
    let Body::Autoresearch(search) = &workflow.body else {
        return None;
    };
    match &effect.action {
        WorkflowAction::Propose(proposal) => {
            let run = format!("{}.{}", effect.workflow, effect.id);
            Some(propose(search, proposal, &run))
        }
        WorkflowAction::Reapply(wanted) => {
            let commit = oid(&["reapplied", &wanted.commit]);
            Some(WorkflowOutcome::Reapplied(Box::new(ProposedCommit {
                tree: oid(&["tree", &commit]),
                commit,
                changed: LandedPaths::of(vec!["src/0.rs".to_owned()]),
                left_out: Vec::new(),
            })))
        }
        WorkflowAction::Measure(wanted) => Some(measure(search, wanted)),
        WorkflowAction::Restore(wanted) => Some(restore(search, wanted)),
        WorkflowAction::Split(wanted) => Some(split(wanted)),
        _ => None,
    }
}

fn contract() -> Contract {
    Contract {
        objective: "Sort with fewer operations.".to_owned(),
        metric: Metric {
            name: "ops".to_owned(),
            unit: String::new(),
            direction: Direction::Lower,
        },
        secondary: Vec::new(),
        benchmark: "sh bench.sh".to_owned(),
        checks: Some("sh check.sh".to_owned()),
        no_checks: None,
        benchmark_seconds: 5,
        checks_seconds: 5,
        warmups: 0,
        processors: Vec::new(),
        held_back: None,
        scope: vec!["src/**".to_owned()],
        off_limits: vec!["bench.sh".to_owned()],
        constraints: Vec::new(),
        runs: 20,
        failures: 10,
        parallel: 1,
        rule: Rule::default(),
    }
}

fn history() -> History {
    History {
        runs: vec![Run {
            number: 1,
            segment: 0,
            is_baseline: true,
            commit: "a1b2c3d".to_owned(),
            tree: String::new(),
            status: RunStatus::Keep,
            metric: Number::new(120.0),
            samples: Vec::new(),
            parent: None,
            lines: 1,
            rule: None,
            metrics: Vec::new(),
            description: "baseline".to_owned(),
            hypothesis: String::new(),
            reason: String::new(),
            changed: LandedPaths::default(),
            benchmark_ms: 0,
            at_ms: 1,
        }],
        ..History::default()
    }
}

fn trial(search: &Autoresearch, proposal: &Proposal) -> Option<Trial> {
    let n = usize::try_from(proposal.question.ordinal.checked_sub(1)?).ok()?;
    let parallel = search.contract.as_ref()?.parallel;
    let trials: &[Trial] = if parallel > 1 { &AT_ONCE } else { &EXPERIMENTS };
    trials.get(n).copied()
}

/// Returns what an agent's turn leaves.
fn propose(search: &Autoresearch, proposal: &Proposal, run: &str) -> WorkflowOutcome {
    let by = ReviewerIdentity {
        agent: proposal.question.agent.clone(),
        run: run.to_owned(),
    };
    let trial = trial(search, proposal);
    if trial == Some(Trial::Unreadable) {
        return WorkflowOutcome::Unreadable {
            by,
            why: "there is no block of JSON".to_owned(),
            usage: Usage::default(),
        };
    }
    let commit = oid(&["proposal", run]);
    let candidate = trial.map(|trial| ProposedCommit {
        tree: oid(&["tree", &commit]),
        commit,
        changed: LandedPaths::of(vec![if trial == Trial::Cheat {
            "bench.sh".to_owned()
        } else {
            format!("src/{}.rs", proposal.question.ordinal % 2)
        }]),
        left_out: Vec::new(),
    });
    WorkflowOutcome::Proposed(Box::new(ProposalReport {
        by,
        answer: ModeAnswer::Autoresearch(AutoresearchAnswer::Experiment(Experiment {
            hypothesis: "It is done twice.".to_owned(),
            description: trial.map_or_else(String::new, |trial| format!("{trial:?}")),
            idea: Some(1),
            ideas: vec!["Use a radix.".to_owned()],
            exhausted: trial.is_none(),
        })),
        candidate,
        usage: USED,
    }))
}

/// Returns what a measurement shows; the first one of the base fails.
fn measure(search: &Autoresearch, wanted: &Measurement) -> WorkflowOutcome {
    let candidate = search.candidate.as_ref();
    let said = candidate.map_or("", |candidate| candidate.description.as_str());
    let is = |trial: Trial| said == format!("{trial:?}");
    let mut gains = EXPERIMENTS
        .iter()
        .chain(&AT_ONCE)
        .filter_map(|trial| match trial {
            Trial::Gain(ops) if is(*trial) => Some(*ops),
            _ => None,
        });
    let ops = gains.next_back().unwrap_or_else(|| kept(search));
    let fails = is(Trial::Crash) || search.counters.measurements == 0;
    let ended = |code| ScriptRun {
        exit_code: Some(code),
        timed_out: false,
        duration_ms: 3,
        output_tail: "output".to_owned(),
    };
    let sample = Sample {
        run: ended(i32::from(fails)),
        readings: Number::new(ops)
            .map(|value| Reading::of("ops".to_owned(), value))
            .into_iter()
            .collect(),
    };
    let samples = if fails { 1 } else { wanted.samples };
    let samples = usize::try_from(samples).unwrap_or(1);
    WorkflowOutcome::Measured(Box::new(MeasurementReport {
        commit: wanted.commit.clone(),
        tree: tree(search, &wanted.commit),
        held_back: wanted.held_back.is_some(),
        samples: vec![sample; samples],
        against: Vec::new(),
        checks: (!fails).then(|| ended(i32::from(is(Trial::Broken)))),
        tampered: Vec::new(),
    }))
}

/// What the head is measured as: the base at first, then what was kept.
fn kept(search: &Autoresearch) -> f64 {
    let best = search.best().and_then(|run| run.metric);
    best.map_or(100.0, Number::get)
}

/// What was kept has the tree that was measured.
fn tree(search: &Autoresearch, commit: &str) -> String {
    let known = search.runs.iter().rfind(|run| run.commit == commit);
    let known = known
        .map(|run| run.tree.clone())
        .filter(|tree| !tree.is_empty());
    known.unwrap_or_else(|| oid(&["tree", commit]))
}

/// Returns where branch and worktree are put.
fn restore(search: &Autoresearch, wanted: &Restoration) -> WorkflowOutcome {
    let kept = wanted.keep.as_ref();
    let commit = kept.map_or_else(|| wanted.head.clone(), |keep| oid(&["kept", &keep.commit]));
    let files = kept.map_or(&wanted.head, |keep| &keep.commit);
    WorkflowOutcome::Restored(RestorationReport {
        tree: tree(search, files),
        commit,
        n_removed: 1,
    })
}

/// Returns the branches of the parts.
fn split(wanted: &Split) -> WorkflowOutcome {
    let branches = wanted.parts.iter().map(|part| PartBranch {
        branch: part.branch.clone(),
        commit: oid(&["part", &part.branch]),
    });
    WorkflowOutcome::Split {
        branches: branches.collect(),
    }
}

/// Returns what must be equal however often the power failed: every run once, with its metric.
pub(super) fn detail(search: &Autoresearch) -> Vec<String> {
    let runs = search.runs.iter().map(|run| {
        let metric = run.metric.map_or_else(String::new, |it| it.to_string());
        format!(
            "{} {} {metric} {}",
            run.number,
            run.status.as_str(),
            run.description
        )
    });
    let branches = search.branches.iter().map(|made| made.branch.clone());
    runs.chain(branches).collect()
}
