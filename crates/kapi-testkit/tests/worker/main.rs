//! A process that submits tasks and works on whatever is there, for tests that need several and
//! kill some.
//!
//! `kapi-testkit-worker ROOT NAME NUMBER PROCESSES TASKS [CLUSTER]`: of the tasks of all processes it submits
//! each whose number is its own modulo the processes, and works until all have ended. What it was
//! told and what it performed goes to `ROOT/said` and `ROOT/did`, one line each.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a tool of tests that fails with them"
)]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{env, thread};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_task::record::queue::Queue;
use kapi_task::record::store::KernelStore;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::command::{Admission, Capacity, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use kapi_task::rules::task::{AttemptReport, End, KernelTask};
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};

/// Tasks performed at once.
const SLOTS: usize = 2;
/// Tasks submitted between two steps.
const SUBMITS: usize = 2;
/// How long to wait for a ring at most.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a cluster is asked: one of its servers may be killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// A key outlives every storm.
const KEY_MS: u64 = 24 * 60 * 60 * 1_000;

struct Plan {
    root: PathBuf,
    name: String,
    own: Vec<u64>,
    n_tasks: u64,
    store: KernelStore,
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |idx: usize| args.get(idx).unwrap().parse::<u64>().unwrap();
    let (own, processes, n_tasks) = (number(3), number(4), number(5));
    let plan = Plan {
        root: PathBuf::from(args.get(1).unwrap()),
        name: args.get(2).unwrap().clone(),
        own: (0..n_tasks)
            .filter(|task| task % processes == own)
            .collect(),
        n_tasks,
        store: args
            .get(6)
            .map_or(KernelStore::Files, |address| cluster(address)),
    };
    work(&plan);
}

fn cluster(address: &str) -> KernelStore {
    KernelStore::Fleet {
        settings: FleetSettings {
            address: Address::parse(address).unwrap(),
            authorities: None,
            replicas: 3,
            patience: PATIENCE,
        },
        project: "storm".to_owned(),
    }
}

fn work(plan: &Plan) {
    let project = Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(plan.root.clone()),
        owner: plan.name.clone(),
        home: None,
    };
    let did = Mutex::new(lines(&plan.root, "did"));
    let perform = |task: &KernelTask, handle: &LeaseHandle<'_>| {
        let line = format!("{} {}\n", task.id, handle.hold().fence);
        did.lock().unwrap().write_all(line.as_bytes()).unwrap();
        AttemptReport::of(End::Completed)
    };
    let waker = (Mutex::new(false), Condvar::new());
    let ring = || {
        *waker.0.lock().unwrap() = true;
        waker.1.notify_one();
    };
    let mut said = lines(&plan.root, "said");
    thread::scope(|scope| {
        let terms = WorkerTerms {
            slots: SLOTS,
            capacity: Capacity {
                project: 1_000,
                per_agent: BTreeMap::new(),
                usd_micros_per_day: None,
            },
            only: None,
            lease_ms: plan.store.lease_ms(),
            perform: &perform,
            ring: &ring,
        };
        let queue = Queue::open_in(&project, &plan.store).unwrap();
        let mut worker = KernelWorker::new(scope, queue, terms).unwrap();
        let mut open = plan.own.iter().copied().peekable();
        loop {
            for _ in 0..SUBMITS {
                submit(plan, worker.queue().0, &mut open, &mut said);
            }
            worker.step(&|| true).unwrap();
            let totals = worker.queue().0.kernel().totals;
            if totals.completed + totals.failed + totals.cancelled == plan.n_tasks {
                break;
            }
            if open.peek().is_none() {
                let woken = waker.0.lock().unwrap();
                let (mut woken, _) = waker
                    .1
                    .wait_timeout_while(woken, PAUSE, |woken| !*woken)
                    .unwrap();
                *woken = false;
            }
        }
    });
}

/// Submits the next task that the process of this name before it did not.
fn submit(
    plan: &Plan,
    queue: &mut Queue<'_>,
    open: &mut impl Iterator<Item = u64>,
    said: &mut File,
) {
    let Some(number) = open.find(|number| !queue.kernel().keys.contains_key(&key(*number))) else {
        return;
    };
    let command = KernelCommand::Submit {
        request: Box::new(request(plan, number)),
        admission: Admission {
            tasks_max: 1_000_000,
            overflow: Overflow::Queue,
            running_max: 1_000,
        },
    };
    let started = Instant::now();
    let actor = Actor::Human {
        user: plan.name.clone(),
    };
    match queue.submit(&actor, &command).unwrap() {
        KernelReply::Submitted(task) | KernelReply::Duplicate(task) => {
            let micros = started.elapsed().as_micros();
            let line = format!("{} {task} {micros}\n", key(number));
            said.write_all(line.as_bytes()).unwrap();
        }
        other => panic!("a task is not let in: {other:?}"),
    }
}

fn key(number: u64) -> String {
    format!("number-{number}")
}

fn request(plan: &Plan, number: u64) -> KernelRequest {
    KernelRequest {
        description: format!("Number {number}"),
        prompt: "Do nothing.".to_owned(),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 0,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: Some(RequestKey {
            text: key(number),
            ttl_ms: KEY_MS,
        }),
        retry: Retry::default(),
        verify: Vec::new(),
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: TaskOrigin::Person {
            user: plan.name.clone(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    }
}

/// Opens a file that all processes write whole lines to.
fn lines(root: &Path, name: &str) -> File {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    options.open(root.join(name)).unwrap()
}
