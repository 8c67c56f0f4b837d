//! What was there before a run: the ledger of another tool, and ideas.

use super::document;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::modes::autoresearch::command::AutoresearchCommand;
use crate::rules::modes::autoresearch::fixture::{Search, contract, experiment, proposed, start};
use crate::rules::modes::autoresearch::history::History;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::scenario::{WorkflowTestScenario, human, terms};

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
        ("[1]", "line 7: it is not an object"),
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
    let none = document(search.workflow(), "ideas.md");
    assert_eq!(none, "# Ideas\n\nThere are none.\n");
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
