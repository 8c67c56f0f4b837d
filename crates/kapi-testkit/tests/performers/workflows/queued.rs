//! The kernel's part in these tests: the project's real queue, and a worker that drives the goal of the
//! task it claims, as a performer does where the workflow has a log of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::mode::Mode;
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::watch::EffectWatch;
use kapi_task::record::admission::TaskAdmission;
use kapi_task::record::admission::goal::GoalAsk;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::record::terms::KernelTerms;
use kapi_task::rules::command::{Hold, KernelCommand};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::policy::Policy;
use kapi_task::rules::task::{AttemptFailure, AttemptReport, End, FailureKind};
use kapi_task::rules::task_terms::Priority;
use kapi_workflow::perform::drive::{Driven, drive};
use kapi_workflow::perform::{GoalTaskOutcome, GoalTaskPlan, NotTasked};

use super::WorkflowRig;

/// Has a goal driven as a task, by this thread alone.
pub(super) fn as_task(
    rig: &WorkflowRig,
    asked: &GoalTaskPlan<'_>,
    watch: &EffectWatch<'_>,
) -> Result<GoalTaskOutcome, NotTasked> {
    let mut queue = Queue::open(&rig.project).unwrap();
    let terms = KernelTerms::standard(PathBuf::from("guardrails"));
    let task = submit(&mut queue, &terms, asked);
    let found = queue.find(task).unwrap().unwrap();
    if found.state.is_ended() {
        return Ok(GoalTaskOutcome::Ended(Box::new(found)));
    }
    let own = queue.enlist().unwrap();
    let claim = KernelCommand::Claim {
        holder: own.holder.clone(),
        ttl_ms: LEASE_MS,
        capacity: terms.capacity(),
        only: Some(task),
        reach: queue.reach(),
    };
    let KernelReply::Claimed(_, fence) = queue.submit(&Actor::Engine, &claim).unwrap() else {
        panic!("{task} was to be had");
    };
    let hold = Hold { task, fence };
    queue
        .submit(&Actor::Engine, &KernelCommand::Begin(hold))
        .unwrap();
    let world = rig.world(&asked.goal.id);
    let (goal, of_plan) = (&asked.goal.id, &asked.work.task);
    let done = match drive(&rig.project, &world, goal, of_plan, watch)? {
        Driven::Rests(goal) => finish(hold, &goal),
        Driven::LetGo => KernelCommand::GiveBack {
            hold,
            why: "it was called off".to_owned(),
            usage: Usage::default(),
            pause_ms: 0,
        },
    };
    queue.submit(&Actor::Engine, &done).unwrap();
    let task = queue.find(task).unwrap().unwrap();
    Ok(if task.state.is_ended() {
        GoalTaskOutcome::Ended(Box::new(task))
    } else {
        GoalTaskOutcome::LetGo
    })
}

fn submit(queue: &mut Queue<'_>, terms: &KernelTerms, asked: &GoalTaskPlan<'_>) -> KernelTaskId {
    let admission = TaskAdmission {
        policy: &Policy::default(),
        local_times: &BTreeMap::new(),
        terms,
        is_unattended: true,
        base: &|_| Ok(None),
    };
    let ask = GoalAsk {
        title: &asked.work.title,
        contract: &asked.goal.contract,
        agent: "script",
        drive: GoalDrive {
            mode: Mode::Ralph,
            workflow: kapi_core::id::GoalId::parse("900-demo").unwrap(),
            task: asked.work.task.clone(),
            effect: asked.effect.clone(),
            goal: asked.goal.id.clone(),
            location: None,
        },
        user: "user",
        priority: Priority::Normal,
    };
    match admission.submit_goal(queue, ask).unwrap() {
        KernelReply::Submitted(task) | KernelReply::Duplicate(task) => task,
        other => panic!("it was to be let in: {other:?}"),
    }
}

fn finish(hold: Hold, goal: &Goal) -> KernelCommand {
    let end = if goal.status == GoalStatus::Done {
        End::Completed
    } else {
        End::Failed(AttemptFailure {
            kind: FailureKind::GoalRests,
            message: "It rests.".to_owned(),
            hint: None,
            exit_code: None,
        })
    };
    let report = Box::new(AttemptReport::of(end));
    KernelCommand::Finish { hold, report }
}
