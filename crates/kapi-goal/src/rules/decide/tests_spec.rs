//! Pi-until-done's tools, refusal codes and replan operations, each by its name.
//!
//! What a rule of planning or of a turn says in detail is tested beside the rule; here it is shown
//! that a goal keeps it.

use kapi_core::id::GoalId;
use kapi_core::judge::Judge;
use kapi_core::verdict::JudgeVerdict;
use serde_json::{Value, json};

use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::Contract;
use crate::rules::decide::tests::check;
use crate::rules::denied::GoalDenial;
use crate::rules::event::GoalEvent;
use crate::rules::outcome::GoalOutcome;
use crate::rules::plan::operation::Operation;
use crate::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase};
use crate::rules::prompt::turn_prompt;
use crate::rules::scenario::Step::{Begins, Calls, Ends, Person, Reports};
use crate::rules::scenario::{
    Step, committed, contract, create, failed, passed, play, ready, verdict, worked,
};
use crate::rules::state::{Goal, GoalStatus};
use crate::rules::tool::ToolCall;
use crate::rules::wait::{COMMAND_EVERY_MS_MIN, WaitFor};

pub(super) fn unjudged() -> Contract {
    Contract {
        judge: Judge::None,
        ..contract()
    }
}

/// The steps to a turn under way.
pub(super) fn working() -> Vec<Step> {
    [ready(unjudged()), vec![Begins]].concat()
}

pub(super) fn and(given: &[Step], more: &[Step]) -> Vec<Step> {
    [given, more].concat()
}

pub(super) fn task(value: Value) -> GoalPlanTask {
    serde_json::from_value(value).unwrap()
}

pub(super) fn named(id: &str) -> GoalPlanTask {
    task(json!({"id": id, "title": id, "phase": "red"}))
}

pub(super) fn id(text: &str) -> PlanTaskId {
    PlanTaskId::parse(text).unwrap()
}

pub(super) fn plan(tasks: &[GoalPlanTask]) -> Step {
    Calls(ToolCall::Plan {
        tasks: tasks.to_vec(),
    })
}

/// A plan of `a`, and `b` after it.
pub(super) fn two_tasks() -> Step {
    let after = json!({"id": "b", "title": "b", "phase": "green", "dependencies": ["a"]});
    plan(&[named("a"), task(after)])
}

pub(super) fn update(task: &str, patch: Value) -> Step {
    Calls(ToolCall::TaskUpdate {
        id: id(task),
        patch: Box::new(serde_json::from_value(patch).unwrap()),
    })
}

pub(super) fn replan(operations: Value, reason: &str) -> Step {
    let operations: Vec<Operation> = serde_json::from_value(operations).unwrap();
    Calls(ToolCall::Replan {
        operations,
        reason: reason.to_owned(),
    })
}

pub(super) fn note(text: &str, phase: Option<TaskPhase>) -> Step {
    Calls(ToolCall::Progress {
        note: text.to_owned(),
        phase,
    })
}

pub(super) fn complete(evidence: &str) -> Step {
    Calls(ToolCall::Complete {
        evidence: evidence.to_owned(),
        summary: None,
    })
}

pub(super) fn block(question: &str) -> Step {
    Calls(ToolCall::Block {
        question: question.to_owned(),
        reason: "nobody wrote it down".to_owned(),
    })
}

pub(super) fn wait(until: WaitFor) -> Step {
    Calls(ToolCall::Wait {
        until,
        reason: "r".to_owned(),
        timeout_ms: None,
    })
}

pub(super) fn distill() -> Step {
    Calls(ToolCall::Distill {
        markdown: "# What was learnt".to_owned(),
    })
}

pub(super) fn setup() -> Step {
    Person(GoalCommand::Create {
        id: GoalId::parse("001-x").unwrap(),
        contract: Box::new(contract()),
        contract_hash: "hash".to_owned(),
        setup: true,
    })
}

pub(super) fn say(text: &str) -> Step {
    let text = text.to_owned();
    Person(GoalCommand::Person(PersonCommand::Say { text }))
}

/// Returns the goal after these steps, none of which may be denied, and what was recorded.
pub(super) fn reported(steps: &[Step]) -> (Goal, Vec<GoalEvent>) {
    let (mut state, mut events) = (None, Vec::new());
    for step in steps {
        events.extend(play(&mut state, step).unwrap());
    }
    (state.unwrap(), events)
}

