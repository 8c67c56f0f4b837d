//! The model check of a search's machine: everything that anybody can ask for or report, from every
//! state that can be reached.
//!
//! States that differ in nothing a rule looks at are taken for one: numbers of runs, commits and
//! metrics count only as far as a limit is near.

use kapi_check::rules::measure::{Measurement, MeasurementReport};
use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::effect::{Proposal, WorkflowAction, WorkflowEffect, next};
use crate::rules::model::{Alphabet, print, search};
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::autoresearch::answer::{AutoresearchAnswer, Experiment};
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::Keep;
use crate::rules::modes::autoresearch::fixture::{
    contract, ended, engine, experiment, measured, of, proposed, reapplied, restored, sample,
    split, start,
};
use crate::rules::modes::autoresearch::history::History;
use crate::rules::modes::autoresearch::round::{Round, Try};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::modes::autoresearch::spec::APPROVE_CONTRACT;
use crate::rules::modes::autoresearch::state::AutoresearchPhase;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::outcome::{RestorationReport, WorkflowOutcome};
use crate::rules::pending::Means;
use crate::rules::scenario::{
    WorkflowTestScenario, agent, answered, approve, human, identity, terms,
};
use crate::rules::state::Workflow;

/// What goes wrong in a search of the machine; the other things go well, so that each ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// What agents propose, what is measured, what a person wants changed.
    Deciding,
    /// What fails, is called off or is not what was asked for.
    Failing,
    /// What several agents propose at once.
    AtOnce,
}

/// What a person may ask for.
fn persons(workflow: &Workflow, focus: Focus) -> Vec<WorkflowCommand> {
    let pending = workflow.pending.as_ref();
    let shown = pending.map_or("none", |pending| &pending.sha256);
    let mut commands = vec![
        approve(shown, shown, true),
        approve("other", shown, true),
        approve(shown, "other", true),
        WorkflowCommand::Approve {
            sha256: shown.to_owned(),
            found: shown.to_owned(),
            means: Means::InAdvance,
            accepts_risks: true,
        },
        WorkflowCommand::Unblock {},
        WorkflowCommand::Abandon {
            reason: "no more".to_owned(),
        },
        AutoresearchCommand::Finish {}.into(),
        AutoresearchCommand::Note {
            idea: " ".to_owned(),
        }
        .into(),
        InterviewCommand::Enough {}.into(),
    ];
    let mut bad = contract();
    bad.scope.clear();
    for contract in [bad, few(focus)] {
        let contract = Box::new(contract);
        commands.push(AutoresearchCommand::Draft { contract }.into());
    }
    let history = Box::new(History::default());
    commands.push(AutoresearchCommand::Import { history }.into());
    // Another segment begins once, so that the search ends.
    if of(workflow).segment == 0 && focus == Focus::Deciding {
        commands.push(WorkflowCommand::Revise {
            text: "Count something else.".to_owned(),
        });
    }
    commands
}

/// A contract whose limits are near.
fn few(focus: Focus) -> crate::rules::modes::autoresearch::contract::Contract {
    let mut few = contract();
    few.runs = 2;
    few.failures = 1;
    few.rule.keep = Keep::Confirm;
    if focus == Focus::AtOnce {
        few.runs = 4;
        few.parallel = 2;
        few.rule.keep = Keep::Plain;
    }
    few
}

/// What may come back for a measurement: better, equal, worse, and everything that goes wrong.
fn measurements(commit: &str, samples: usize, has_checks: bool) -> Vec<MeasurementReport> {
    let with = |ops: f64| {
        let mut found = measured(commit, &vec![ops; samples]);
        if !has_checks {
            found.checks = None;
        }
        found
    };
    let mut failed = with(1.0);
    failed.samples[0].run = ended(Some(2), false);
    let mut silent = with(1.0);
    silent.samples[0].readings.clear();
    let mut wrong = with(1.0);
    wrong.checks = Some(ended(Some(1), false));
    let mut tampered = with(1.0);
    tampered.tampered = vec!["bench/run.sh".to_owned()];
    let mut other = with(1.0);
    "other".clone_into(&mut other.commit);
    let mut pairs = with(1.0);
    pairs.against = vec![sample(2.0); samples];
    vec![
        with(10.0),
        with(100.0),
        with(1_000.0),
        failed,
        silent,
        wrong,
        tampered,
        other,
        pairs,
    ]
}

