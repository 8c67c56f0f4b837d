//! A search from its contract to its branches, and everything on the way that is refused.

mod contract;
mod history;

use kapi_check::rules::measure::number::Number;
use kapi_core::actor::Actor;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::documents::documents;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::autoresearch::answer::Experiment;
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::contract::Keep;
use crate::rules::modes::autoresearch::event::{AutoresearchEvent, Ending};
use crate::rules::modes::autoresearch::fixture::{
    Search, contract, ended, experiment, measured, proposed, restored, split,
};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::outcome::{RestorationReport, WorkflowOutcome};
use crate::rules::scenario::{human, identity};
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
