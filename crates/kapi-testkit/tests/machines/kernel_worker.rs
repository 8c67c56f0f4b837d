//! Workers with real threads: cancel, a lease that was taken over, leaving, panics, one task only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_store::record::{Batch, NewRecord};
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::Disk;
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::LEASE_MS;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::command::{Admission, Capacity, Hold, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use kapi_task::rules::task::{AttemptReport, End, FailureKind, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};
use serde_json::value::RawValue;

use crate::support::{Fixture, ROOT};

/// The longest anything may take here.
const PATIENCE: Duration = Duration::from_secs(240);

/// Something that threads wait for.
#[derive(Default)]
pub(crate) struct Bell(Mutex<u64>, Condvar);

impl Bell {
    pub(crate) fn ring(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    /// Waits until it was rung more often than that, and returns how often it was.
    pub(crate) fn wait(&self, heard: u64) -> u64 {
        let woken = self.0.lock().unwrap();
        let waited = self
            .1
            .wait_timeout_while(woken, PATIENCE, |woken| *woken <= heard);
        let (woken, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "nobody rang");
        *woken
    }
}

pub(crate) fn project<'a>(disk: &'a dyn Disk, clock: &'a dyn Clock) -> Project<'a> {
    Project {
        disk,
        clock,
        layout: ProjectLayout::new(PathBuf::from(ROOT)),
        owner: "test".to_owned(),
        home: None,
    }
}

pub(crate) fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

pub(crate) fn request(number: u64) -> KernelRequest {
    KernelRequest {
        description: format!("Number {number}"),
        prompt: "Do it.".to_owned(),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 0,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: Some(RequestKey {
            text: format!("number {number}"),
            ttl_ms: 1,
        }),
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: TaskOrigin::Person {
            user: "user".to_owned(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

pub(crate) fn submit(queue: &mut Queue<'_>, number: u64) -> KernelTaskId {
    let command = KernelCommand::Submit {
        request: Box::new(request(number)),
        admission: Admission {
            tasks_max: 1_000,
            overflow: Overflow::Queue,
            running_max: 10,
        },
    };
    match queue.submit(&person(), &command).unwrap() {
        KernelReply::Submitted(task) => task,
        other => panic!("it was to be let in: {other:?}"),
    }
}

pub(crate) fn capacity() -> Capacity {
    Capacity {
        project: 10,
        per_agent: BTreeMap::new(),
        usd_micros_per_day: None,
    }
}

pub(crate) fn terms<'env>(
    perform: &'env (dyn Fn(&KernelTask, &LeaseHandle<'_>) -> AttemptReport + Sync),
    ring: &'env (dyn Fn() + Sync),
) -> WorkerTerms<'env> {
    WorkerTerms {
        slots: 2,
        capacity: capacity(),
        only: None,
        lease_ms: LEASE_MS,
        perform,
        ring,
    }
}

fn cancel(task: KernelTaskId) -> KernelCommand {
    let why = "not wanted".to_owned();
    KernelCommand::Cancel { task, why }
}

pub(crate) fn used(tokens: u64) -> Usage {
    Usage {
        input_tokens: tokens,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    }
}

/// Works until it is called off, as an agent does; reports what it used.
pub(crate) fn until_cancelled(handle: &LeaseHandle<'_>) -> AttemptReport {
    let started = Instant::now();
    while !handle.cancel().is_raised() {
        assert!(started.elapsed() < PATIENCE, "nobody called it off");
        thread::park_timeout(Duration::from_millis(2));
    }
    let mut report = AttemptReport::of(End::Cancelled);
    report.usage = used(5);
    report
}

/// Steps until that holds of the worker.
pub(crate) fn step_until(
    worker: &mut KernelWorker<'_, '_>,
    waker: &Bell,
    is_so: &dyn Fn(&mut KernelWorker<'_, '_>) -> bool,
) {
    let mut heard = 0;
    loop {
        worker.step(&|| true).unwrap();
        if is_so(worker) {
            return;
        }
        heard = waker.wait(heard);
    }
}

pub(crate) fn state(queue: &Queue<'_>, task: KernelTaskId) -> KernelTaskState {
    queue.find(task).unwrap().unwrap().state
}

#[test]
fn a_worker_performs_what_waits_and_records_what_came_of_it() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let tasks: Vec<KernelTaskId> = (0..5).map(|number| submit(&mut queue, number)).collect();
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |task: &KernelTask, handle: &LeaseHandle<'_>| {
        assert_eq!(
            task.lease.as_ref().map(|lease| lease.fence),
            Some(handle.hold().fence)
        );
        assert_eq!(task.state, KernelTaskState::Running);
        handle.used(used(3));
        AttemptReport {
            output: format!("{} done", task.request.description),
            usage: used(4),
            ..AttemptReport::of(End::Completed)
        }
    };
    thread::scope(|scope| {
        let mut worker = KernelWorker::new(scope, queue, terms(&perform, &ring)).unwrap();
        step_until(&mut worker, &waker, &|worker| {
            worker.n_jobs() == 0 && worker.queue().0.kernel().tasks.is_empty()
        });
    });
    let after = Queue::open(&project).unwrap();
    for (number, task) in tasks.into_iter().enumerate() {
        let task = after.find(task).unwrap().unwrap();
        assert_eq!((task.state, task.attempts), (KernelTaskState::Completed, 1));
        assert_eq!(task.usage, used(7));
        assert_eq!(task.report.unwrap().output, format!("Number {number} done"));
    }
}

