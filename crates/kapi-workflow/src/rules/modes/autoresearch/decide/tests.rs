//! A search from its contract to its branches, and everything on the way that is refused.

use kapi_check::rules::measure::number::Number;
use kapi_core::actor::Actor;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::documents::documents;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::autoresearch::answer::{AutoresearchAnswer, Experiment};
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::Keep;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Ending};
use crate::rules::modes::autoresearch::fixture::{
    Search, contract, ended, experiment, held_back_set, measured, proposed, restored, sample,
    split, start,
};
use crate::rules::modes::autoresearch::history::History;
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::outcome::{RestorationReport, WorkflowOutcome};
use crate::rules::scenario::{WorkflowTestScenario, agent, human, identity, terms};
use crate::rules::state::Workflow;

fn finish(search: &mut Search) {
    search.send(AutoresearchCommand::Finish {});
    search.settle();
}

fn document(workflow: &Workflow, name: &str) -> String {
    let all = documents(workflow);
    let found = all.into_iter().find(|document| document.name == name);
    found.unwrap().text
}

#[test]
fn only_real_gains_are_kept_and_finished() {
    let mut search = Search::at_propose();
    assert_eq!(
        search.experiment("a", "src/a.rs", 90.0).status,
        RunStatus::Keep
    );
    assert_eq!(
        search.experiment("b", "src/b.rs", 90.0).status,
        RunStatus::Discard
    );
    assert_eq!(
        search.experiment("c", "src/c.rs", 120.0).status,
        RunStatus::Discard
    );
    assert_eq!(
        search.experiment("d", "src/d.rs", 80.0).status,
        RunStatus::Keep
    );
    let head = search
        .workflow()
        .body
        .rules()
        .branch()
        .unwrap()
        .head
        .clone();
    assert_eq!(head, "kept-d");
    finish(&mut search);
    assert_eq!(search.workflow().phase(), ("finalize", Some("verify")));
    search.measure(&[80.0]);
    let WorkflowAction::Split(wanted) = &next(search.workflow())[0].action else {
        panic!("it is taken apart");
    };
    let parts: Vec<_> = wanted
        .parts
        .iter()
        .map(|it| (it.branch.as_str(), &it.commits))
        .collect();
    assert_eq!(
        parts,
        [
            (
                "perf/autoresearch-sort-faster-part-1",
                &vec!["kept-a".to_owned()]
            ),
            (
                "perf/autoresearch-sort-faster-part-2",
                &vec!["kept-d".to_owned()]
            ),
        ]
    );
    search.0.perform(split(search.workflow()));
    assert_eq!(search.workflow().status, WorkflowStatus::Completed);
    let proof = search
        .workflow()
        .evidence
        .iter()
        .filter(|it| it.kind == "verify");
    assert!(proof.clone().count() == 2 && proof.clone().all(|it| it.reference == "git:kept-d"));
    assert!(document(search.workflow(), "decision-report.md").contains("20 % better"));
}

#[test]
fn a_search_without_a_gain_is_complete_without_a_branch() {
    let mut search = Search::at_propose();
    search.experiment("a", "src/a.rs", 100.0);
    finish(&mut search);
    assert_eq!(search.workflow().status, WorkflowStatus::Completed);
    assert_eq!(search.search().ended, Some(Ending::Finished));
    assert!(search.search().branches.is_empty());
}

#[test]
fn a_decision_is_recorded_before_anything_is_done_and_counted_once() {
    let mut search = Search::at_propose();
    search.propose("a", "src/a.rs");
    let effect = next(search.workflow())[0].id.clone();
    search.measure(&[90.0]);
    assert_eq!(search.search().runs.len(), 2);
    assert_eq!(search.workflow().phase(), ("run", Some("decide")));
    // Whoever reports the same measurement again reports what nobody waits for.
    let outcome = Box::new(WorkflowOutcome::Measured(Box::new(measured("a", &[90.0]))));
    let again = WorkflowCommand::Report { effect, outcome };
    assert!(search.0.ask(&Actor::Engine, &again).is_err());
    let WorkflowAction::Restore(wanted) = &next(search.workflow())[0].action else {
        panic!("it is carried out");
    };
    let keep = wanted.keep.as_ref().unwrap();
    assert_eq!((wanted.head.as_str(), keep.commit.as_str()), ("base", "a"));
    assert!(
        keep.message
            .contains("Result: {\"status\":\"keep\",\"ops\":90}"),
        "{}",
        keep.message
    );
    search.settle();
    let kept = search.search().runs.last().unwrap();
    assert_eq!(
        (kept.commit.as_str(), kept.metric),
        ("kept-a", Number::new(90.0))
    );
}

