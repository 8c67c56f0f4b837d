//! Tasks that drive a workflow's goal: who may ask for them, who gets them, and the same asked again.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_core::task_id::KernelTaskId;
use kapi_goal::rules::plan;

use crate::rules::command::KernelCommand;
use crate::rules::decide::KernelReply;
use crate::rules::decide::tests::{
    LEASE_MS, TestKernel, agent, by_person, cancel, definition, failed, holder, locations, person,
    request, run_of, word,
};
use crate::rules::goal_drive::GoalDrive;
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::{KernelRequest, RequestKey};
use crate::rules::task::{End, FailureKind};
use crate::rules::task_state::KernelTaskState;

const HERE: &str = "here:/project";

fn drive(task: &str, location: Option<&str>) -> KernelRequest {
    let effect = EffectId::new(1, &format!("work-{task}"), 1);
    let text = format!("workflow 002-fix-login {effect}");
    let goal = GoalDrive {
        mode: Mode::Ralph,
        workflow: GoalId::parse("002-fix-login").unwrap(),
        task: plan::task::PlanTaskId::parse(task).unwrap(),
        effect,
        goal: GoalId::parse("003-the-word").unwrap(),
        location: location.map(str::to_owned),
    };
    KernelRequest {
        key: Some(RequestKey {
            text,
            ttl_ms: 1_000,
        }),
        goal: Some(Box::new(goal)),
        ..request(by_person("user"))
    }
}

fn ask(test_kernel: &mut TestKernel, request: KernelRequest) -> KernelReply {
    test_kernel.try_submit(&Actor::Engine, request).unwrap()
}

fn submit(test_kernel: &mut TestKernel, request: KernelRequest) -> KernelTaskId {
    let answer = ask(test_kernel, request);
    let KernelReply::Submitted(task) = answer else {
        panic!("it was to be let in: {answer:?}");
    };
    task
}

/// Claims from a place.
fn claim(test_kernel: &mut TestKernel, reach: Option<&str>) -> KernelReply {
    let command = KernelCommand::Claim {
        holder: holder("one"),
        ttl_ms: LEASE_MS,
        capacity: test_kernel.capacity.clone(),
        only: None,
        reach: reach.map(str::to_owned),
    };
    test_kernel.engine(&command).unwrap()
}

#[test]
fn only_the_engine_has_a_workflows_goal_driven() {
    let mut test_kernel = TestKernel::new();
    for actor in [person(), agent("r1")] {
        let denied = test_kernel
            .try_submit(&actor, drive("T-001", None))
            .unwrap_err();
        assert_eq!(word(&denied), "OnlyEngine");
    }
    assert!(test_kernel.log.is_empty());
    submit(&mut test_kernel, drive("T-001", None));
}

#[test]
fn a_loops_run_drives_no_goal() {
    let trigger = RunTrigger::Manual { source: None };
    let both = KernelRequest {
        goal: drive("T-001", None).goal,
        ..run_of(definition("nightly"), trigger)
    };
    let denied = TestKernel::new()
        .try_submit(&Actor::Engine, both)
        .unwrap_err();
    assert_eq!(word(&denied), "BadRequest");
}

#[test]
fn the_same_effect_finds_its_task_until_that_came_to_a_bad_end() {
    let mut test_kernel = TestKernel::new();
    let first = submit(&mut test_kernel, drive("T-001", None));
    // However long it waits for a worker.
    test_kernel.now_ms += 1_000_000;
    assert_eq!(
        ask(&mut test_kernel, drive("T-001", None)),
        KernelReply::Duplicate(first)
    );
    let hold = test_kernel.start("one");
    assert_eq!(
        ask(&mut test_kernel, drive("T-001", None)),
        KernelReply::Duplicate(first)
    );
    // The driver dies, and so does the worker: the work goes on under the same task.
    test_kernel.expire(&["one"]);
    assert_eq!(test_kernel.state(first), KernelTaskState::Pending);
    assert_eq!(
        ask(&mut test_kernel, drive("T-001", None)),
        KernelReply::Duplicate(first)
    );
    assert_eq!(
        word(&test_kernel.finish(hold, End::Completed).unwrap_err()),
        "Fenced"
    );
    let again = test_kernel.start("two");
    assert_eq!(again.task, first);
    test_kernel
        .finish(again, failed(FailureKind::GoalRests))
        .unwrap();
    assert_eq!(
        test_kernel.state(first),
        KernelTaskState::Failed,
        "it is not tried again"
    );
    let second = submit(&mut test_kernel, drive("T-001", None));
    assert_ne!(second, first);
    test_kernel.ask(&person(), &cancel(second)).unwrap();
    assert_ne!(submit(&mut test_kernel, drive("T-001", None)), second);
}

#[test]
fn whoever_does_not_reach_the_goal_never_gets_it() {
    let mut test_kernel = TestKernel::new();
    let there = submit(&mut test_kernel, drive("T-001", Some("there:/project")));
    let here = submit(&mut test_kernel, drive("T-002", Some(HERE)));
    let anywhere = submit(&mut test_kernel, drive("T-003", None));
    let mut claimed = Vec::new();
    while let KernelReply::Claimed(task, _) = claim(&mut test_kernel, Some(HERE)) {
        claimed.push(task);
    }
    assert_eq!(claimed, [here, anywhere]);
    assert_eq!(claim(&mut test_kernel, None), KernelReply::Nothing);
    assert_eq!(test_kernel.state(there), KernelTaskState::Pending);
    let claimed = claim(&mut test_kernel, Some("there:/project"));
    assert!(matches!(claimed, KernelReply::Claimed(task, _) if task == there));
}

#[test]
fn what_finds_every_place_taken_waits_for_one() {
    let mut test_kernel = TestKernel::new();
    test_kernel.capacity = locations(1);
    let tasks = ["T-001", "T-002"].map(|task| submit(&mut test_kernel, drive(task, None)));
    let hold = test_kernel.start("one");
    assert_eq!(hold.task, tasks[0]);
    assert_eq!(test_kernel.claim("two"), None);
    test_kernel.finish(hold, End::Completed).unwrap();
    assert_eq!(test_kernel.start("two").task, tasks[1]);
}
