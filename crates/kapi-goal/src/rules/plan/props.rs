//! What holds for every sequence of plans, replans and updates, however foolish.
//!
//! Names are drawn from a small pool, so that operations meet, miss and collide.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use crate::rules::plan::delta::PlanDelta;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::patch::TaskPatch;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskStatus};
use crate::rules::plan::tests::{AT_MS, id, task};
use crate::rules::plan::{Plan, REPLANS_MAX};

/// One foolish request.
#[derive(Debug, Clone)]
enum Ask {
    Replan(Vec<Operation>),
    Update(PlanTaskId, Box<TaskPatch>),
    Make(Vec<GoalPlanTask>),
    Prompt,
}

/// A name that is mostly taken.
fn name() -> impl Strategy<Value = PlanTaskId> {
    "[A-F]".prop_map(|name| id(&name))
}

/// A name that is mostly free.
fn new_name() -> impl Strategy<Value = PlanTaskId> {
    "[A-P]".prop_map(|name| id(&name))
}

fn status() -> impl Strategy<Value = TaskStatus> {
    prop_oneof![
        3 => Just(TaskStatus::Pending),
        2 => Just(TaskStatus::Done),
        1 => Just(TaskStatus::InProgress),
        1 => Just(TaskStatus::Blocked),
        1 => Just(TaskStatus::Skipped),
    ]
}