#[test]
fn what_is_not_where_it_belongs_is_not_taken_for_restored() {
    let mut search = Search::at_propose();
    search.propose("a", "src/a.rs");
    search.measure(&[110.0]);
    let effect = next(search.workflow())[0].id.clone();
    search.0.send(
        &Actor::Engine,
        &WorkflowCommand::Intend {
            effect: effect.clone(),
        },
    );
    for (commit, tree) in [("base", "tree-a"), ("a", "tree-base")] {
        let outcome = Box::new(WorkflowOutcome::Restored(RestorationReport {
            commit: commit.to_owned(),
            tree: tree.to_owned(),
            n_removed: 0,
        }));
        let effect = effect.clone();
        let reported = search
            .0
            .ask(&Actor::Engine, &WorkflowCommand::Report { effect, outcome });
        assert!(reported.is_err(), "{commit} {tree}");
    }
    let outcome = Box::new(restored(search.workflow()));
    search
        .0
        .send(&Actor::Engine, &WorkflowCommand::Report { effect, outcome });
    assert_eq!(search.workflow().phase(), ("run", Some("propose")));
}

#[test]
fn a_change_beside_the_scope_is_discarded_without_being_measured() {
    for (paths, expected) in [
        (
            &["bench/run.sh"][..],
            "it changes bench/run.sh, which is off limits",
        ),
        (
            &["README.md"],
            "it changes README.md, which is not in scope",
        ),
        (
            &["src/a.rs", "bench/x"],
            "it changes bench/x, which is off limits",
        ),
    ] {
        let mut search = Search::at_propose();
        search
            .0
            .perform(proposed(experiment("cheat"), Some(("x", paths))));
        let run = search.search().runs.last().unwrap().clone();
        assert_eq!((run.status, run.metric), (RunStatus::Discard, None));
        assert_eq!(run.reason, expected);
        assert_eq!(search.workflow().phase(), ("run", Some("decide")));
    }
}

#[test]
fn the_same_files_are_not_measured_twice() {
    let mut search = Search::at_propose();
    search.experiment("a", "src/a.rs", 110.0);
    search.propose("a", "src/a.rs");
    let run = search.search().runs.last().unwrap();
    assert_eq!(run.status, RunStatus::Discard);
    assert!(
        run.reason.starts_with("its files are those of run 2"),
        "{}",
        run.reason
    );
}

#[test]
fn crashes_and_broken_checks_are_put_back_with_the_reason() {
    let mut search = Search::at_propose();
    let mut bad = measured("a", &[1.0]);
    bad.samples[0].run = ended(Some(139), false);
    search.propose("a", "src/a.rs");
    search.0.perform(WorkflowOutcome::Measured(Box::new(bad)));
    let run = search.search().runs.last().unwrap().clone();
    assert_eq!((run.status, run.metric), (RunStatus::Crash, None));
    search.settle();
    let mut wrong = measured("b", &[1.0]);
    wrong.checks = Some(ended(Some(1), false));
    search.propose("b", "src/b.rs");
    search.0.perform(WorkflowOutcome::Measured(Box::new(wrong)));
    let run = search.search().runs.last().unwrap().clone();
    assert_eq!(run.status, RunStatus::ChecksFailed);
    search.settle();
    assert_eq!(
        search.search().failures(),
        0,
        "checks that fail end the row"
    );
    let ledger = document(search.workflow(), "ledger.jsonl");
    let lines: Vec<&str> = ledger.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[2].contains("\"metric\":null") && lines[2].contains("\"status\":\"crash\""));
    assert!(lines[3].contains("\"rollback_reason\":\"checks.sh exited with 1\""));
}

#[test]
fn a_baseline_that_does_not_hold_asks_for_a_person() {
    let mut search = Search::with(contract());
    let mut bad = measured("base", &[100.0]);
    bad.checks = Some(ended(Some(1), false));
    search.0.perform(WorkflowOutcome::Measured(Box::new(bad)));
    let blocked = search.workflow().blocked.clone().unwrap();
    assert_eq!(
        blocked.reason,
        "nothing can be compared with where the branch is: checks.sh exited with 1"
    );
    assert!(search.search().runs.is_empty());
    search.0.send(&human(), &WorkflowCommand::Unblock {});
    search.measure(&[100.0]);
    search.settle();
    assert_eq!(search.workflow().phase(), ("run", Some("propose")));
}

