//! Rounds of several changes: in which order they are measured, what is kept, what becomes of the rest.

use kapi_check::rules::measure::number::Number;

use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::autoresearch::answer::Experiment;
use crate::rules::modes::autoresearch::contract::{Contract, Keep};
use crate::rules::modes::autoresearch::event::Ending;
use crate::rules::modes::autoresearch::fixture::{
    Search, contract, experiment, measured, proposed, reapplied, sample,
};
use crate::rules::modes::autoresearch::run::RunStatus;
use crate::rules::outcome::WorkflowOutcome;

fn at_once(parallel: u32) -> Contract {
    let mut contract = contract();
    contract.parallel = parallel;
    contract
}

/// Returns what is wanted, by the names of effects.
fn wanted(search: &Search) -> Vec<String> {
    let effects = next(search.workflow()).into_iter();
    effects.map(|effect| effect.id.to_string()).collect()
}

/// Returns the status, metric and reason of each run but the baseline.
fn runs(search: &Search) -> Vec<(RunStatus, Option<f64>, String)> {
    let runs = search.search().runs.iter().skip(1);
    runs.map(|run| (run.status, run.metric.map(Number::get), run.reason.clone()))
        .collect()
}

fn measure_next(search: &mut Search, commit: &str, ops: f64) {
    assert_eq!(search.measured_commit(), commit);
    search.measure(&[ops]);
}

#[test]
fn all_are_proposed_before_one_is_measured_and_the_rest_is_combined_with_the_best() {
    let mut search = Search::measured_from(at_once(3));
    assert_eq!(
        wanted(&search),
        [
            "t001-researcher-a1",
            "t001-researcher-a2",
            "t001-researcher-a3"
        ]
    );
    let WorkflowAction::Propose(second) = next(search.workflow())[1].action.clone() else {
        panic!("agents propose");
    };
    assert_eq!((second.place, second.question.ordinal), (1, 2));
    assert!(second.question.prompt.contains("agent 2 of 3"));
    search.propose("a", "src/a.rs");
    search.propose("b", "src/b.rs");
    assert_eq!(wanted(&search), ["t001-researcher-a3"]);
    search.propose("c", "src/c.rs");
    measure_next(&mut search, "a", 90.0);
    assert_eq!(
        runs(&search),
        [],
        "nothing is decided before all are measured"
    );
    measure_next(&mut search, "b", 50.0);
    measure_next(&mut search, "c", 120.0);
    // What is worse is decided at once, and the best of the others after it.
    assert_eq!(runs(&search).len(), 1);
    search.settle();
    assert_eq!(runs(&search).len(), 2);
    assert_eq!(runs(&search)[1].0, RunStatus::Keep);
    search.settle();
    let WorkflowAction::Reapply(asked) = next(search.workflow())[0].action.clone() else {
        panic!("the other gain is applied to it");
    };
    assert_eq!(
        (
            asked.commit.as_str(),
            asked.parent.as_str(),
            asked.head.as_str()
        ),
        ("a", "base", "kept-b")
    );
    search.0.perform(reapplied("a-on-b", "src/a.rs"));
    measure_next(&mut search, "a-on-b", 45.0);
    search.settle();
    let found: Vec<_> = runs(&search)
        .into_iter()
        .map(|(status, metric, _)| (status, metric))
        .collect();
    assert_eq!(
        found,
        [
            (RunStatus::Discard, Some(120.0)),
            (RunStatus::Keep, Some(50.0)),
            (RunStatus::Keep, Some(45.0)),
        ]
    );
    assert_eq!(
        wanted(&search),
        [
            "t001-researcher-a4",
            "t001-researcher-a5",
            "t001-researcher-a6"
        ]
    );
    assert_eq!(search.search().gains().count(), 2);
}

