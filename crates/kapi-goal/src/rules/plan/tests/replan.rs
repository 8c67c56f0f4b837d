//! What a replan does besides the tasks: reasons, the log, the task at hand, preflight.

use super::{AT_MS, current, id, json, operations, plan, refusal, replanned, status};
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::TaskStatus;
use crate::rules::plan::{CleanEnd, OPERATIONS_MAX, Plan, REASON_BYTES_MAX, REPLANS_MAX, Replan};

fn learnings(plan: &Plan) -> Vec<(&str, Vec<&str>)> {
    plan.tasks()
        .iter()
        .map(|task| {
            let lines = task.learnings.iter().map(String::as_str).collect();
            (task.id.as_str(), lines)
        })
        .collect()
}

fn learning(text: &str) -> TaskPatch {
    TaskPatch {
        add_learning: Some(text.to_owned()),
        ..TaskPatch::default()
    }
}

#[test]
fn replan_tells_its_reason_to_the_affected_tasks_only() {
    let before = plan("A! B<A C<B D");
    let after = replanned(&before, r#"[{"op":"remove","taskId":"B"}]"#).unwrap();
    assert_eq!(
        learnings(&after),
        [
            ("A", vec![]),
            ("C", vec!["replan: found out more"]),
            ("D", vec![]),
        ]
    );
}

#[test]
fn replan_tells_its_reason_to_tasks_whose_dependencies_it_rewrote() {
    let reported = vec!["replan: found out more"];
    let before = plan("A! B<A C<B D");
    let split = format!(
        r#"[{{"op":"split","taskId":"B","into":[{}]}}]"#,
        json("M N")
    );
    let merge = format!(
        r#"[{{"op":"merge","taskIds":["B","D"],"into":{}}}]"#,
        json("M")
    );
    let blocking = json("N").replace(r#""blocks":[]"#, r#""blocks":["C"]"#);
    let insert = format!(r#"[{{"op":"insert","task":{blocking}}}]"#);
    for batch in [split, merge, insert] {
        let after = replanned(&before, &batch).unwrap();
        let lines = learnings(&after);
        assert!(
            lines.contains(&("C", reported.clone())),
            "{batch}: {lines:?}"
        );
        assert!(lines.contains(&("A", vec![])), "{batch}: {lines:?}");
    }
}

#[test]
fn replan_tells_one_reason_once_however_many_operations_affect_a_task() {
    let before = plan("A B");
    let batch = r#"[
        {"op":"reorder","taskId":"B","dependencies":["A"]},
        {"op":"reorder","taskId":"B","dependencies":[]}
    ]"#;
    let once = replanned(&before, batch).unwrap();
    let twice = replanned(&once, batch).unwrap();
    for plan in [&once, &twice] {
        assert_eq!(
            learnings(plan),
            [("A", vec![]), ("B", vec!["replan: found out more"])]
        );
    }
}

#[test]
fn replan_keeps_what_was_learnt_before() {
    let before = plan("A B C<A");
    let before = before.update(&id("A"), &learning("a")).unwrap();
    let before = before.update(&id("B"), &learning("b")).unwrap();
    let replaced = replanned(
        &before,
        &format!(r#"[{{"op":"replace","taskId":"A","task":{}}}]"#, json("A")),
    );
    assert_eq!(
        learnings(&replaced.unwrap())[0],
        ("A", vec!["a", "replan: found out more"])
    );
    let merged = replanned(
        &before,
        &format!(
            r#"[{{"op":"merge","taskIds":["A","B"],"into":{}}}]"#,
            json("M")
        ),
    );
    assert_eq!(
        learnings(&merged.unwrap())[0],
        ("M", vec!["a", "b", "replan: found out more"])
    );
    let split = replanned(
        &before,
        &format!(
            r#"[{{"op":"split","taskId":"A","into":[{}]}}]"#,
            json("M N")
        ),
    );
    assert_eq!(
        learnings(&split.unwrap())[..2],
        [
            ("M", vec!["a", "replan: found out more"]),
            ("N", vec!["replan: found out more"]),
        ]
    );
}

#[test]
fn replan_logs_when_why_and_how_much() {
    let batch = operations(r#"[{"op":"remove","taskId":"A"},{"op":"remove","taskId":"B"}]"#);
    let after = plan("A B C")
        .replan(&batch, " two\n were  moot ", AT_MS)
        .unwrap();
    let entry = Replan {
        at_ms: AT_MS,
        reason: "two were moot".to_owned(),
        operations: 2,
    };
    assert_eq!(after.replan_log(), [entry]);
}

#[test]
fn replan_needs_a_reason() {
    let batch = operations(r#"[{"op":"remove","taskId":"A"}]"#);
    for reason in ["", " ", "\n\t"] {
        assert_eq!(
            refusal(plan("A B").replan(&batch, reason, AT_MS)),
            "preflight: the replan gives no reason"
        );
    }
    let long = "x".repeat(REASON_BYTES_MAX + 1);
    assert_eq!(
        refusal(plan("A B").replan(&batch, &long, AT_MS)),
        "preflight: the reason is longer than 1000 bytes"
    );
}

#[test]
fn replan_needs_an_operation_and_not_too_many() {
    assert_eq!(
        refusal(plan("A").replan(&[], "because", AT_MS)),
        "preflight: the replan has no operation"
    );
    let remove = Operation::Remove { task_id: id("A") };
    let many = vec![remove; OPERATIONS_MAX + 1];
    assert_eq!(
        refusal(plan("A").replan(&many, "because", AT_MS)),
        "preflight: the replan has 201 operations; the maximum is 200"
    );
}

#[test]
fn replan_ends_with_a_plan_that_never_settles() {
    let batch = operations(r#"[{"op":"reorder","taskId":"A","dependencies":[]}]"#);
    let mut plan = plan("A");
    for n in 0..REPLANS_MAX {
        plan = plan.replan(&batch, &format!("{n}"), AT_MS).unwrap();
    }
    assert_eq!(
        refusal(plan.replan(&batch, "again", AT_MS)),
        "preflight: the plan was already changed 1000 times"
    );
    // What replanning wrote holds nothing else back.
    let done = plan.update(&id("A"), &status(TaskStatus::Done)).unwrap();
    assert!(done.all_ended());
}

#[test]
fn replan_moves_on_when_the_task_at_hand_is_gone() {
    let before = plan("A! B<A C<B D");
    assert_eq!(current(&before), Some("B"));
    let after = replanned(&before, r#"[{"op":"remove","taskId":"B"}]"#).unwrap();
    assert_eq!(current(&after), Some("C"));
}

#[test]
fn replan_moves_on_when_the_task_at_hand_must_wait() {
    let task = json("N").replace(r#""blocks":[]"#, r#""blocks":["A"]"#);
    let after = replanned(&plan("A"), &format!(r#"[{{"op":"insert","task":{task}}}]"#));
    assert_eq!(current(&after.unwrap()), Some("N"));
}

#[test]
fn replan_stays_with_the_task_that_is_under_way() {
    let task = json("N").replace(r#""blocks":[]"#, r#""blocks":["A"]"#);
    let after = replanned(
        &plan("A*"),
        &format!(r#"[{{"op":"insert","task":{task}}}]"#),
    );
    assert_eq!(current(&after.unwrap()), Some("A"));
}

#[test]
fn replan_of_an_ended_plan_begins_a_new_cycle_of_reminders() {
    let ended = plan("A!").prompted().prompted();
    assert_eq!(ended.clean_end(), CleanEnd::Pause);
    let after = replanned(
        &ended,
        &format!(r#"[{{"op":"insert","task":{}}}]"#, json("N")),
    );
    let after = after.unwrap();
    assert_eq!(after.clean_end(), CleanEnd::NotYet);
    let ended = after.update(&id("N"), &status(TaskStatus::Done)).unwrap();
    assert_eq!(ended.clean_end(), CleanEnd::Prompt);
}

#[test]
fn replan_refuses_a_task_that_says_too_much() {
    let task = json("N").replace("Title of N", " ");
    assert_eq!(
        refusal(replanned(
            &plan("A"),
            &format!(r#"[{{"op":"insert","task":{task}}}]"#)
        )),
        "op_invalid: operations[0] (insert): task N is not valid: title is blank"
    );
}

#[test]
fn a_plan_whose_text_is_at_its_limit_can_still_be_worked_off() {
    let mut tasks = super::tasks("A B C");
    let line = "x".repeat(4_000);
    for task in &mut tasks {
        for list in [
            &mut task.guardrails,
            &mut task.gotchas,
            &mut task.ci_commands,
        ] {
            *list = vec![line.clone(); 115];
        }
    }
    let mut plan = Plan::make(None, &tasks).unwrap();
    let add = |n: usize| TaskPatch {
        add_learning: Some(format!("{n:04}{line}")),
        ..TaskPatch::default()
    };
    let refused = (0..60).find_map(|n| match plan.update(&id("A"), &add(n)) {
        Ok(after) => {
            plan = after;
            None
        }
        Err(denied) => Some(denied.code()),
    });
    assert_eq!(refused, Some("too_large"));
    let done = plan.update(&id("A"), &status(TaskStatus::Done)).unwrap();
    assert_eq!(current(&done), Some("B"));
}
