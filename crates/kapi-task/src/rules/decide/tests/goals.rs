//! Tasks that drive a workflow's goal: who may ask for them, who gets them, and the same asked again.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_core::task_id::TaskId;
use kapi_goal::rules::plan;

use crate::rules::command::Command;
use crate::rules::decide::Answer;
use crate::rules::decide::tests::{
    Desk, LEASE_MS, agent, by_person, cancel, definition, failed, holder, person, places, request,
    run_of, word,
};
use crate::rules::goal_drive::GoalDrive;
use crate::rules::loop_run::Trigger;
use crate::rules::request::{Key, Request};
use crate::rules::task::{End, FailureKind};
use crate::rules::task_state::State;

const HERE: &str = "here:/project";

fn drive(task: &str, place: Option<&str>) -> Request {
    let effect = EffectId::new(1, &format!("work-{task}"), 1);
    let text = format!("workflow 002-fix-login {effect}");
    let goal = GoalDrive {
        mode: Mode::Ralph,
        workflow: GoalId::parse("002-fix-login").unwrap(),
        task: plan::task::TaskId::parse(task).unwrap(),
        effect,
        goal: GoalId::parse("003-the-word").unwrap(),
        place: place.map(str::to_owned),
    };
    Request {
        key: Some(Key {
            text,
            ttl_ms: 1_000,
        }),
        goal: Some(Box::new(goal)),
        ..request(by_person("user"))
    }
}

fn ask(desk: &mut Desk, request: Request) -> Answer {
    desk.try_submit(&Actor::Engine, request).unwrap()
}

fn submit(desk: &mut Desk, request: Request) -> TaskId {
    let answer = ask(desk, request);
    let Answer::Submitted(task) = answer else {
        panic!("it was to be let in: {answer:?}");
    };
    task
}

/// Claims from a place.
fn claim(desk: &mut Desk, reach: Option<&str>) -> Answer {
    let command = Command::Claim {
        holder: holder("one"),
        ttl_ms: LEASE_MS,
        capacity: desk.capacity.clone(),
        only: None,
        reach: reach.map(str::to_owned),
    };
    desk.engine(&command).unwrap()
}

#[test]
fn only_the_engine_has_a_workflows_goal_driven() {
    let mut desk = Desk::new();
    for actor in [person(), agent("r1")] {
        let denied = desk.try_submit(&actor, drive("T-001", None)).unwrap_err();
        assert_eq!(word(&denied), "OnlyEngine");
    }
    assert!(desk.log.is_empty());
    submit(&mut desk, drive("T-001", None));
}

#[test]
fn a_loops_run_drives_no_goal() {
    let trigger = Trigger::Manual { source: None };
    let both = Request {
        goal: drive("T-001", None).goal,
        ..run_of(definition("nightly"), trigger)
    };
    let denied = Desk::new().try_submit(&Actor::Engine, both).unwrap_err();
    assert_eq!(word(&denied), "BadRequest");
}

#[test]
fn the_same_effect_finds_its_task_until_that_came_to_a_bad_end() {
    let mut desk = Desk::new();
    let first = submit(&mut desk, drive("T-001", None));
    // However long it waits for a worker.
    desk.now_ms += 1_000_000;
    assert_eq!(
        ask(&mut desk, drive("T-001", None)),
        Answer::Duplicate(first)
    );
    let hold = desk.start("one");
    assert_eq!(
        ask(&mut desk, drive("T-001", None)),
        Answer::Duplicate(first)
    );
    // The driver dies, and so does the worker: the work goes on under the same task.
    desk.expire(&["one"]);
    assert_eq!(desk.state(first), State::Pending);
    assert_eq!(
        ask(&mut desk, drive("T-001", None)),
        Answer::Duplicate(first)
    );
    assert_eq!(
        word(&desk.finish(hold, End::Completed).unwrap_err()),
        "Fenced"
    );
    let again = desk.start("two");
    assert_eq!(again.task, first);
    desk.finish(again, failed(FailureKind::GoalRests)).unwrap();
    assert_eq!(desk.state(first), State::Failed, "it is not tried again");
    let second = submit(&mut desk, drive("T-001", None));
    assert_ne!(second, first);
    desk.ask(&person(), &cancel(second)).unwrap();
    assert_ne!(submit(&mut desk, drive("T-001", None)), second);
}

#[test]
fn whoever_does_not_reach_the_goal_never_gets_it() {
    let mut desk = Desk::new();
    let there = submit(&mut desk, drive("T-001", Some("there:/project")));
    let here = submit(&mut desk, drive("T-002", Some(HERE)));
    let anywhere = submit(&mut desk, drive("T-003", None));
    let mut claimed = Vec::new();
    while let Answer::Claimed(task, _) = claim(&mut desk, Some(HERE)) {
        claimed.push(task);
    }
    assert_eq!(claimed, [here, anywhere]);
    assert_eq!(claim(&mut desk, None), Answer::Nothing);
    assert_eq!(desk.state(there), State::Pending);
    let claimed = claim(&mut desk, Some("there:/project"));
    assert!(matches!(claimed, Answer::Claimed(task, _) if task == there));
}

#[test]
fn what_finds_every_place_taken_waits_for_one() {
    let mut desk = Desk::new();
    desk.capacity = places(1);
    let tasks = ["T-001", "T-002"].map(|task| submit(&mut desk, drive(task, None)));
    let hold = desk.start("one");
    assert_eq!(hold.task, tasks[0]);
    assert_eq!(desk.claim("two"), None);
    desk.finish(hold, End::Completed).unwrap();
    assert_eq!(desk.start("two").task, tasks[1]);
}