#[test]
fn a_gain_that_does_not_fit_or_does_not_add_up_is_discarded_with_the_reason() {
    let mut search = Search::measured_from(at_once(3));
    for (commit, path) in [("a", "src/a.rs"), ("b", "src/b.rs"), ("c", "src/c.rs")] {
        search.propose(commit, path);
    }
    measure_next(&mut search, "a", 60.0);
    measure_next(&mut search, "b", 80.0);
    measure_next(&mut search, "c", 70.0);
    search.settle();
    search.0.perform(WorkflowOutcome::Conflicted {
        paths: vec!["src/b.rs".to_owned()],
    });
    search.settle();
    search.0.perform(reapplied("c-on-a", "src/c.rs"));
    measure_next(&mut search, "c-on-a", 61.0);
    search.settle();
    let found = runs(&search);
    assert_eq!(found[0].0, RunStatus::Keep);
    assert_eq!(
        found[1].2,
        "it is better than its parent, and does not fit run 2, which was better still: both change \
         src/b.rs"
    );
    assert_eq!(found[2].2, "plain: 61ops is worse than 60ops");
}

#[test]
fn what_may_not_be_measured_is_discarded_in_its_turn() {
    let mut search = Search::measured_from(at_once(2));
    search.propose("a", "bench/run.sh");
    search.propose("b", "src/b.rs");
    assert_eq!(
        runs(&search)[0].2,
        "it changes bench/run.sh, which is off limits"
    );
    search.settle();
    measure_next(&mut search, "b", 90.0);
    search.settle();
    assert_eq!(runs(&search)[1].0, RunStatus::Keep);
    assert_eq!(
        wanted(&search),
        ["t001-researcher-a3", "t001-researcher-a4"]
    );
}

#[test]
fn only_agents_that_all_have_no_idea_end_the_search() {
    let exhausted = || {
        let said = Experiment {
            exhausted: true,
            ..Experiment::default()
        };
        proposed(said, None)
    };
    let mut search = Search::measured_from(at_once(2));
    search.0.perform(exhausted());
    search.propose("a", "src/a.rs");
    measure_next(&mut search, "a", 90.0);
    search.settle();
    assert_eq!(search.search().ended, None);
    search.0.perform(exhausted());
    search.0.perform(exhausted());
    assert_eq!(search.search().ended, Some(Ending::Exhausted));
}

#[test]
fn rounds_that_are_refused_ask_for_a_person() {
    let mut search = Search::measured_from(at_once(2));
    for _ in 0..2 {
        search.0.perform(proposed(experiment("nothing"), None));
        search.0.perform(proposed(experiment("nothing"), None));
    }
    assert!(search.workflow().blocked.is_some());
}

#[test]
fn no_more_are_asked_than_runs_are_left() {
    let mut few = at_once(3);
    few.runs = 4;
    let mut search = Search::measured_from(few);
    for (commit, path) in [("a", "src/a.rs"), ("b", "src/b.rs"), ("c", "src/c.rs")] {
        search.propose(commit, path);
    }
    for commit in ["a", "b", "c"] {
        measure_next(&mut search, commit, 200.0);
        search.settle();
    }
    assert_eq!(wanted(&search), ["t001-researcher-a4"]);
    search.propose("d", "src/d.rs");
    measure_next(&mut search, "d", 90.0);
    search.settle();
    assert_eq!(search.search().ended, Some(Ending::RunsUsedUp));
}

#[test]
fn the_best_by_what_was_measured_meanwhile_is_kept() {
    let mut strict = at_once(2);
    strict.rule.keep = Keep::Interleaved;
    let mut search = Search::measured_from(strict);
    search.propose("a", "src/a.rs");
    search.propose("b", "src/b.rs");
    // The machine was slow when the better one was measured.
    for (commit, parent, found) in [("a", 200.0, 120.0), ("b", 100.0, 90.0)] {
        let mut report = measured(commit, &[found]);
        report.against = vec![sample(parent)];
        search
            .0
            .perform(WorkflowOutcome::Measured(Box::new(report)));
    }
    let run = search.search().runs.last().unwrap();
    assert_eq!((run.commit.as_str(), run.status), ("a", RunStatus::Keep));
    assert_eq!(run.parent.map(Number::get), Some(200.0));
}