/// Returns what is no result: it failed, was called off, or is something else.
fn troubles() -> Vec<WorkflowOutcome> {
    let usage = Usage::default();
    let failed = |may_pass| WorkflowOutcome::Failed {
        failure: Failure {
            message: "reach the repository".to_owned(),
            hint: None,
        },
        may_pass,
        usage,
    };
    vec![
        failed(true),
        failed(false),
        WorkflowOutcome::Cancelled { usage },
        WorkflowOutcome::Unreadable {
            by: identity("r2"),
            why: "answer in JSON".to_owned(),
            usage,
        },
        WorkflowOutcome::Conflicted { paths: Vec::new() },
        WorkflowOutcome::Restored(RestorationReport {
            commit: "elsewhere".to_owned(),
            tree: "tree-elsewhere".to_owned(),
            n_removed: 1,
        }),
    ]
}

/// Returns everything that can come back for what is under way.
fn outcomes(workflow: &Workflow, focus: Focus, flying: &EffectId) -> Vec<WorkflowOutcome> {
    let mut all = match focus {
        Focus::Deciding | Focus::AtOnce => Vec::new(),
        Focus::Failing => troubles(),
    };
    let mut wanted = next(workflow).into_iter();
    let Some(effect) = wanted.find(|effect| effect.id == *flying) else {
        let usage = Usage::default();
        all.push(WorkflowOutcome::Cancelled { usage });
        return all;
    };
    match effect.action {
        WorkflowAction::Ask(_) => {
            let answer = |contract| {
                let contract = AutoresearchAnswer::Contract(Box::new(contract));
                answered(ModeAnswer::Autoresearch(contract))
            };
            let mut bad = contract();
            bad.checks = None;
            all.extend([answer(few(focus)), answer(bad)]);
        }
        WorkflowAction::Prepare { .. } => all.push(WorkflowOutcome::Prepared {
            branch: "b".to_owned(),
            worktree: "/wt".to_owned(),
            baseline: None,
        }),
        WorkflowAction::Propose(proposal) => all.extend(proposals(&proposal, focus)),
        WorkflowAction::Measure(wanted) => {
            let found = measured_in(workflow, focus, &wanted).into_iter();
            all.extend(found.map(|found| WorkflowOutcome::Measured(Box::new(found))));
        }
        WorkflowAction::Reapply(wanted) => all.extend([
            reapplied(&format!("{}-again", wanted.commit), "src/a.rs"),
            WorkflowOutcome::Conflicted {
                paths: vec!["src/a.rs".to_owned()],
            },
        ]),
        WorkflowAction::Restore(_) => all.push(restored(workflow)),
        WorkflowAction::Split(_) => all.push(split(workflow)),
        _ => {
            panic!("a search asks for none")
        }
    }
    all
}

/// Returns what an agent's turn may leave.
fn proposals(proposal: &Proposal, focus: Focus) -> Vec<WorkflowOutcome> {
    let exhausted = Experiment {
        exhausted: true,
        ..Experiment::default()
    };
    let fresh = format!("c{}", proposal.question.ordinal);
    let mut all = vec![proposed(
        experiment("a change"),
        Some((&fresh, &["src/a.rs"])),
    )];
    match focus {
        Focus::Failing => {}
        Focus::AtOnce => all.extend([
            proposed(exhausted, None),
            proposed(experiment("nothing"), None),
        ]),
        Focus::Deciding => all.extend([
            proposed(experiment("the base"), Some(("base", &["src/a.rs"]))),
            proposed(experiment("a cheat"), Some((&fresh, &["bench/run.sh"]))),
            proposed(experiment("nothing"), None),
            proposed(Experiment::default(), Some((&fresh, &["src/a.rs"]))),
            proposed(exhausted, None),
        ]),
    }
    all
}