#[test]
fn the_search_ends_at_its_limits() {
    let mut few = contract();
    few.runs = 2;
    let mut search = Search::measured_from(few);
    search.experiment("a", "src/a.rs", 90.0);
    search.experiment("b", "src/b.rs", 95.0);
    assert_eq!(search.search().ended, Some(Ending::RunsUsedUp));
    let mut impatient = contract();
    impatient.failures = 1;
    let mut search = Search::measured_from(impatient);
    search.experiment("a", "src/a.rs", 110.0);
    assert_eq!(search.search().ended, None, "one in a row is allowed");
    search.experiment("b", "src/b.rs", 110.0);
    assert_eq!(search.search().ended, Some(Ending::TooManyFailures));
}

#[test]
fn an_agent_without_ideas_ends_the_search_and_one_without_a_change_is_told() {
    let mut search = Search::at_propose();
    search.0.perform(proposed(experiment("nothing"), None));
    assert_eq!(search.search().refused.len(), 1);
    assert_eq!(
        search.workflow().phase(),
        ("run", Some("decide")),
        "the worktree is put back"
    );
    search.settle();
    let exhausted = Experiment {
        exhausted: true,
        ideas: vec!["Another language".to_owned()],
        ..Experiment::default()
    };
    search.0.perform(proposed(exhausted, None));
    assert_eq!(search.search().ended, Some(Ending::Exhausted));
    assert_eq!(search.search().ideas[0].text, "Another language");
}

