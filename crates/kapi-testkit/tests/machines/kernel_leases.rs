//! What a worker has to give back: its lease was taken over, it leaves, or it cannot perform at present.

use std::thread;

use kapi_core::actor::Actor;
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::record::worker::{KernelWorker, LeaseHandle};
use kapi_task::rules::command::{Hold, KernelCommand};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::denied::KernelDenial;
use kapi_task::rules::task::{AttemptReport, End, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;

use crate::kernel_worker::{
    Bell, capacity, project, state, step_until, submit, terms, until_cancelled, used,
};
use crate::support::Fixture;

#[test]
fn what_cannot_be_done_here_at_present_goes_back_with_the_reason_and_rests() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let task = submit(&mut queue, 0);
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |_: &KernelTask, handle: &LeaseHandle<'_>| {
        handle.put_back("commit 1 is not here".to_owned());
        AttemptReport::of(End::Cancelled)
    };
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &ring)).unwrap();
        step_until(&mut worker, &waker, &|worker| {
            let task = &worker.queue().0.kernel().tasks[&task];
            task.retry_cause.is_some() && task.lease.is_none()
        });
    });
    queue.refresh().unwrap();
    let waits = &queue.kernel().tasks[&task];
    assert_eq!(waits.retry_cause.as_deref(), Some("commit 1 is not here"));
    assert_eq!(
        (waits.state, waits.attempts, waits.losses, waits.retries),
        (KernelTaskState::Pending, 1, 0, 0)
    );
    assert!(
        waits.not_before_ms >= project.clock.now_ms() + 4_000,
        "it rests"
    );
}

#[test]
fn nothing_of_a_worker_counts_once_its_lease_was_taken_over() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut other = Queue::open(&project).unwrap();
    let task = submit(&mut other, 0);
    let waker = Bell::default();
    let ring = || waker.ring();
    let go_on = Bell::default();
    // The agent comes to its end without noticing that nobody waits for it any more.
    let perform = |_: &KernelTask, handle: &LeaseHandle<'_>| {
        handle.used(used(1_000));
        go_on.wait(0);
        AttemptReport {
            output: "late".to_owned(),
            usage: used(1_000),
            ..AttemptReport::of(End::Completed)
        }
    };
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &ring)).unwrap();
        assert_eq!(worker.step(&|| true).unwrap().claimed, [task]);
        // Meanwhile the process stands still, and is taken for lost.
        let late = worker.queue().0.kernel().tasks[&task]
            .lease
            .clone()
            .unwrap();
        let expire = KernelCommand::Expire {
            gone: [late.holder.clone()].into(),
        };
        other.submit(&Actor::Engine, &expire).unwrap();
        let enlisted = other.enlist().unwrap();
        let hold = claim(&mut other, &enlisted.holder).unwrap();
        assert!(hold.fence > late.fence);
        other
            .submit(&Actor::Engine, &KernelCommand::Begin(hold))
            .unwrap();
        let before = fixture.disk.snapshot();
        go_on.ring();
        step_until(&mut worker, &waker, &|worker| worker.n_jobs() == 0);
        assert_eq!(
            fixture.disk.snapshot(),
            before,
            "something of it was recorded"
        );
        let finish = KernelCommand::Finish {
            hold: Hold {
                task,
                fence: late.fence,
            },
            report: Box::new(AttemptReport::of(End::Completed)),
        };
        let refused = other.submit(&Actor::Engine, &finish);
        assert!(
            matches!(
                refused,
                Err(KernelError::Denied(KernelDenial::Fenced { .. }))
            ),
            "{refused:?}"
        );
        let report = Box::new(AttemptReport::of(End::Completed));
        other
            .submit(&Actor::Engine, &KernelCommand::Finish { hold, report })
            .unwrap();
    });
    let ended = other.find(task).unwrap().unwrap();
    assert_eq!(
        (ended.state, ended.usage),
        (KernelTaskState::Completed, Usage::default())
    );
    assert_eq!(ended.report.unwrap().output, "");
}

fn claim(queue: &mut Queue<'_>, holder: &kapi_core::task_id::Holder) -> Option<Hold> {
    let claim = KernelCommand::Claim {
        holder: holder.clone(),
        ttl_ms: LEASE_MS,
        capacity: capacity(),
        only: None,
        reach: None,
    };
    match queue.submit(&Actor::Engine, &claim).unwrap() {
        KernelReply::Claimed(task, fence) => Some(Hold { task, fence }),
        _ => None,
    }
}

#[test]
fn a_worker_that_leaves_gives_back_what_it_has_and_takes_nothing_more() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let tasks: Vec<KernelTaskId> = (0..3).map(|number| submit(&mut queue, number)).collect();
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |_: &KernelTask, handle: &LeaseHandle<'_>| until_cancelled(handle);
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &ring)).unwrap();
        assert_eq!(worker.step(&|| true).unwrap().claimed, tasks[..2]);
        worker.leave();
        step_until(&mut worker, &waker, &|worker| worker.n_jobs() == 0);
    });
    queue.refresh().unwrap();
    for task in &tasks {
        assert_eq!(state(&queue, *task), KernelTaskState::Pending);
    }
    let first = &queue.kernel().tasks[&tasks[0]];
    assert_eq!((first.attempts, first.losses, first.usage), (1, 0, used(5)));
    assert_eq!(first.retry_cause.as_deref(), Some("its worker was stopped"));
}