/// A task as an agent may bring it in: mostly pending, with few edges.
fn some_task() -> impl Strategy<Value = GoalPlanTask> {
    let status = prop_oneof![9 => Just(TaskStatus::Pending), 1 => status()];
    let names = || {
        prop_oneof![
            3 => Just(Vec::new()),
            1 => prop::collection::vec(name(), 1..3),
        ]
    };
    let learnings = prop::collection::vec("[a-b]", 0..2);
    (new_name(), status, names(), names(), learnings).prop_map(
        |(name, status, dependencies, blocks, learnings)| GoalPlanTask {
            status,
            dependencies,
            blocks,
            learnings,
            ..task(name.as_str(), &[])
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let names = || prop::collection::vec(name(), 0..3);
    let parts = prop::collection::vec(some_task(), 0..4);
    prop_oneof![
        (some_task(), prop::option::of(name()))
            .prop_map(|(task, insert_after)| Operation::Insert { task, insert_after }),
        name().prop_map(|task_id| Operation::Remove { task_id }),
        (name(), some_task(), any::<u8>()).prop_map(|(task_id, mut task, other)| {
            if other > 20 {
                task.id = task_id.clone();
            }
            Operation::Replace { task_id, task }
        }),
        (name(), parts).prop_map(|(task_id, into)| Operation::Split { task_id, into }),
        (names(), some_task()).prop_map(|(task_ids, into)| Operation::Merge { task_ids, into }),
        (name(), names()).prop_map(|(task_id, dependencies)| Operation::Reorder {
            task_id,
            dependencies
        }),
    ]
}

fn patch() -> impl Strategy<Value = TaskPatch> {
    (prop::option::of(status()), prop::option::of("[a-c ]")).prop_map(|(status, line)| TaskPatch {
        status,
        add_learning: line,
        ..TaskPatch::default()
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        5 => prop::collection::vec(operation(), 0..3).prop_map(Ask::Replan),
        4 => (name(), patch()).prop_map(|(name, patch)| Ask::Update(name, Box::new(patch))),
        1 => prop::collection::vec(some_task(), 0..6).prop_map(Ask::Make),
        1 => Just(Ask::Prompt),
    ]
}

fn carried_out(plan: Option<&Plan>, ask: &Ask) -> Option<Plan> {
    match (ask, plan) {
        (Ask::Make(tasks), plan) => Plan::make(plan, tasks).ok(),
        (Ask::Replan(operations), Some(plan)) => plan.replan(operations, "why", AT_MS).ok(),
        (Ask::Update(name, patch), Some(plan)) => plan.update(name, patch).ok(),
        (Ask::Prompt, Some(plan)) => Some(plan.prompted()),
        (Ask::Replan(_) | Ask::Update(..) | Ask::Prompt, None) => None,
    }
}

/// A task as bytes, without what is derived from the others.
fn own_bytes(task: &GoalPlanTask) -> String {
    let mut task = task.clone();
    task.blocks.clear();
    serde_json::to_string(&task).unwrap()
}

fn check_plan(plan: &Plan) {
    let tasks: BTreeMap<&PlanTaskId, &GoalPlanTask> =
        plan.tasks().iter().map(|t| (&t.id, t)).collect();
    assert_eq!(tasks.len(), plan.tasks().len(), "ids are unique");
    assert!(!tasks.is_empty());
    for task in plan.tasks() {
        let names: BTreeSet<&PlanTaskId> = task.dependencies.iter().collect();
        assert_eq!(
            names.len(),
            task.dependencies.len(),
            "a dependency is named once"
        );
        assert!(
            names.iter().all(|name| tasks.contains_key(*name)),
            "dependencies are known"
        );
        let waiting: Vec<&PlanTaskId> = plan
            .tasks()
            .iter()
            .filter(|other| other.dependencies.contains(&task.id))
            .map(|other| &other.id)
            .collect();
        assert_eq!(
            task.blocks.iter().collect::<Vec<_>>(),
            waiting,
            "blocks are in step"
        );
    }
    check_that_work_can_go_on(plan);
    if let Some(current) = plan.current() {
        assert!(!current.status.has_ended(), "the task at hand is open");
    }
    assert!(plan.replan_log().len() <= REPLANS_MAX);
}

/// Ends every task that can be reached; a circle would leave some.
fn check_that_work_can_go_on(plan: &Plan) {
    let mut plan = plan.clone();
    for task in plan.tasks().to_vec() {
        if matches!(task.status, TaskStatus::Blocked | TaskStatus::InProgress) {
            let pending = TaskPatch {
                status: Some(TaskStatus::Pending),
                ..TaskPatch::default()
            };
            plan = plan.update(&task.id, &pending).unwrap();
        }
    }
    let done = TaskPatch {
        status: Some(TaskStatus::Done),
        ..TaskPatch::default()
    };
    while let Some(current) = plan.current() {
        let current = current.id.clone();
        plan = plan.update(&current, &done).unwrap();
    }
    assert!(plan.all_ended(), "there is no circle: {plan:?}");
}

fn check_step(before: &Plan, after: &Plan) {
    for task in before
        .tasks()
        .iter()
        .filter(|task| task.status == TaskStatus::Done)
    {
        let now = after.task(&task.id).map(own_bytes);
        assert_eq!(now, Some(own_bytes(task)), "a done task stays as it is");
    }
    let delta = PlanDelta::between(Some(before), after);
    let text = serde_json::to_string(&delta).unwrap();
    let read: PlanDelta = serde_json::from_str(&text).unwrap();
    assert_eq!(read.apply(Some(before)), *after, "a delta says it all");
}

/// A batch that is legal becomes illegal as a whole by one more operation.
fn check_all_or_nothing(before: &Plan, operations: &[Operation]) {
    let mut batch = operations.to_vec();
    batch.push(Operation::Remove { task_id: id("Z") });
    let denied = before.replan(&batch, "why", AT_MS).unwrap_err();
    assert_eq!(denied.code(), "op_invalid");
}

fn check_scenario(first: &[GoalPlanTask], asks: &[Ask]) {
    let mut plan = Plan::make(None, first).ok();
    plan.iter().for_each(check_plan);
    for ask in asks {
        let before = plan.clone();
        let Some(after) = carried_out(plan.as_ref(), ask) else {
            assert_eq!(plan, before);
            continue;
        };
        check_plan(&after);
        if let Some(before) = &before {
            check_step(before, &after);
        }
        if let (Some(before), Ask::Replan(operations)) = (&before, ask) {
            check_all_or_nothing(before, operations);
        }
        plan = Some(after);
    }
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn plans_stay_sound_whatever_is_asked(
        first in prop::collection::vec(some_task(), 0..6),
        asks in prop::collection::vec(ask(), 0..60),
    ) {
        check_scenario(&first, &asks);
    }
}

/// The stories above say nothing if everything they ask for is refused.
#[test]
fn every_operation_is_accepted_and_refused_often() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<(&str, bool), u32> = BTreeMap::new();
    let first = [
        task("A", &[]),
        task("B", &["A"]),
        task("C", &["B"]),
        task("D", &[]),
    ];
    let done = TaskPatch {
        status: Some(TaskStatus::Done),
        ..TaskPatch::default()
    };
    let plan = Plan::make(None, &first)
        .unwrap()
        .update(&id("A"), &done)
        .unwrap();
    for _ in 0..5_000 {
        let operation = operation().new_tree(&mut runner).unwrap().current();
        let result = plan.replan(std::slice::from_ref(&operation), "why", AT_MS);
        *seen.entry((operation.name(), result.is_ok())).or_default() += 1;
    }
    for name in ["insert", "remove", "replace", "split", "merge", "reorder"] {
        for is_accepted in [true, false] {
            let count = seen.get(&(name, is_accepted)).copied().unwrap_or_default();
            assert!(count >= 20, "{name} {is_accepted}: {seen:?}");
        }
    }
}