pub(super) fn after(steps: &[Step]) -> Goal {
    reported(steps).0
}

/// Checks that a call is refused with a code of the specification and changes nothing.
pub(super) fn check_code(given: &[Step], call: &Step, wanted: &str) {
    let before = after(given);
    let mut state = Some(before.clone());
    let code = match play(&mut state, call) {
        Err(GoalDenial::Refused { code, .. }) => code,
        Err(other) => panic!("refused without a code: {other}"),
        Ok(events) => panic!("accepted as {events:?}"),
    };
    assert_eq!(code, wanted);
    assert_eq!(state, Some(before));
}

/// One call of every tool that works on an active goal, with its code when the goal is none.
fn calls() -> [(Step, &'static str); 7] {
    [
        (two_tasks(), "wrong_status"),
        (replan(json!([]), "r"), "preflight"),
        (update("a", json!({"status": "done"})), "no_active_goal"),
        (note("n", None), "no_active_goal"),
        (complete("ok"), "no_active_goal"),
        (block("which port?"), "no_active_goal"),
        (
            wait(WaitFor::Approval {
                what: "w".to_owned(),
            }),
            "no_active_goal",
        ),
    ]
}

#[test]
fn no_active_goal_wrong_status_and_preflight_in_every_other_status() {
    let paused = and(&working(), &[Person(GoalCommand::Interrupt)]);
    let cancelled = and(&working(), &[Person(GoalCommand::Cancel { reason: None })]);
    for given in [
        vec![setup(), Begins],
        vec![create(unjudged())],
        paused,
        cancelled,
    ] {
        for (call, code) in calls() {
            check_code(&given, &call, code);
        }
        check_code(&given, &distill(), "not_done");
    }
}

#[test]
fn wrong_run_once_the_turn_is_over() {
    let ended = and(&working(), &[Reports(worked()), Begins]);
    for (call, _) in calls() {
        check_code(&ended, &call, "wrong_run");
    }
}

#[test]
fn until_done_set_is_refused_with_goal_exists_once_a_contract_is_approved() {
    let draft = GoalCommand::Draft {
        contract: Box::new(contract()),
        contract_hash: "other".to_owned(),
    };
    for status in [
        working(),
        and(&working(), &[Person(GoalCommand::Interrupt)]),
    ] {
        check_code(&status, &Step::Agent(draft.clone()), "goal_exists");
        check_code(&status, &Person(draft.clone()), "goal_exists");
    }
}

#[test]
fn until_done_plan_is_made_once_and_its_phase_is_followed() {
    check(&working(), two_tasks(), "planned 2 tasks");
    let planned = and(&working(), &[two_tasks()]);
    let goal = after(&planned);
    let made = goal.journey.plan.unwrap();
    assert_eq!(made.current().map(|task| task.id.as_str()), Some("a"));
    assert_eq!(goal.journey.phase, TaskPhase::Red);
    // Reference D7: a second plan would replace finished work.
    check_code(&planned, &two_tasks(), "plan_exists");
}

/// Reference D7: the original takes circles, names given twice and finished work.
#[test]
fn until_done_plan_refuses_unknown_dep_cycle_duplicate_id_and_finished_work() {
    let on = |id: &str, other: &str| {
        task(json!({"id": id, "title": id, "phase": "red", "dependencies": [other]}))
    };
    let done = task(json!({"id": "a", "title": "a", "phase": "red", "status": "done"}));
    for (tasks, code) in [
        (vec![on("a", "gone")], "unknown_dep"),
        (vec![on("a", "b"), on("b", "a")], "cycle"),
        (vec![named("a"), named("a")], "duplicate_id"),
        (vec![done], "done_already"),
        (vec![], "empty_plan"),
    ] {
        check_code(&working(), &plan(&tasks), code);
    }
}

#[test]
fn until_done_replan_refuses_preflight_op_invalid_and_cycle() {
    let insert = json!([{"op": "insert", "task": {"id": "c", "title": "c", "phase": "red"}}]);
    check_code(
        &working(),
        &replan(insert.clone(), "no plan yet"),
        "preflight",
    );
    let planned = and(&working(), &[two_tasks()]);
    check_code(&planned, &replan(insert.clone(), "  "), "preflight");
    check_code(&planned, &replan(json!([]), "nothing to do"), "preflight");
    let circle = json!([{"op": "reorder", "taskId": "a", "dependencies": ["b"]}]);
    check_code(&planned, &replan(circle, "turn it round"), "cycle");
    let dangling = json!([{"op": "reorder", "taskId": "a", "dependencies": ["x"]}]);
    check_code(&planned, &replan(dangling, "r"), "unknown_dep");
    let moot = json!([{"op": "remove", "taskId": "x"}]);
    check_code(&planned, &replan(moot, "moot"), "op_invalid");
    check(
        &planned,
        replan(insert, "a new one surfaced"),
        "replanned: a new one surfaced",
    );
}

#[test]
fn until_done_replan_batch_with_one_illegal_operation_applies_none() {
    let planned = and(&working(), &[two_tasks()]);
    let batch = json!([
        {"op": "insert", "task": {"id": "c", "title": "c", "phase": "red"}},
        {"op": "remove", "taskId": "gone"},
    ]);
    check_code(&planned, &replan(batch, "one is wrong"), "op_invalid");
}

#[test]
fn until_done_replan_has_six_operations_and_each_is_logged_with_its_reason() {
    let planned = and(&working(), &[two_tasks()]);
    let new = |id: &str| json!({"id": id, "title": id, "phase": "red"});
    for (name, operation, order) in [
        (
            "insert",
            json!({"op": "insert", "task": new("c"), "insertAfter": "a"}),
            "a c b",
        ),
        ("remove", json!({"op": "remove", "taskId": "b"}), "a"),
        (
            "replace",
            json!({"op": "replace", "taskId": "b", "task": new("b")}),
            "a b",
        ),
        (
            "split",
            json!({"op": "split", "taskId": "a", "into": [new("c"), new("d")]}),
            "c d b",
        ),
        (
            "merge",
            json!({"op": "merge", "taskIds": ["a", "b"], "into": new("c")}),
            "c",
        ),
        (
            "reorder",
            json!({"op": "reorder", "taskId": "b", "dependencies": []}),
            "a b",
        ),
    ] {
        let goal = after(&and(&planned, &[replan(json!([operation]), name)]));
        let plan = goal.journey.plan.unwrap();
        let ids: Vec<&str> = plan.tasks().iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids.join(" "), order, "{name}");
        assert_eq!(plan.replan_log()[0].reason, name);
        assert_eq!(plan.replan_log()[0].at_ms, 10_000);
    }
}

