//! Several machines work on one queue: the engine's own queue and workers, on a cluster.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::KernelTaskId;
use kapi_fleet::client::FleetSettings;
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::{Queue, WorkerSlot};
use kapi_task::record::store::KernelStore;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::command::{Admission, Capacity, Hold, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::denied::KernelDenial;
use kapi_task::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use kapi_task::rules::task::{AttemptReport, End, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};
use tempfile::TempDir;

use crate::cluster::{Cluster, settings};
use crate::proxy::Proxy;
use crate::support::pause;

/// The longest anything may take here.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A machine: a directory of its own, which nobody else sees.
pub(super) struct Machine {
    pub(super) dir: TempDir,
    pub(super) store: KernelStore,
}

impl Machine {
    pub(super) fn new(settings: FleetSettings) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            store: KernelStore::Fleet {
                settings,
                project: "shop".to_owned(),
            },
        }
    }

    pub(super) fn project(&self) -> Project<'static> {
        Project {
            disk: &RealDisk,
            clock: &SystemClock,
            layout: ProjectLayout::new(self.dir.path().to_path_buf()),
            owner: "test".to_owned(),
            home: None,
        }
    }
}

pub(super) fn request(key: &str) -> KernelRequest {
    KernelRequest {
        description: key.to_owned(),
        prompt: "Do it.".repeat(100),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 0,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: Some(RequestKey {
            text: key.to_owned(),
            ttl_ms: 3_600_000,
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

pub(super) fn submit(queue: &mut Queue<'_>, key: &str) -> KernelReply {
    let command = KernelCommand::Submit {
        request: Box::new(request(key)),
        admission: Admission {
            tasks_max: 1_000,
            overflow: Overflow::Queue,
            running_max: 10,
        },
    };
    let user = "user".to_owned();
    queue.submit(&Actor::Human { user }, &command).unwrap()
}

pub(super) fn capacity() -> Capacity {
    Capacity {
        project: 10,
        per_agent: BTreeMap::new(),
        usd_micros_per_day: None,
    }
}

pub(super) fn claim(queue: &mut Queue<'_>, own: &WorkerSlot, ttl_ms: u64) -> Option<Hold> {
    let claim = KernelCommand::Claim {
        holder: own.holder.clone(),
        ttl_ms,
        capacity: capacity(),
        only: None,
        reach: None,
    };
    match queue.submit(&Actor::Engine, &claim).unwrap() {
        KernelReply::Claimed(task, fence) => Some(Hold { task, fence }),
        KernelReply::Nothing => None,
        other => panic!("{other:?}"),
    }
}

pub(super) fn finish(queue: &mut Queue<'_>, hold: Hold) -> Result<KernelReply, KernelError> {
    let report = Box::new(AttemptReport::of(End::Completed));
    queue.submit(&Actor::Engine, &KernelCommand::Finish { hold, report })
}

#[test]
fn what_one_machine_submits_another_performs_and_both_know() {
    let cluster = Cluster::three();
    let (here, there) = (
        Machine::new(cluster.settings()),
        Machine::new(cluster.settings()),
    );
    let (asks, works) = (here.project(), there.project());
    let mut asking = Queue::open_in(&asks, &here.store).unwrap();
    let mut working = Queue::open_in(&works, &there.store).unwrap();
    let mut waker = working.waker().unwrap().unwrap();
    assert!(waker.wait(PATIENCE).unwrap());
    let KernelReply::Submitted(task) = submit(&mut asking, "one") else {
        panic!("it was to be let in");
    };
    assert!(waker.wait(PATIENCE).unwrap(), "it is told");
    assert_eq!(submit(&mut working, "one"), KernelReply::Duplicate(task));
    let own = working.enlist().unwrap();
    let other = asking.enlist().unwrap();
    assert_ne!(own.holder, other.holder);
    assert_eq!(own.number(), None);
    let hold = claim(&mut working, &own, 15_000).unwrap();
    assert_eq!(
        claim(&mut asking, &other, 15_000),
        None,
        "a task is claimed once"
    );
    working
        .submit(&Actor::Engine, &KernelCommand::Begin(hold))
        .unwrap();
    asking.refresh().unwrap();
    assert_eq!(asking.kernel().tasks[&task].state, KernelTaskState::Running);
    finish(&mut working, hold).unwrap();
    // Who leads is one of them.
    assert!(working.lead(&own, 15_000).unwrap());
    assert!(!asking.lead(&other, 15_000).unwrap());
    asking.refresh().unwrap();
    assert_eq!(
        asking.find(task).unwrap().unwrap().state,
        KernelTaskState::Completed
    );
    // A machine that comes later knows it from the log, the fold or the history.
    let late = Machine::new(cluster.settings());
    let project = late.project();
    let queue = Queue::open_in(&project, &late.store).unwrap();
    assert_eq!(
        queue.find(task).unwrap().unwrap().state,
        KernelTaskState::Completed
    );
    assert_eq!(queue.kernel().totals.completed, 1);
}

#[test]
fn a_worker_that_died_loses_its_task_by_time_and_cannot_write_any_more() {
    let cluster = Cluster::one();
    let machines = [
        Machine::new(cluster.settings()),
        Machine::new(cluster.settings()),
    ];
    let [first, second] = [machines[0].project(), machines[1].project()];
    let mut dead = Queue::open_in(&first, &machines[0].store).unwrap();
    let mut alive = Queue::open_in(&second, &machines[1].store).unwrap();
    submit(&mut dead, "one");
    let (own, other) = (dead.enlist().unwrap(), alive.enlist().unwrap());
    let claimed = Instant::now();
    let lost = claim(&mut dead, &own, 700).unwrap();
    dead.submit(&Actor::Engine, &KernelCommand::Begin(lost))
        .unwrap();
    assert_eq!(
        claim(&mut alive, &other, 15_000),
        None,
        "not before its time"
    );
    let began = Instant::now();
    let taken = loop {
        assert!(began.elapsed() < PATIENCE);
        alive.expire(&other).unwrap();
        if let Some(hold) = claim(&mut alive, &other, 15_000) {
            break hold;
        }
        pause();
    };
    assert!(
        claimed.elapsed() >= Duration::from_millis(700),
        "{:?}",
        claimed.elapsed()
    );
    assert!(taken.fence > lost.fence);
    let refused = finish(&mut dead, lost);
    assert!(
        matches!(
            refused,
            Err(KernelError::Denied(KernelDenial::Fenced { .. }))
        ),
        "{refused:?}"
    );
    alive
        .submit(&Actor::Engine, &KernelCommand::Begin(taken))
        .unwrap();
    finish(&mut alive, taken).unwrap();
}

#[test]
fn a_queue_is_worked_off_once_by_four_machines_while_a_server_is_killed() {
    const EACH: u64 = 10;
    const MACHINES: u64 = 4;
    let mut cluster = Cluster::three();
    let machines: Vec<Machine> = (0..MACHINES)
        .map(|_| Machine::new(cluster.settings()))
        .collect();
    let performed: Mutex<BTreeMap<KernelTaskId, u32>> = Mutex::new(BTreeMap::new());
    let perform = |task: &KernelTask, _: &LeaseHandle<'_>| {
        *performed.lock().unwrap().entry(task.id).or_default() += 1;
        AttemptReport::of(End::Completed)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = machines
            .iter()
            .enumerate()
            .map(|(number, machine)| {
                let perform = &perform;
                scope.spawn(move || machine_works(machine, number, (EACH, MACHINES), perform))
            })
            .collect();
        let began = Instant::now();
        while performed.lock().unwrap().len() < 8 {
            assert!(began.elapsed() < PATIENCE, "nothing is performed");
            pause();
        }
        cluster.wait_until_healthy();
        cluster.kill(0);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    let performed = performed.into_inner().unwrap();
    assert_eq!(performed.len() as u64, EACH * MACHINES);
    assert!(performed.values().all(|&n| n == 1), "{performed:?}");
    // Whoever looks afterwards, with one server gone, finds each of them.
    let late = Machine::new(cluster.settings());
    let project = late.project();
    let queue = Queue::open_in(&project, &late.store).unwrap();
    for task in performed.keys() {
        assert_eq!(
            queue.find(*task).unwrap().unwrap().state,
            KernelTaskState::Completed
        );
    }
    assert_eq!(queue.kernel().totals.completed, EACH * MACHINES);
}

/// Submits its own tasks and everybody's last one, and works until all have ended.
fn machine_works(
    machine: &Machine,
    number: usize,
    (each, machines): (u64, u64),
    perform: &(dyn Fn(&KernelTask, &LeaseHandle<'_>) -> AttemptReport + Sync),
) {
    let project = machine.project();
    let mut queue = Queue::open_in(&project, &machine.store).unwrap();
    for task in 0..each {
        submit(&mut queue, &format!("{number} {task}"));
        // What all ask for is one task.
        submit(&mut queue, &format!("0 {task}"));
    }
    let ring = || {};
    thread::scope(|scope| {
        let terms = WorkerTerms {
            slots: 2,
            capacity: capacity(),
            only: None,
            lease_ms: 60_000,
            perform,
            ring: &ring,
        };
        let mut worker = KernelWorker::new(scope, queue, terms).unwrap();
        let began = Instant::now();
        loop {
            worker.step(&|| true).unwrap();
            let totals = worker.queue().0.kernel().totals;
            if totals.completed == each * machines {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{totals:?}");
            pause();
        }
    });
}

#[test]
fn a_worker_that_is_cut_off_stops_and_another_takes_over() {
    let cluster = Cluster::one();
    let proxy = Proxy::to(cluster.ports()[0]);
    let mut far = settings(&[proxy.port]);
    // On a busy machine an answer may take a while also where nothing is cut.
    far.patience = Duration::from_secs(5);
    let (cut, free) = (Machine::new(far), Machine::new(cluster.settings()));
    let (first, second) = (cut.project(), free.project());
    let mut queue = Queue::open_in(&second, &free.store).unwrap();
    let KernelReply::Submitted(task) = submit(&mut queue, "one") else {
        panic!("it was to be let in");
    };
    let was_called_off = AtomicBool::new(false);
    let perform = |_: &KernelTask, handle: &LeaseHandle<'_>| {
        let began = Instant::now();
        while !handle.cancel().is_raised() {
            assert!(began.elapsed() < PATIENCE, "nobody called it off");
            pause();
        }
        was_called_off.store(true, Ordering::SeqCst);
        AttemptReport::of(End::Cancelled)
    };
    let ring = || {};
    thread::scope(|scope| {
        let terms = WorkerTerms {
            slots: 1,
            capacity: capacity(),
            only: None,
            lease_ms: 4_000,
            perform: &perform,
            ring: &ring,
        };
        let theirs = Queue::open_in(&first, &cut.store).unwrap();
        let mut worker = KernelWorker::new(scope, theirs, terms).unwrap();
        let began = Instant::now();
        while worker.n_jobs() == 0 {
            assert!(began.elapsed() < PATIENCE, "it is not claimed");
            worker.step(&|| true).unwrap();
            pause();
        }
        proxy.cut();
        let error = worker.step(&|| true).unwrap_err();
        assert!(matches!(error, KernelError::Fleet(_)), "{error:?}");
        let began = Instant::now();
        // Another has it once the time of its lease is over.
        let own = queue.enlist().unwrap();
        let hold = loop {
            assert!(began.elapsed() < PATIENCE);
            queue.expire(&own).unwrap();
            if let Some(hold) = claim(&mut queue, &own, 60_000) {
                break hold;
            }
            pause();
        };
        proxy.mend();
        // What the first one says now counts for nothing.
        let began = Instant::now();
        while worker.n_jobs() > 0 {
            assert!(began.elapsed() < PATIENCE);
            worker.step(&|| true).unwrap();
            pause();
        }
        queue
            .submit(&Actor::Engine, &KernelCommand::Begin(hold))
            .unwrap();
        finish(&mut queue, hold).unwrap();
    });
    assert!(was_called_off.load(Ordering::SeqCst));
    let ended = queue.find(task).unwrap().unwrap();
    assert_eq!(ended.state, KernelTaskState::Completed);
}