#[test]
fn a_task_that_is_cancelled_while_it_runs_is_called_off_and_ends_so() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let task = submit(&mut queue, 0);
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |_: &KernelTask, handle: &LeaseHandle<'_>| until_cancelled(handle);
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &ring)).unwrap();
        assert_eq!(worker.step(&|| true).unwrap().claimed, [task]);
        queue.submit(&person(), &cancel(task)).unwrap();
        assert_eq!(state(&queue, task), KernelTaskState::Running);
        step_until(&mut worker, &waker, &|worker| worker.n_jobs() == 0);
    });
    queue.refresh().unwrap();
    let ended = queue.find(task).unwrap().unwrap();
    assert_eq!(
        (ended.state, ended.usage),
        (KernelTaskState::Cancelled, used(5))
    );
}

#[test]
fn a_panic_fails_its_task_and_nothing_else() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let (bad, good) = (submit(&mut queue, 0), submit(&mut queue, 1));
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |task: &KernelTask, _: &LeaseHandle<'_>| {
        assert!(task.id != bad, "this one is meant to panic");
        AttemptReport::of(End::Completed)
    };
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &ring)).unwrap();
        step_until(&mut worker, &waker, &|worker| {
            worker.n_jobs() == 0 && worker.queue().0.kernel().tasks.is_empty()
        });
    });
    queue.refresh().unwrap();
    assert_eq!(state(&queue, good), KernelTaskState::Completed);
    let report = queue.find(bad).unwrap().unwrap().report.unwrap();
    let End::Failed(failure) = report.end else {
        panic!("it panicked: {report:?}");
    };
    assert_eq!(failure.kind, FailureKind::NotLaunched);
}

#[test]
fn a_worker_that_is_there_for_one_task_leaves_the_others_alone() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let (first, wanted) = (submit(&mut queue, 0), submit(&mut queue, 1));
    let waker = Bell::default();
    let ring = || waker.ring();
    let perform = |_: &KernelTask, _: &LeaseHandle<'_>| AttemptReport::of(End::Completed);
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let terms = WorkerTerms {
            only: Some(wanted),
            ..terms(&perform, &ring)
        };
        let mut worker = KernelWorker::new(scope, own, terms).unwrap();
        step_until(&mut worker, &waker, &|worker| {
            !worker.queue().0.kernel().tasks.contains_key(&wanted)
        });
        assert_eq!(worker.step(&|| true).unwrap().claimed, []);
    });
    queue.refresh().unwrap();
    assert_eq!(state(&queue, first), KernelTaskState::Pending);
    assert_eq!(state(&queue, wanted), KernelTaskState::Completed);
}

#[test]
fn a_machine_without_room_gets_nothing() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let task = submit(&mut queue, 0);
    let perform = |_: &KernelTask, _: &LeaseHandle<'_>| AttemptReport::of(End::Completed);
    thread::scope(|scope| {
        let own = Queue::open(&project).unwrap();
        let mut worker = KernelWorker::new(scope, own, terms(&perform, &|| {})).unwrap();
        assert_eq!(worker.step(&|| false).unwrap().claimed, []);
    });
    assert_eq!(state(&queue, task), KernelTaskState::Pending);
}

#[test]
fn a_refusal_writes_not_one_byte() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let task = submit(&mut queue, 0);
    let before = (fixture.disk.snapshot(), fixture.disk.ops());
    let stranger = Actor::Agent {
        run: "r9".to_owned(),
    };
    let never = Hold {
        task,
        fence: kapi_core::task_id::Fence(9),
    };
    for (actor, command) in [
        (stranger.clone(), cancel(task)),
        (stranger, KernelCommand::Begin(never)),
        (Actor::Engine, KernelCommand::Begin(never)),
        (person(), cancel(KernelTaskId::new(9))),
    ] {
        let refused = queue.submit(&actor, &command);
        assert!(
            matches!(refused, Err(KernelError::Denied(_))),
            "{refused:?}"
        );
        assert_eq!((fixture.disk.snapshot(), fixture.disk.ops()), before);
    }
}

/// Records what only a newer program understands, as such a program does.
fn record_something_newer(project: &Project<'_>) {
    let stream = LogStream {
        disk: project.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: project.layout.root().to_path_buf(),
    };
    let mut cursor = stream.load().unwrap().cursor;
    let lock = stream.lock("newer", 1_000).unwrap();
    let newer = NewRecord {
        kind: "task_teleported".to_owned(),
        data: RawValue::from_string("{}".to_owned()).unwrap(),
    };
    let batch = Batch {
        actor: &Actor::Engine,
        at_ms: 0,
        payloads: vec![newer],
    };
    stream.append(&lock, &mut cursor, &batch).unwrap();
}

#[test]
fn what_is_not_understood_is_not_passed_by() {
    let fixture = Fixture::new();
    let project = project(&fixture.disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    let task = submit(&mut queue, 0);
    record_something_newer(&project);
    let before = fixture.disk.snapshot();
    for _ in 0..3 {
        let refused = queue.submit(&person(), &cancel(task));
        assert!(
            matches!(refused, Err(KernelError::UnknownEvent { .. })),
            "{refused:?}"
        );
        assert!(queue.refresh().is_err(), "it is read again");
    }
    assert_eq!(fixture.disk.snapshot(), before, "nothing was decided");
}
