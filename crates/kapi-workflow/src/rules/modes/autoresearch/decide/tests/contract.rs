//! Contracts: who drafts them, what their approval covers, and what another one begins.

use kapi_check::rules::measure::number::Number;
use kapi_core::actor::Actor;

use super::document;
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::autoresearch::answer::AutoresearchAnswer;
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::Keep;
use crate::rules::modes::autoresearch::fixture::{
    Search, contract, held_back_set, measured, sample, start,
};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::{WorkflowTestScenario, agent, human, terms};

#[test]
fn another_contract_is_another_segment_with_another_baseline() {
    let mut search = Search::at_propose();
    search.experiment("a", "src/a.rs", 50.0);
    let text = "Count comparisons instead.".to_owned();
    search.0.send(&human(), &WorkflowCommand::Revise { text });
    assert_eq!(search.workflow().phase(), ("contract", Some("draft")));
    let mut other = contract();
    other.metric.name = "comparisons".to_owned();
    search.send(AutoresearchCommand::Draft {
        contract: Box::new(other),
    });
    search.0.approve();
    assert_eq!(search.search().segment, 1);
    search.settle();
    assert_eq!(search.measured_commit(), "kept-a");
    let mut base = measured("kept-a", &[300.0]);
    for sample in &mut base.samples {
        sample.readings[0].name = "comparisons".to_owned();
    }
    search.0.perform(WorkflowOutcome::Measured(Box::new(base)));
    assert_eq!(search.search().best().unwrap().metric, Number::new(300.0));
    assert_eq!(search.search().gains().count(), 1, "what was kept stays");
}

#[test]
fn a_contract_is_drafted_by_an_agent_and_only_a_person_gives_one() {
    let mut scenario = WorkflowTestScenario::begin(&start(terms()));
    let mut bad = contract();
    bad.runs = 0;
    let answer =
        |contract| ModeAnswer::Autoresearch(AutoresearchAnswer::Contract(Box::new(contract)));
    scenario.answer(answer(bad));
    assert!(scenario.workflow().pending.is_none());
    scenario.answer(answer(contract()));
    let pending = scenario.workflow().pending.clone().unwrap();
    assert_eq!(
        pending.decision.words(),
        "contract.md, benchmark.sh and checks.sh"
    );
    for actor in [agent(), Actor::Engine] {
        let contract = Box::new(contract());
        let given = AutoresearchCommand::Draft { contract }.into();
        assert!(scenario.ask(&actor, &given).is_err());
        let finish = AutoresearchCommand::Finish {}.into();
        assert!(scenario.ask(&actor, &finish).is_err());
    }
    scenario.approve();
    assert_eq!(scenario.workflow().phase(), ("run", Some("baseline")));
}

#[test]
fn one_byte_of_a_script_asks_for_another_approval() {
    let drafted = |benchmark: &str| {
        let mut scenario = WorkflowTestScenario::begin(&start(terms()));
        let mut contract = contract();
        benchmark.clone_into(&mut contract.benchmark);
        let contract = Box::new(contract);
        scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
        scenario.workflow().pending.clone().unwrap().sha256
    };
    assert_ne!(drafted("sh bench/run.sh"), drafted("sh bench/run2.sh"));
}

#[test]
fn a_gain_is_confirmed_on_inputs_that_no_agent_sees() {
    let mut strict = contract();
    strict.held_back = Some(held_back_set());
    strict.warmups = 2;
    strict.processors = vec![1];
    let mut search = Search::measured_from(strict);
    search.propose("a", "src/a.rs");
    let measured_next = |search: &Search| {
        let WorkflowAction::Measure(wanted) = &next(search.workflow())[0].action else {
            panic!("it is measured");
        };
        wanted.clone()
    };
    let seen = measured_next(&search);
    assert_eq!((seen.held_back, seen.against), (None, None));
    assert_eq!((seen.warmups, seen.processors), (2, vec![1]));
    search.measure(&[10.0]);
    let held_back = measured_next(&search);
    assert_eq!(held_back.held_back, Some(held_back_set()));
    assert_eq!(held_back.against.as_deref(), Some("base"));
    assert_eq!(held_back.checks, None);
    // What was measured on other inputs is not taken for it.
    let effect = next(search.workflow())[0].id.clone();
    let intend = WorkflowCommand::Intend {
        effect: effect.clone(),
    };
    search.0.send(&Actor::Engine, &intend);
    let other = Box::new(WorkflowOutcome::Measured(Box::new(measured("a", &[1.0]))));
    let report = WorkflowCommand::Report {
        effect: effect.clone(),
        outcome: other,
    };
    assert!(search.0.ask(&Actor::Engine, &report).is_err());
    let mut found = measured("a", &[130.0]);
    found.held_back = true;
    found.checks = None;
    found.against = vec![sample(130.0)];
    let outcome = Box::new(WorkflowOutcome::Measured(Box::new(found)));
    let report = WorkflowCommand::Report { effect, outcome };
    search.0.send(&Actor::Engine, &report);
    let run = search.search().runs.last().unwrap();
    assert_eq!(
        (run.status, run.metric),
        (RunStatus::Discard, Number::new(10.0))
    );
    assert_eq!(
        run.samples,
        Number::new(10.0).into_iter().collect::<Vec<_>>()
    );
    assert!(run.reason.contains("held-back"), "{}", run.reason);
    let ledger = document(search.workflow(), "ledger.jsonl");
    assert!(
        ledger
            .lines()
            .last()
            .unwrap()
            .contains("\"rule\":\"plain\""),
        "{ledger}"
    );
}

#[test]
fn what_is_held_back_is_the_persons_whoever_drafts() {
    let mut scenario = WorkflowTestScenario::begin(&start(terms()));
    let mut own = contract();
    own.held_back = Some(held_back_set());
    let answer =
        |contract| ModeAnswer::Autoresearch(AutoresearchAnswer::Contract(Box::new(contract)));
    scenario.answer(answer(own.clone()));
    assert!(scenario.workflow().pending.is_none(), "an agent names none");
    let contract = Box::new(own);
    scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
    let text = "Fewer runs.".to_owned();
    scenario.send(&human(), &WorkflowCommand::Revise { text });
    scenario.answer(answer(self::contract()));
    let contract = document(scenario.workflow(), "contract.md");
    assert!(
        contract.contains("2 files of `/inputs`, sha256 `5e5e"),
        "{contract}"
    );
}

#[test]
fn everything_that_is_measured_by_is_approved_by_the_hash() {
    type Change = fn(&mut crate::rules::modes::autoresearch::contract::Contract);
    let drafted = |change: Change| {
        let mut scenario = WorkflowTestScenario::begin(&start(terms()));
        let mut contract = contract();
        change(&mut contract);
        let contract = Box::new(contract);
        scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
        scenario.workflow().pending.clone().unwrap().sha256
    };
    let changes: [Change; 7] = [
        |_| {},
        |it| it.warmups = 1,
        |it| it.processors = vec![0],
        |it| it.held_back = Some(held_back_set()),
        |it| it.metric.name = "kapi.instructions".to_owned(),
        |it| it.rule.keep = Keep::Interleaved,
        |it| it.rule.keep = Keep::Ranked,
    ];
    let hashes: std::collections::BTreeSet<String> = changes.into_iter().map(drafted).collect();
    assert_eq!(hashes.len(), changes.len());
}
