//! The shapes in JSON: what agents write, what is recorded, what is refused before any rule.

use super::{AT_MS, id, json, operations, plan};
use crate::rules::plan::Plan;
use crate::rules::plan::delta::PlanDelta;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase, TaskStatus};

#[test]
fn a_task_needs_little_and_shows_all() {
    let task: GoalPlanTask =
        serde_json::from_str(r#"{"id":"T-001","title":"Try","phase":"red"}"#).unwrap();
    assert_eq!(
        serde_json::to_string(&task).unwrap(),
        r#"{"id":"T-001","title":"Try","phase":"red","status":"pending","dependencies":[],"blocks":[],"prerequisites":[],"validationSteps":[],"ciCommands":[],"styleguideRules":[],"guardrails":[],"learnings":[],"gotchas":[],"context":[]}"#
    );
}

#[test]
fn a_whole_task_reads_back_as_written() {
    let text = r#"{"id":"T-001","title":"Try","phase":"none","status":"in_progress","dependencies":["A"],"blocks":["B"],"prerequisites":[{"description":"d","cleared":true}],"validationSteps":["v"],"ciCommands":["c"],"styleguideRules":["s"],"guardrails":["g"],"learnings":["l"],"gotchas":["o"],"context":[{"path":"p","why":"w"},{"url":"u","why":"w"}],"notes":"n"}"#;
    let task: GoalPlanTask = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&task).unwrap(), text);
}

#[test]
fn what_is_not_in_the_specification_is_refused() {
    for text in [
        r#"{"id":"T","title":"t","phase":"red","colour":"blue"}"#,
        r#"{"id":"T","title":"t","phase":"purple"}"#,
        r#"{"id":"T","title":"t","phase":"red","status":"finished"}"#,
        r#"{"id":"T","title":"t"}"#,
        r#"{"id":"","title":"t","phase":"red"}"#,
        r#"{"id":"T","title":"t","phase":"red","context":[{"path":"p"}]}"#,
        r#"{"id":"T","title":"t","phase":"red","dependencies":["a b"]}"#,
    ] {
        assert!(
            serde_json::from_str::<GoalPlanTask>(text).is_err(),
            "{text}"
        );
    }
    for text in [
        r#"{"op":"explode","taskId":"T"}"#,
        r#"{"op":"remove"}"#,
        r#"{"op":"remove","taskId":"T","force":true}"#,
        r#"{"op":"remove","task_id":"T"}"#,
        r#"{"op":"insert","taskId":"T"}"#,
    ] {
        assert!(serde_json::from_str::<Operation>(text).is_err(), "{text}");
    }
    for text in [
        r#"{"title":"t"}"#,
        r#"{"dependencies":[]}"#,
        r#"{"addLearning":["a"]}"#,
    ] {
        assert!(serde_json::from_str::<TaskPatch>(text).is_err(), "{text}");
    }
}

