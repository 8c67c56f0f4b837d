//! Updates of one task, and what follows for the task at hand.

use super::{current, id, plan, refusal, shape, status};
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{ContextReference, Prerequisite, TaskPhase, TaskStatus};
use crate::rules::plan::{CleanEnd, Plan, TaskCounts};

fn patch(json: &str) -> TaskPatch {
    serde_json::from_str(json).unwrap()
}

fn updated(plan: &Plan, name: &str, json: &str) -> Plan {
    plan.update(&id(name), &patch(json)).unwrap()
}

fn denied(plan: &Plan, name: &str, json: &str) -> String {
    refusal(plan.update(&id(name), &patch(json)))
}

#[test]
fn task_update_changes_what_it_names_and_nothing_else() {
    let before = plan("A");
    let first = updated(&before, "A", r#"{"addLearning":"a","ciCommands":["make"]}"#);
    let after = updated(
        &first,
        "A",
        r#"{"status":"in_progress","phase":"red","prerequisites":[{"description":"db"}],
            "validationSteps":["look"],"styleguideRules":["short"],"guardrails":["no push"],
            "addLearning":"b","addGotcha":"c","addContext":{"path":"x.rs","why":"start here"},
            "notes":"n"}"#,
    );
    let mut wanted = before.tasks()[0].clone();
    wanted.status = TaskStatus::InProgress;
    wanted.phase = TaskPhase::Red;
    wanted.prerequisites = vec![Prerequisite {
        description: "db".to_owned(),
        cleared: false,
    }];
    wanted.validation_steps = vec!["look".to_owned()];
    wanted.ci_commands = vec!["make".to_owned()];
    wanted.styleguide_rules = vec!["short".to_owned()];
    wanted.guardrails = vec!["no push".to_owned()];
    wanted.learnings = vec!["a".to_owned(), "b".to_owned()];
    wanted.gotchas = vec!["c".to_owned()];
    wanted.context = vec![ContextReference {
        path: Some("x.rs".to_owned()),
        url: None,
        why: "start here".to_owned(),
    }];
    wanted.notes = Some("n".to_owned());
    assert_eq!(after.tasks(), [wanted]);
    let without = updated(&after, "A", r#"{"notes":"","guardrails":[]}"#);
    assert_eq!(without.tasks()[0].notes, None);
    assert_eq!(without.tasks()[0].guardrails, [""; 0]);
}

#[test]
fn task_update_refuses_an_unknown_task() {
    assert_eq!(
        denied(&plan("A"), "X", "{}"),
        "not_found: there is no task X in the plan"
    );
}

#[test]
fn task_update_leaves_done_tasks_as_they_are() {
    let before = plan("A! B");
    for json in [
        r#"{"status":"pending"}"#,
        r#"{"addLearning":"late"}"#,
        r#"{"addGotcha":"late"}"#,
        r#"{"notes":"late"}"#,
        r#"{"phase":"none"}"#,
        r#"{"addContext":{"why":"late"}}"#,
    ] {
        assert_eq!(
            denied(&before, "A", json),
            "done_immutable: task A is done and cannot change"
        );
    }
}

#[test]
fn task_update_that_is_repeated_changes_nothing() {
    let json = r#"{"status":"done","addLearning":"a"}"#;
    let once = updated(&plan("A B"), "A", json);
    assert_eq!(updated(&once, "A", json), once);
}

#[test]
fn task_update_takes_the_last_words_with_done() {
    let after = updated(&plan("A"), "A", r#"{"status":"done","addGotcha":"g"}"#);
    assert_eq!(after.tasks()[0].gotchas, ["g"]);
    assert_eq!(shape(&after), "A!");
}

#[test]
fn task_update_done_moves_on_to_the_next_ready_task() {
    let before = plan("A B<C C<A D");
    let after = updated(&before, "A", r#"{"status":"done"}"#);
    assert_eq!(current(&after), Some("C"));
    assert_eq!(after.phase(), Some(TaskPhase::Green));
}

#[test]
fn task_update_skipped_satisfies_dependents() {
    let after = updated(&plan("A B<A"), "A", r#"{"status":"skipped"}"#);
    assert_eq!(current(&after), Some("B"));
    let after = updated(&after, "B", r#"{"status":"done"}"#);
    assert!(after.all_ended());
    assert_eq!(current(&after), None);
    assert_eq!(after.phase(), None);
}

#[test]
fn task_update_blocked_moves_on_and_leaves_dependents_waiting() {
    let after = updated(&plan("A B<A C"), "A", r#"{"status":"blocked"}"#);
    assert_eq!(current(&after), Some("C"));
    let after = updated(&after, "C", r#"{"status":"done"}"#);
    assert_eq!(current(&after), None);
    assert!(!after.all_ended());
    assert_eq!(after.clean_end(), CleanEnd::NotYet);
}

#[test]
fn task_update_in_progress_becomes_the_task_at_hand() {
    let before = plan("A B C<B");
    let after = updated(
        &before,
        "C",
        r#"{"status":"in_progress","phase":"refactor"}"#,
    );
    assert_eq!(current(&after), Some("C"));
    assert_eq!(after.phase(), Some(TaskPhase::Refactor));
    let note = updated(&after, "A", r#"{"notes":"n"}"#);
    assert_eq!(current(&note), Some("C"));
}

#[test]
fn task_update_of_another_task_leaves_the_task_at_hand() {
    let after = updated(&plan("A B C"), "B", r#"{"status":"done"}"#);
    assert_eq!(current(&after), Some("A"));
}

#[test]
fn task_update_goes_back_to_what_was_begun_before_it_begins_anew() {
    let before = plan("A B C*");
    let before = updated(&before, "B", r#"{"status":"in_progress"}"#);
    let after = updated(&before, "B", r#"{"status":"done"}"#);
    assert_eq!(current(&after), Some("C"));
}

#[test]
fn task_update_refuses_what_says_nothing_or_too_much() {
    let before = plan("A");
    assert_eq!(
        denied(&before, "A", r#"{"addLearning":" "}"#),
        "task_invalid: task A is not valid: addLearning is blank"
    );
    let long = format!(r#"{{"notes":"{}"}}"#, "x".repeat(17 * 1024));
    assert_eq!(
        denied(&before, "A", &long),
        "task_invalid: task A is not valid: notes is longer than 16384 bytes"
    );
}

#[test]
fn next_ready_is_the_first_pending_task_whose_dependencies_have_ended() {
    for (text, ready) in [
        ("A B<A", Some("A")),
        ("A! B<A", Some("B")),
        ("A~ B<A", Some("B")),
        ("A* B<A", None),
        ("A? B<A C", Some("C")),
        ("A! B~", None),
    ] {
        let plan = plan(text);
        let found = plan.next_ready().map(|task| task.id.as_str());
        assert_eq!(found, ready, "{text}");
    }
}

#[test]
fn clean_end_is_reminded_twice_and_then_pauses() {
    let open = plan("A! B");
    assert_eq!(open.clean_end(), CleanEnd::NotYet);
    let ended = open.update(&id("B"), &status(TaskStatus::Skipped)).unwrap();
    assert_eq!(ended.clean_end(), CleanEnd::Prompt);
    let once = ended.prompted();
    assert_eq!(once.clean_end(), CleanEnd::Prompt);
    let twice = once.prompted();
    assert_eq!(twice.clean_end(), CleanEnd::Pause);
    assert_eq!(twice.resumed().clean_end(), CleanEnd::Prompt);
}

#[test]
fn a_task_that_is_taken_up_again_begins_a_new_cycle_of_reminders() {
    let ended = plan("A! B~").prompted().prompted();
    let open = updated(&ended, "B", r#"{"status":"pending"}"#);
    let again = updated(&open, "B", r#"{"status":"done"}"#);
    assert_eq!(again.clean_end(), CleanEnd::Prompt);
}

#[test]
fn counts_add_up() {
    let counts = plan("A! B! C* D? E~ F").counts();
    let wanted = TaskCounts {
        total: 6,
        done: 2,
        in_progress: 1,
        blocked: 1,
        pending: 1,
        skipped: 1,
    };
    assert_eq!(counts, wanted);
}