/// Returns what a measurement may show.
fn measured_in(workflow: &Workflow, focus: Focus, wanted: &Measurement) -> Vec<MeasurementReport> {
    let samples = usize::try_from(wanted.samples).unwrap();
    let is_baseline = of(workflow).runs.is_empty();
    let mut found = measurements(&wanted.commit, samples, wanted.checks.is_some());
    match focus {
        Focus::Deciding => found,
        // Everything but the baseline is better.
        Focus::Failing => vec![found.swap_remove(if is_baseline { 2 } else { 0 })],
        Focus::AtOnce if is_baseline => vec![found.swap_remove(1)],
        Focus::AtOnce => {
            let ops = [10.0, 5.0, 500.0];
            let found = ops.map(|ops| measured(&wanted.commit, &vec![ops; samples]));
            let with_checks = |report| MeasurementReport {
                checks: wanted.checks.as_ref().map(|_| ended(Some(0), false)),
                ..report
            };
            found.map(with_checks).to_vec()
        }
    }
}

fn deciding(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::Deciding)
}

fn at_once(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::AtOnce)
}

fn failing(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::Failing)
}

fn commands(workflow: &Workflow, focus: Focus) -> Vec<(Actor, WorkflowCommand)> {
    let mut all = Vec::new();
    for command in persons(workflow, focus) {
        let others = [agent(), engine()].map(|actor| (actor, command.clone()));
        all.extend(others);
        all.push((human(), command));
    }
    for effect in next(workflow) {
        all.push((engine(), WorkflowCommand::Intend { effect: effect.id }));
    }
    for effect in workflow.in_flight.keys() {
        for outcome in outcomes(workflow, focus, effect) {
            let outcome = Box::new(outcome);
            let effect = effect.clone();
            all.push((engine(), WorkflowCommand::Report { effect, outcome }));
        }
    }
    all
}

fn key(workflow: &Workflow) -> String {
    let search = of(workflow);
    if workflow.status.is_terminal() {
        return format!("{:?}", workflow.status);
    }
    let wanted: Vec<_> = next(workflow).into_iter().map(|effect| effect.id).collect();
    let current = workflow
        .in_flight
        .keys()
        .filter(|id| wanted.contains(id))
        .count();
    let stale = workflow.in_flight.len() - current;
    let failures = wanted
        .iter()
        .filter_map(|id| workflow.failures.get(id))
        .max();
    format!(
        "{:?} {:?} {:?} pending {} branch {} segment {} kept {} best {:?} runs {} failures {} \
         measured {} refused {} ended {} flying {current} {} failed {failures:?} round {:?}",
        workflow.status,
        search.phase,
        search.settling,
        workflow.pending.is_some(),
        search.branch.is_some(),
        search.segment,
        search.gains().count().min(1),
        search
            .best()
            .and_then(|run| run.metric)
            .map(|it| it.get() <= 10.0),
        search.experiments().min(2),
        search.failures().min(2),
        search.measured.len(),
        search.refused.len(),
        search.ended.is_some(),
        stale.min(1),
        search.round.as_ref().map(round),
    )
}

/// Says what became of the tries of a round, each by the kind of that and how good it is.
fn round(round: &Round) -> Vec<String> {
    let tries = round.tries.iter().map(|found| match found {
        Try::Gain { measured, .. } => format!("gain {:?}", measured[0].median("ops")),
        Try::Asked {}
        | Try::Nothing {}
        | Try::Exhausted {}
        | Try::AtHand { .. }
        | Try::Decided {} => format!("{found:?}"),
        Try::Waiting { .. } => "waiting".to_owned(),
        Try::Overtaken { .. } => "overtaken".to_owned(),
    });
    tries.collect()
}