#[test]
fn every_operation_reads_back_as_written() {
    let (n, m) = (json("N"), json("M"));
    for text in [
        format!(r#"{{"op":"insert","task":{n}}}"#),
        format!(r#"{{"op":"insert","task":{n},"insertAfter":"A"}}"#),
        r#"{"op":"remove","taskId":"A"}"#.to_owned(),
        format!(r#"{{"op":"replace","taskId":"N","task":{n}}}"#),
        format!(r#"{{"op":"split","taskId":"A","into":[{n},{m}]}}"#),
        format!(r#"{{"op":"merge","taskIds":["A","B"],"into":{n}}}"#),
        r#"{"op":"reorder","taskId":"A","dependencies":["B"]}"#.to_owned(),
    ] {
        let operation: Operation = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&operation).unwrap(), text);
        let op = format!(r#""op":"{}""#, operation.name());
        assert!(text.contains(&op), "{text}");
    }
}

#[test]
fn task_ids_are_short_and_seen() {
    for text in ["T-001", "1", "ä", "a/b:c", "任务", &"x".repeat(64)] {
        assert_eq!(PlanTaskId::parse(text).unwrap().as_str(), text);
    }
    for text in [
        "",
        " ",
        "a b",
        "a\tb",
        "a\u{0}",
        "a\u{200b}",
        "a\u{202e}b",
        &"x".repeat(65),
    ] {
        let error = PlanTaskId::parse(text).unwrap_err().to_string();
        assert!(
            error.ends_with("as a task id: it must be 1 to 64 visible characters without a space"),
            "{error}"
        );
    }
    let long = PlanTaskId::parse(&"x".repeat(1_000_000)).unwrap_err();
    assert!(long.to_string().len() < 200);
}

#[test]
fn every_phase_has_its_glyph() {
    let line: Vec<String> = TaskPhase::ALL
        .iter()
        .map(|phase| format!("{}{phase}", phase.glyph()))
        .collect();
    assert_eq!(
        line.join(" "),
        "◷analysis ⚙bootstrap ✗red ✓green ↺refactor ⌫cleanup ·none"
    );
    for phase in TaskPhase::ALL {
        let text = serde_json::to_string(&phase).unwrap();
        assert_eq!(text, format!("\"{phase}\""));
    }
}

#[test]
fn every_status_has_its_word() {
    for (status, word) in [
        (TaskStatus::Pending, "pending"),
        (TaskStatus::InProgress, "in_progress"),
        (TaskStatus::Done, "done"),
        (TaskStatus::Blocked, "blocked"),
        (TaskStatus::Skipped, "skipped"),
    ] {
        assert_eq!(status.to_string(), word);
        assert_eq!(
            serde_json::to_string(&status).unwrap(),
            format!("\"{word}\"")
        );
    }
}

#[test]
fn a_plan_reads_back_as_written() {
    let batch = operations(r#"[{"op":"remove","taskId":"B"}]"#);
    let plan = plan("A! B<A C<B")
        .replan(&batch, "moot", AT_MS)
        .unwrap()
        .prompted();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn a_delta_holds_what_changed_and_no_more() {
    let before = plan("A B<A C");
    let patch: TaskPatch = serde_json::from_str(r#"{"status":"done"}"#).unwrap();
    let after = before.update(&id("A"), &patch).unwrap();
    let delta = PlanDelta::between(Some(&before), &after);
    let names: Vec<&str> = delta.written.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(names, ["A"]);
    assert_eq!(delta.order, None);
    assert_eq!(delta.replan, None);
    assert_eq!(delta.apply(Some(&before)), after);
}

#[test]
fn what_is_recorded_has_its_line() {
    let bare = json("B");
    let before = plan("A B");
    let batch = operations(r#"[{"op":"remove","taskId":"A"}]"#);
    let after = before.replan(&batch, "moot", AT_MS).unwrap().prompted();
    let log = r#"{"at_ms":1700000000000,"reason":"moot","operations":1}"#;
    assert_eq!(
        serde_json::to_string(&after).unwrap(),
        format!(r#"{{"tasks":[{bare}],"current":"B","replan_log":[{log}],"clean_end_prompts":1}}"#)
    );
    assert_eq!(
        serde_json::to_string(&PlanDelta::between(Some(&before), &after)).unwrap(),
        format!(
            r#"{{"written":[],"order":["B"],"current":"B","replan":{log},"clean_end_prompts":1}}"#
        )
    );
    assert_eq!(
        serde_json::to_string(&PlanDelta::between(None, &plan("B"))).unwrap(),
        format!(r#"{{"written":[{bare}],"order":["B"],"current":"B","clean_end_prompts":0}}"#)
    );
}

#[test]
fn a_delta_of_a_replan_brings_its_log_entry_and_the_new_order() {
    let before = plan("A B<A C<B");
    let batch = operations(r#"[{"op":"remove","taskId":"B"}]"#);
    let after = before.replan(&batch, "moot", AT_MS).unwrap();
    let delta = PlanDelta::between(Some(&before), &after);
    let text = serde_json::to_string(&delta).unwrap();
    let read: PlanDelta = serde_json::from_str(&text).unwrap();
    assert_eq!(read, delta);
    assert_eq!(delta.order, Some(vec![id("A"), id("C")]));
    assert_eq!(delta.replan.as_ref().map(|entry| entry.operations), Some(1));
    assert_eq!(delta.apply(Some(&before)), after);
}

#[test]
fn a_delta_of_the_first_plan_is_the_plan() {
    let first = plan("A B<A");
    let delta = PlanDelta::between(None, &first);
    assert_eq!(delta.apply(None), first);
}

#[test]
fn a_delta_applies_to_anything() {
    let delta = PlanDelta::between(Some(&plan("A B")), &plan("A! B"));
    let tasks = delta.apply(None);
    assert_eq!(tasks.tasks(), []);
    assert_eq!(tasks.current(), None);
}