pub(super) fn current(given: &[Step]) -> String {
    let plan = after(given).journey.plan.unwrap();
    plan.current()
        .map_or_else(String::new, |task| task.id.to_string())
}

#[test]
fn until_done_task_update_patches_one_task_and_moves_the_cursor() {
    let planned = and(&working(), &[two_tasks()]);
    let learnt = json!({"status": "done", "addLearning": "l", "addGotcha": "g"});
    check(&planned, update("a", learnt.clone()), "task a done");
    let given = and(&planned, &[update("a", learnt.clone())]);
    let goal = after(&given);
    assert_eq!(current(&given), "b");
    assert_eq!(goal.journey.phase, TaskPhase::Green);
    let plan = goal.journey.plan.unwrap();
    let task = plan.task(&id("a")).unwrap();
    assert_eq!(
        (task.learnings.join(""), task.gotchas.join("")),
        ("l".to_owned(), "g".to_owned())
    );
    // The call again does no harm, and finished work stays as it is.
    check(&given, update("a", json!({"status": "done"})), "nothing");
    check_code(
        &given,
        &update("a", json!({"status": "pending"})),
        "done_immutable",
    );
    check_code(&given, &update("gone", learnt), "not_found");
}

#[test]
fn until_done_progress_keeps_a_note_and_moves_the_phase() {
    for phase in [
        "analysis",
        "bootstrap",
        "red",
        "green",
        "refactor",
        "cleanup",
        "none",
    ] {
        let phase: TaskPhase = serde_json::from_value(json!(phase)).unwrap();
        let goal = after(&and(&working(), &[note("half way", Some(phase))]));
        assert_eq!(goal.journey.phase, phase);
        assert_eq!(goal.journey.notes[0].text, "half way");
        assert_eq!((goal.status, goal.spent.turns), (GoalStatus::Active, 0));
    }
    check_code(&working(), &note(" ", None), "bad_input");
    check_code(&working(), &note(&"x".repeat(5_000), None), "bad_input");
}

