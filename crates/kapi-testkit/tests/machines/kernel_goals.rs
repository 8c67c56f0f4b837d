//! The drive of a workflow's goal as a task: through the door, asked again after crashes, worked on
//! once at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::mode::Mode;
use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::plan;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::admission::TaskAdmission;
use kapi_task::record::admission::goal::GoalAsk;
use kapi_task::record::error::KernelError;
use kapi_task::record::policy_file;
use kapi_task::record::policy_file::PolicyPaths;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::record::terms::KernelTerms;
use kapi_task::rules::command::{Hold, KernelCommand};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::goal_drive::GoalDrive;
use kapi_task::rules::policy::Policy;
use kapi_task::rules::task::{AttemptReport, End};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::Priority;

use crate::kernel_worker::{capacity, project};
use crate::support::{self, Fixture};

fn contract() -> Contract {
    Contract {
        verify: vec!["sh test.sh".to_owned()],
        network: NetworkMode::Filtered,
        sandbox: SandboxLevel::Native,
        ..support::contract()
    }
}

fn ask<'a>(contract: &'a Contract, task: &str) -> GoalAsk<'a> {
    GoalAsk {
        title: "the word",
        contract,
        agent: "claude",
        drive: GoalDrive {
            mode: Mode::Ralph,
            workflow: GoalId::parse("002-greet").unwrap(),
            task: plan::task::PlanTaskId::parse(task).unwrap(),
            effect: EffectId::new(1, &format!("work-{task}"), 1),
            goal: GoalId::parse("003-the-word").unwrap(),
            location: None,
        },
        user: "user",
        priority: Priority::Normal,
    }
}

fn submit(
    queue: &mut Queue<'_>,
    policy: &Policy,
    ask: GoalAsk<'_>,
) -> Result<KernelReply, KernelError> {
    let (terms, local_times) = (
        KernelTerms::standard(PathBuf::from("guardrails")),
        BTreeMap::new(),
    );
    let admission = TaskAdmission {
        policy,
        local_times: &local_times,
        terms: &terms,
        is_unattended: true,
        base: &|_| Err("nothing of a goal travels".to_owned()),
    };
    admission.submit_goal(queue, ask)
}

fn claim(queue: &mut Queue<'_>, holder: &Holder) -> Option<Hold> {
    let claim = KernelCommand::Claim {
        holder: holder.clone(),
        ttl_ms: LEASE_MS,
        capacity: capacity(),
        only: None,
        reach: queue.reach(),
    };
    match queue.submit(&Actor::Engine, &claim).unwrap() {
        KernelReply::Claimed(task, fence) => Some(Hold { task, fence }),
        _ => None,
    }
}

fn state(queue: &Queue<'_>, task: KernelTaskId) -> KernelTaskState {
    queue.find(task).unwrap().unwrap().state
}

#[test]
fn whoever_dies_when_the_same_task_goes_on() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let (policy, contract) = (Policy::default(), contract());
    let submitted = {
        // A driver submits and dies before it claims.
        let mut queue = Queue::open(&project).unwrap();
        submit(&mut queue, &policy, ask(&contract, "T-001")).unwrap()
    };
    let KernelReply::Submitted(task) = submitted else {
        panic!("it was to be let in: {submitted:?}");
    };
    let mut queue = Queue::open(&project).unwrap();
    {
        // The next one finds its task, begins it, and dies too.
        let again = submit(&mut queue, &policy, ask(&contract, "T-001")).unwrap();
        assert_eq!(again, KernelReply::Duplicate(task));
        let own = queue.enlist().unwrap();
        let hold = claim(&mut queue, &own.holder).unwrap();
        assert_eq!(hold.task, task);
        queue
            .submit(&Actor::Engine, &KernelCommand::Begin(hold))
            .unwrap();
        let mut up = Queue::open(&project).unwrap();
        let other = up.enlist().unwrap();
        assert_eq!(claim(&mut up, &other.holder), None, "it lives still");
    }
    let mut up = Queue::open(&project).unwrap();
    let own = up.enlist().unwrap();
    let hold = claim(&mut up, &own.holder).unwrap();
    assert_eq!(hold.task, task);
    up.submit(&Actor::Engine, &KernelCommand::Begin(hold))
        .unwrap();
    let report = Box::new(AttemptReport::of(End::Completed));
    up.submit(&Actor::Engine, &KernelCommand::Finish { hold, report })
        .unwrap();
    // Whoever repeats the effect long after finds what came of it.
    queue.refresh().unwrap();
    let found = submit(&mut queue, &policy, ask(&contract, "T-001")).unwrap();
    assert_eq!(found, KernelReply::Duplicate(task));
    assert_eq!(state(&queue, task), KernelTaskState::Completed);
    let other = submit(&mut queue, &policy, ask(&contract, "T-002")).unwrap();
    assert!(matches!(other, KernelReply::Submitted(new) if new != task));
}

#[test]
fn a_request_says_what_the_contract_says() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let contract = contract();
    submit(&mut queue, &Policy::default(), ask(&contract, "T-001")).unwrap();
    let task = queue.kernel().tasks.values().next().unwrap();
    let request = &task.request;
    assert_eq!(request.description, "T-001 of 002-greet: the word");
    assert_eq!(request.prompt, contract.intent);
    assert_eq!(request.agent, "claude");
    assert_eq!(request.backend.as_ref(), Some(&contract.agent));
    assert_eq!(request.verify, contract.verify);
    assert_eq!(request.budget.tokens, contract.budget.tokens);
    assert_eq!(task.goal_drive().unwrap().location, None);
}

#[test]
fn what_the_policy_forbids_or_nothing_can_hold_is_refused() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let contract = contract();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".ilchul")).unwrap();
    let rule =
        |when: &str| format!("rules:\n  - name: rule\n    effect: deny\n    when:\n      {when}\n");
    let mut check = |when: &str, expected: Option<&str>| {
        let file = dir.path().join(".ilchul/policy.yaml");
        RealDisk.write(&file, rule(when).as_bytes()).unwrap();
        let policy = policy_file::load(PolicyPaths {
            project: dir.path(),
            person: dir.path(),
        });
        let asked = submit(&mut queue, &policy, ask(&contract, "T-001"));
        match (asked, expected) {
            (Err(KernelError::Policy(decision)), Some(words)) => {
                let said: Vec<String> = decision
                    .violations
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                assert!(said.join("; ").contains(words), "{when}: {said:?}");
                assert_eq!(queue.kernel().last_task, 0, "{when}: nothing was recorded");
            }
            (Ok(KernelReply::Submitted(_)), None) => {}
            (asked, _) => panic!("{when}: {asked:?}"),
        }
    };
    check("agent: claude", Some("rule"));
    check("command: sh test.sh", Some("command denied"));
    check("command: git push", Some("cannot enforce it"));
    check("path: secrets/**", Some("cannot enforce it"));
    check("network: filtered", Some("network denied"));
    check("agent: codex", None);
}
