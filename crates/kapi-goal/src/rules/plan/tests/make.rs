//! The first plan of a goal.

use super::{current, id, plan, refusal, shape, task, tasks};
use crate::rules::plan::task::{GoalPlanTask, ITEMS_MAX, PlanTaskId, TITLE_BYTES_MAX, TaskStatus};
use crate::rules::plan::{PLAN_BYTES_MAX, Plan, TASKS_MAX};

fn denied(tasks: &[GoalPlanTask]) -> String {
    refusal(Plan::make(None, tasks))
}

fn blocks(plan: &Plan) -> Vec<(&str, Vec<&str>)> {
    plan.tasks()
        .iter()
        .map(|task| {
            (
                task.id.as_str(),
                task.blocks.iter().map(PlanTaskId::as_str).collect(),
            )
        })
        .collect()
}

#[test]
fn plan_begins_with_the_first_task_that_waits_for_nothing() {
    let plan = plan("B<A A C<A");
    assert_eq!(shape(&plan), "B<A A C<A");
    assert_eq!(current(&plan), Some("A"));
    assert_eq!(plan.replan_log(), []);
}

#[test]
fn plan_begins_with_a_task_that_is_under_way() {
    let plan = Plan::make(None, &tasks("A B*")).unwrap();
    assert_eq!(current(&plan), Some("B"));
}

#[test]
fn plan_derives_blocks_from_dependencies() {
    let plan = plan("A B<A C<A,B");
    assert_eq!(
        blocks(&plan),
        [("A", vec!["B", "C"]), ("B", vec!["C"]), ("C", vec![])]
    );
}

#[test]
fn plan_takes_stated_blocks_as_dependencies() {
    let mut tasks = tasks("A B");
    tasks[0].blocks = vec![id("B"), id("B")];
    let plan = Plan::make(None, &tasks).unwrap();
    assert_eq!(shape(&plan), "A B<A");
    assert_eq!(blocks(&plan), [("A", vec!["B"]), ("B", vec![])]);
}

#[test]
fn plan_names_a_dependency_once() {
    let plan = Plan::make(None, &tasks("A B<A,A")).unwrap();
    assert_eq!(shape(&plan), "A B<A");
}

#[test]
fn plan_refuses_no_task_at_all() {
    assert_eq!(denied(&[]), "empty_plan: the plan has no tasks");
}

#[test]
fn plan_refuses_two_tasks_of_one_name() {
    assert_eq!(
        denied(&tasks("A B A")),
        "duplicate_id: two tasks have the id A"
    );
}

#[test]
fn plan_refuses_unknown_dependencies_and_blocks() {
    assert_eq!(
        denied(&tasks("A B<X")),
        "unknown_dep: task B names X, which is not in the plan"
    );
    let mut tasks = tasks("A");
    tasks[0].blocks = vec![id("X")];
    assert_eq!(
        denied(&tasks),
        "unknown_dep: task A names X, which is not in the plan"
    );
}

#[test]
fn plan_refuses_a_cycle() {
    assert_eq!(
        denied(&tasks("Z A<C B<A C<B D<C")),
        "cycle: tasks depend on each other in a cycle: A -> C -> B -> A"
    );
    let mut stated = tasks("A<B B");
    stated[0].blocks = vec![id("B")];
    assert_eq!(
        denied(&stated),
        "cycle: tasks depend on each other in a cycle: A -> B -> A"
    );
}

#[test]
fn plan_refuses_finished_work() {
    assert_eq!(
        denied(&tasks("A B!")),
        "done_already: task B is already done, but a new plan cannot contain finished tasks"
    );
}

#[test]
fn plan_refuses_a_second_plan() {
    let first = plan("A! B");
    assert_eq!(
        refusal(Plan::make(Some(&first), &tasks("N"))),
        "plan_exists: there is already a plan with 2 tasks, 1 of them done"
    );
}

#[test]
fn plan_refuses_more_than_its_limits() {
    let many: Vec<GoalPlanTask> = (0..=TASKS_MAX)
        .map(|n| task(&format!("T{n}"), &[]))
        .collect();
    assert_eq!(
        denied(&many),
        "too_many_tasks: the plan would have 1001 tasks; the maximum is 1000"
    );
    assert!(Plan::make(None, &many[1..]).is_ok());

    let mut wide = tasks("A");
    wide[0].title = " \n".to_owned();
    assert_eq!(
        denied(&wide),
        "task_invalid: task A is not valid: title is blank"
    );
    wide[0].title = "x".repeat(TITLE_BYTES_MAX + 1);
    assert_eq!(
        denied(&wide),
        "task_invalid: task A is not valid: title is longer than 500 bytes"
    );
    let mut long = tasks("A");
    long[0].guardrails = vec!["x".to_owned(); ITEMS_MAX + 1];
    assert_eq!(
        denied(&long),
        "task_invalid: task A is not valid: guardrails has more than 200 entries"
    );
}

#[test]
fn plan_refuses_more_text_than_can_be_kept() {
    let mut many: Vec<GoalPlanTask> = (0..300).map(|n| task(&format!("T{n}"), &[])).collect();
    for task in &mut many {
        task.notes = Some("x".repeat(15_000));
    }
    let text = denied(&many);
    assert!(
        text.starts_with("too_large: the plan would contain 45"),
        "{text}"
    );
    many.truncate(PLAN_BYTES_MAX / 15_100);
    assert!(Plan::make(None, &many).is_ok());
}

#[test]
fn a_chain_of_a_thousand_tasks_is_planned_from_its_end() {
    let mut chain: Vec<GoalPlanTask> = Vec::new();
    for n in 0..TASKS_MAX {
        let next = format!("T{}", n + 1);
        let last = n + 1 == TASKS_MAX;
        let dependencies = if last { vec![] } else { vec![next.as_str()] };
        chain.push(task(&format!("T{n}"), &dependencies));
    }
    let plan = Plan::make(None, &chain).unwrap();
    assert_eq!(current(&plan), Some("T999"));
    chain[TASKS_MAX - 1].dependencies = vec![id("T0")];
    let text = denied(&chain);
    assert!(text.starts_with("cycle: "), "{text}");
    assert!(text.len() < 200, "{text}");
}

#[test]
fn tasks_that_come_in_may_be_anything_but_done() {
    let plan = Plan::make(None, &tasks("A? B~ C*")).unwrap();
    assert_eq!(plan.tasks()[1].status, TaskStatus::Skipped);
    assert_eq!(current(&plan), Some("C"));
}