#[test]
fn until_done_complete_is_a_claim_that_checks_and_judge_decide() {
    check(
        &working(),
        complete("test result: ok"),
        "claims test result: ok",
    );
    check_code(&working(), &complete(""), "bad_input");
    let claimed = |contract: Contract| {
        let claim = [
            Begins,
            complete("all green"),
            Reports(worked()),
            Ends(committed("one")),
        ];
        and(&ready(contract), &claim)
    };
    check(
        &and(&claimed(contract()), &[Begins]),
        Reports(failed()),
        "not verified\nturn 1 VerifyFailed",
    );
    let judging = and(&claimed(contract()), &[Ends(passed()), Begins]);
    // What the specification calls judge_rejected: the reason opens the next turn.
    check(
        &judging,
        Reports(verdict(JudgeVerdict::Continue)),
        "judged\nturn 1 JudgeContinue",
    );
    let rejected = after(&and(&judging, &[Reports(verdict(JudgeVerdict::Continue))]));
    assert!(
        turn_prompt(&rejected).starts_with("Not done: the checks pass, but the judge says: so")
    );
    check(&judging, Reports(verdict(JudgeVerdict::Done)), "judged");
}

#[test]
fn until_done_block_asks_a_person_and_the_answer_opens_the_next_turn() {
    let asked = [
        Begins,
        block("which port?"),
        Reports(worked()),
        Ends(committed("one")),
        Begins,
    ];
    let given = and(&ready(unjudged()), &asked);
    check(
        &given,
        Reports(failed()),
        "not verified\nturn 1 VerifyFailed\nblocked: agent says which port? (nobody wrote it down)",
    );
    let blocked = and(
        &given,
        &[Reports(failed()), say("8080"), Person(GoalCommand::Resume)],
    );
    let prompt = turn_prompt(&after(&blocked));
    assert!(
        prompt.starts_with("The person who started this goal says:\n\n8080"),
        "{prompt}"
    );
}

#[test]
fn until_done_wait_refuses_what_cannot_come() {
    for until in [
        WaitFor::Time { at_ms: 9_999 },
        WaitFor::Process {
            pid: 1,
            started_ticks: 1,
        },
        WaitFor::Command {
            command: "true".to_owned(),
            every_ms: COMMAND_EVERY_MS_MIN - 1,
        },
    ] {
        check_code(&working(), &wait(until), "bad_wait");
    }
    let until = WaitFor::Time { at_ms: 10_001 };
    check(&working(), wait(until), "asks to wait");
}

#[test]
fn until_done_distill_is_for_a_done_goal_and_its_run() {
    check_code(&working(), &distill(), "not_done");
    let published = GoalOutcome::Published {
        commit: "commit-one".to_owned(),
    };
    let turn = [
        Begins,
        plan(&[named("a")]),
        update("a", json!({"status": "done"})),
        complete("ok"),
        Reports(worked()),
        Ends(committed("one")),
        Ends(passed()),
        Ends(published),
        Begins,
    ];
    let distilling = and(&ready(unjudged()), &turn);
    assert_eq!(after(&distilling).status, GoalStatus::Done);
    check(&distilling, distill(), "distilled # What was learnt");
    // The run that distils may do nothing else.
    check_code(&distilling, &complete("ok"), "no_active_goal");
    check_code(&distilling, &replan(json!([]), "r"), "preflight");
}

#[test]
fn northstar_has_no_way_to_change_after_approval() {
    let (goal, _) = reported(&working());
    let star = (goal.contract.clone(), goal.contract_hash.clone());
    let steps = [
        two_tasks(),
        replan(json!([{"op": "remove", "taskId": "b"}]), "moot"),
        note("n", Some(TaskPhase::Cleanup)),
        Person(GoalCommand::Person(PersonCommand::SetTurns { turns: 99 })),
        say("do something else instead"),
        Person(GoalCommand::Interrupt),
        Person(GoalCommand::Resume),
    ];
    let goal = after(&and(&working(), &steps));
    assert_eq!((goal.contract, goal.contract_hash), star);
    assert_eq!(
        (goal.budget.turns, goal.journey.phase),
        (99, TaskPhase::Cleanup)
    );
}