#[test]
fn three_refused_answers_ask_for_a_person() {
    let mut search = Search::at_propose();
    for _ in 0..3 {
        search.0.perform(WorkflowOutcome::Unreadable {
            by: identity("r1"),
            why: "there is no block of JSON".to_owned(),
            usage: Usage::default(),
        });
        if search.workflow().status == WorkflowStatus::Active {
            search.settle();
        }
    }
    assert_eq!(search.workflow().status, WorkflowStatus::Blocked);
    search.0.send(&human(), &WorkflowCommand::Unblock {});
    search.settle();
    assert_eq!(
        search.experiment("a", "src/a.rs", 90.0).status,
        RunStatus::Keep
    );
}

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
fn a_decision_to_keep_is_carried_out_whatever_is_asked_meanwhile() {
    for ask in ["revise", "finish"] {
        let mut search = Search::at_propose();
        search.propose("a", "src/a.rs");
        search.measure(&[50.0]);
        if ask == "revise" {
            let text = "Something else.".to_owned();
            search.0.send(&human(), &WorkflowCommand::Revise { text });
        } else {
            search.send(AutoresearchCommand::Finish {});
        }
        search.settle();
        assert_eq!(
            search.workflow().body.rules().branch().unwrap().head,
            "kept-a",
            "{ask}"
        );
    }
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
fn a_confirmed_rule_measures_again_and_pairs_are_measured_against_the_parent() {
    let mut strict = contract();
    strict.rule.keep = Keep::Confirm;
    let mut search = Search::measured_from(strict);
    search.propose("a", "src/a.rs");
    search.measure(&[90.0]);
    let WorkflowAction::Measure(wanted) = &next(search.workflow())[0].action else {
        panic!("it is measured again");
    };
    assert_eq!((wanted.commit.as_str(), &wanted.checks), ("a", &None));
    let mut again = measured("a", &[91.0]);
    again.checks = None;
    search.0.perform(WorkflowOutcome::Measured(Box::new(again)));
    assert_eq!(
        search.search().runs.last().unwrap().metric,
        Number::new(90.5)
    );
    let mut paired = contract();
    paired.rule.keep = Keep::Paired;
    let mut search = Search::measured_from(paired);
    search.propose("a", "src/a.rs");
    let WorkflowAction::Measure(wanted) = &next(search.workflow())[0].action else {
        panic!("it is measured");
    };
    assert_eq!(wanted.against.as_deref(), Some("base"));
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

#[test]
fn what_another_tool_recorded_is_told_and_compared_with_nothing_of_ours() {
    let mut scenario = WorkflowTestScenario::begin(&start(terms()));
    let mut history = History::default();
    for (line, text) in (1..).zip([
        r#"{"type":"config","name":"parse","metricName":"ms","metricUnit":"ms","bestDirection":"lower"}"#,
        r#"{"run":1,"commit":"a1b2c3d","metric":50,"metrics":{},"status":"keep","description":"baseline","timestamp":1,"segment":0,"confidence":null}"#,
        r#"{"run":2,"commit":"a1b2c3e","metric":0,"metrics":{"kb":3.5},"status":"crash","description":"inline","timestamp":2,"segment":0,"confidence":null,"asi":{"hypothesis":"less copying","rollback_reason":"it fell over"}}"#,
    ]) {
        history.add(line, &serde_json::from_str(text).unwrap()).unwrap();
    }
    assert_eq!(history.runs[1].metric, None, "a crash has no metric");
    history.ideas = vec!["Use a map".to_owned()];
    let history = Box::new(history);
    scenario.send(&human(), &AutoresearchCommand::Import { history }.into());
    let contract = Box::new(contract());
    scenario.send(&human(), &AutoresearchCommand::Draft { contract }.into());
    scenario.approve();
    let mut search = Search(scenario);
    search.0.perform(WorkflowOutcome::Prepared {
        branch: "b".to_owned(),
        worktree: "/wt".to_owned(),
        baseline: None,
    });
    search.measure(&[100.0]);
    assert_eq!(search.search().segment, 1);
    assert_eq!(search.search().best().unwrap().number, 3);
    let WorkflowAction::Restore(_) = &next(search.workflow())[0].action else {
        panic!("the worktree is proved first");
    };
    search.settle();
    let WorkflowAction::Propose(wanted) = &next(search.workflow())[0].action else {
        panic!("an agent is asked");
    };
    assert!(
        wanted
            .question
            .prompt
            .contains("2. crash no metric: inline")
    );
    let ledger = document(search.workflow(), "ledger.jsonl");
    assert_eq!(ledger.lines().count(), 5);
    assert!(
        ledger
            .lines()
            .next()
            .unwrap()
            .contains("\"metricName\":\"ms\"")
    );
}

#[test]
fn a_ledger_that_is_not_understood_is_refused_with_its_line() {
    for (text, expected) in [
        (
            r#"{"run":1,"status":"maybe"}"#,
            "line 7: run 1 has the unknown status \"maybe\"",
        ),
        (
            r#"{"metric":1}"#,
            "line 7: it has neither a type nor the number of a run",
        ),
        ("[1]", "line 7: it is no object"),
        (r#"{"type":"x"}"#, "line 7: its type \"x\" is not known"),
    ] {
        let error = History::default()
            .add(7, &serde_json::from_str(text).unwrap())
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn ideas_are_kept_once_and_marked_when_they_were_tried() {
    let mut search = Search::at_propose();
    for idea in ["Use a map", " Use a map "] {
        let idea = idea.to_owned();
        search.send(AutoresearchCommand::Note { idea });
    }
    let mut said = experiment("a map");
    said.idea = Some(1);
    said.ideas = vec!["Use a heap".to_owned(), "Use a map".to_owned()];
    search.0.perform(proposed(said, Some(("a", &["src/a.rs"]))));
    search.measure(&[110.0]);
    let ideas = document(search.workflow(), "ideas.md");
    assert_eq!(
        ideas,
        "# Ideas\n\n- [x] 1. Use a map (run 2)\n- [ ] 2. Use a heap\n"
    );
}

#[test]
fn a_stale_measurement_changes_nothing() {
    let mut search = Search::at_propose();
    search.propose("a", "src/a.rs");
    let effect = next(search.workflow())[0].id.clone();
    search.0.send(
        &Actor::Engine,
        &WorkflowCommand::Intend {
            effect: effect.clone(),
        },
    );
    search.send(AutoresearchCommand::Finish {});
    let outcome = Box::new(WorkflowOutcome::Measured(Box::new(measured("a", &[1.0]))));
    let events = search
        .0
        .send(&Actor::Engine, &WorkflowCommand::Report { effect, outcome });
    let is_ours = |event: &WorkflowEvent| matches!(event, WorkflowEvent::Mode(_));
    assert!(!events.iter().any(is_ours), "{events:?}");
    assert_eq!(search.search().gains().count(), 0);
}

#[test]
fn a_log_reads_back_as_it_was_written() {
    let mut search = Search::at_propose();
    search.experiment("a", "src/a.rs", 90.1);
    search.experiment("b", "src/b.rs", 99.0);
    finish(&mut search);
    search.measure(&[90.1]);
    search.0.perform(split(search.workflow()));
    let mut folded = None;
    for event in &search.0.events {
        let line = serde_json::to_string(event).unwrap();
        let read: WorkflowEvent = serde_json::from_str(&line).unwrap();
        assert_eq!(read, *event);
        crate::rules::evolve::evolve(&mut folded, &read);
    }
    assert_eq!(folded, search.0.workflow);
    let decided = search.0.events.iter().find(|event| {
        matches!(
            event,
            WorkflowEvent::Mode(crate::rules::modes::ModeEvent::Autoresearch(
                AutoresearchEvent::SearchEnded { .. }
            ))
        )
    });
    assert_eq!(
        serde_json::to_string(decided.unwrap()).unwrap(),
        r#"{"type":"autoresearch","data":{"search_ended":{"ending":"finished"}}}"#
    );
}