/// What must hold of whatever is under way.
fn check_at_once(workflow: &Workflow) -> Result<(), String> {
    let search = of(workflow);
    let check = |holds: bool, what: &str| holds.then_some(()).ok_or_else(|| what.to_owned());
    let effects = next(workflow);
    let is_proposal = |effect: &WorkflowEffect| matches!(effect.action, WorkflowAction::Propose(_));
    check(
        effects.len() <= 1 || effects.iter().all(is_proposal),
        "two things are under way at once",
    )?;
    let at_hand = search.round.as_ref().map_or(0, |round| {
        round
            .of(|found| matches!(found, Try::AtHand { .. }))
            .count()
    });
    check(
        at_hand == usize::from(search.candidate.is_some() && search.round.is_some())
            || search.settling.is_some(),
        "a change at hand is of no try, or two are",
    )
}

/// What must hold of every state of a search.
fn holds(workflow: &Workflow) -> Result<(), String> {
    let search = of(workflow);
    let check = |holds: bool, what: &str| holds.then_some(()).ok_or_else(|| what.to_owned());
    let numbers = (1..).zip(&search.runs);
    check(
        numbers
            .into_iter()
            .all(|(number, run)| run.number == number),
        "a run is counted twice or not at all",
    )?;
    let has_measured = !search.runs.is_empty() || search.branch.is_some();
    let is_approved = workflow
        .approvals
        .iter()
        .any(|it| it.decision == APPROVE_CONTRACT);
    check(
        is_approved || !has_measured,
        "something was done without an approval",
    )?;
    let waits = search.phase == AutoresearchPhase::Approval && !workflow.status.is_terminal();
    check(
        waits == workflow.pending.is_some(),
        "a contract without its decision, or the reverse",
    )?;
    for segment in 0..=search.segment {
        let runs: Vec<_> = search
            .runs
            .iter()
            .filter(|run| run.segment == segment)
            .collect();
        let kept = runs.iter().filter(|run| run.status == RunStatus::Keep);
        let metrics: Option<Vec<_>> = kept.map(|run| run.metric).collect();
        let metrics = metrics.ok_or("a run is kept without a metric")?;
        check(
            metrics.windows(2).all(|pair| pair[1] < pair[0]),
            "something is kept that is not strictly better",
        )?;
        check(
            runs.iter().skip(1).all(|run| !run.is_baseline),
            "a segment has two baselines",
        )?;
    }
    let is_crash = |status| status == RunStatus::Crash;
    check(
        search
            .runs
            .iter()
            .all(|run| !is_crash(run.status) || run.metric.is_none()),
        "a crash has a metric",
    )?;
    check_at_once(workflow)?;
    if workflow.status == WorkflowStatus::Completed && search.gains().next().is_some() {
        let at_head = format!("git:{}", search.branch.as_ref().unwrap().head);
        let proof = |script: &str| {
            workflow.evidence.iter().any(|found| {
                found.kind == "verify"
                    && found.reference == at_head
                    && found.exit_code == Some(0)
                    && found.command.as_deref() == Some(script)
            })
        };
        check(
            proof("sh benchmark.sh") && proof("sh checks.sh"),
            "it is complete and was not verified as it stands",
        )?;
    }
    Ok(())
}

fn check(title: &str, commands: fn(&Workflow) -> Vec<(Actor, WorkflowCommand)>, states: usize) {
    let start = WorkflowTestScenario::begin(&start(terms()))
        .workflow()
        .clone();
    let alphabet = Alphabet {
        starts: vec![start],
        commands,
        key,
        waits: |_| false,
        is_success: |workflow| workflow.status == WorkflowStatus::Completed,
        holds,
    };
    let found = search(&alphabet);
    print(title, &found, &alphabet);
    assert!(found.states > states, "{}", found.states);
}

#[test]
fn everything_that_can_be_proposed_measured_and_wanted() {
    check("autoresearch, deciding", deciding, 200);
}

#[test]
fn everything_that_several_agents_propose_at_once() {
    check("autoresearch, at once", at_once, 200);
}

#[test]
fn everything_that_can_fail() {
    check("autoresearch, failing", failing, 200);
}
