//! Random requests and outcomes: nothing panics, nothing denied changes anything, the facts alone make
//! the state, and nothing is kept that is not strictly better.

use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::Config;

use crate::rules::command::WorkflowCommand;
use crate::rules::decide::decide;
use crate::rules::effect::{WorkflowAction, WorkflowEffect, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::fixture::{
    Search, contract, ended, engine, experiment, measured, of, proposed, reapplied, restored, split,
};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::{given, human};
use crate::rules::state::Workflow;

/// Returns an outcome that fits what is wanted, good or bad, or one that does not.
fn outcome(workflow: &Workflow, flying: &EffectId, pick: u8, n: usize) -> WorkflowOutcome {
    let wanted = next(workflow).into_iter();
    let Some(effect) = wanted.into_iter().find(|effect| effect.id == *flying) else {
        return WorkflowOutcome::Conflicted { paths: Vec::new() };
    };
    let commit = format!("c{n}");
    match effect.action {
        WorkflowAction::Measure(wanted) => {
            let ops = f64::from(pick % 40) * 5.0;
            let samples = usize::try_from(wanted.samples).unwrap();
            let mut found = measured(&wanted.commit, &vec![ops; samples]);
            if pick > 220 {
                found.checks = Some(ended(Some(1), false));
            }
            WorkflowOutcome::Measured(Box::new(found))
        }
        WorkflowAction::Propose(_) if pick < 30 => proposed(experiment("none"), None),
        WorkflowAction::Propose(_) if pick < 60 => {
            proposed(experiment("cheat"), Some((&commit, &["bench/x"])))
        }
        WorkflowAction::Propose(_) => {
            proposed(experiment("change"), Some((&commit, &["src/x.rs"])))
        }
        WorkflowAction::Reapply(_) if pick < 60 => WorkflowOutcome::Conflicted {
            paths: vec!["src/x.rs".to_owned()],
        },
        WorkflowAction::Reapply(_) => reapplied(&format!("again-{n}"), "src/x.rs"),
        WorkflowAction::Restore(_) => restored(workflow),
        WorkflowAction::Split(_) => split(workflow),
        _ => WorkflowOutcome::Cancelled {
            usage: Usage::default(),
        },
    }
}

fn command(workflow: &Workflow, kind: u8, pick: u8, n: usize) -> WorkflowCommand {
    let flying = workflow.in_flight.keys().next().cloned();
    match (kind % 16, flying) {
        (0, _) => WorkflowCommand::Revise {
            text: "anew".to_owned(),
        },
        (1, _) => AutoresearchCommand::Finish {}.into(),
        (2, _) => {
            let contract = Box::new(contract());
            AutoresearchCommand::Draft { contract }.into()
        }
        (3, _) => WorkflowCommand::Unblock {},
        (4 | 5, _) => {
            let pending = workflow.pending.as_ref();
            let sha256 = pending.map_or_else(String::new, |it| it.sha256.clone());
            WorkflowCommand::Approve {
                found: sha256.clone(),
                sha256,
                means: crate::rules::pending::Means::YesFlag,
                accepts_risks: true,
            }
        }
        (_, Some(effect)) if kind < 200 || next(workflow).len() == workflow.in_flight.len() => {
            WorkflowCommand::Report {
                outcome: Box::new(outcome(workflow, &effect, pick, n)),
                effect,
            }
        }
        (_, Some(_)) => {
            let is_begun = |effect: &WorkflowEffect| workflow.in_flight.contains_key(&effect.id);
            let mut others = next(workflow)
                .into_iter()
                .filter(|effect| !is_begun(effect));
            WorkflowCommand::Intend {
                effect: others
                    .next()
                    .map_or_else(|| EffectId::new(9, "none", 9), |effect| effect.id),
            }
        }
        (_, None) => WorkflowCommand::Intend {
            effect: next(workflow)
                .first()
                .map_or_else(|| EffectId::new(9, "none", 9), |effect| effect.id.clone()),
        },
    }
}

proptest! {
    #![proptest_config(Config::with_cases(64))]
    #[test]
    fn facts_alone_make_the_state(
        parallel in 1..4_u32,
        steps in vec((any::<u8>(), any::<u8>()), 1..150),
    ) {
        let mut several = contract();
        several.parallel = parallel;
        let mut search = Search::measured_from(several);
        for (n, (kind, pick)) in steps.into_iter().enumerate() {
            let command = command(search.workflow(), kind, pick, n);
            let is_engines = matches!(command, WorkflowCommand::Intend { .. } | WorkflowCommand::Report { .. });
            let actor = if is_engines { engine() } else { human() };
            let before = search.0.workflow.clone();
            let decided = decide(search.0.workflow.as_ref(), &actor, &command, &given());
            let reported = search.0.ask(&actor, &command);
            prop_assert_eq!(&decided, &reported, "a decision is not the same twice");
            if reported.is_err() {
                prop_assert_eq!(&search.0.workflow, &before);
            }
        }
        let mut replayed = None;
        for event in &search.0.events {
            let line = serde_json::to_string(event).unwrap();
            let read: WorkflowEvent = serde_json::from_str(&line).unwrap();
            evolve(&mut replayed, &read);
        }
        prop_assert_eq!(&replayed, &search.0.workflow);
        let found = of(search.workflow());
        for segment in 0..=found.segment {
            let of_it = found.runs.iter().filter(|run| run.segment == segment);
            let kept: Vec<_> = of_it.filter(|run| run.status == RunStatus::Keep).collect();
            prop_assert!(kept.windows(2).all(|pair| pair[1].metric < pair[0].metric));
        }
    }
}
