//! A worker that is a process of its own is killed while it works; another takes over.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use std::{env, thread};

use kapi_core::actor::Actor;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, OutputLine, ProcessLimits, Program};
use kapi_task::record::queue::Queue;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::task::{AttemptReport, End, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;

use crate::cluster::{Cluster, settings};
use crate::real::queue::{Machine, PATIENCE, capacity, claim, finish, submit};
use crate::support::pause;

/// Where the other process finds the servers; set only there.
const PORTS: &str = "KAPI_FLEET_TEST_PORTS";
/// What it says before the task that it works on.
const WORKS_ON: &str = "works on ";
const LEASE_MS: u64 = 3_000;

#[test]
fn the_task_of_a_killed_worker_goes_to_another_machine() {
    match env::var(PORTS) {
        Ok(ports) => be_the_worker(&ports),
        Err(_) => kill_a_worker(),
    }
}

fn kill_a_worker() {
    let cluster = Cluster::three();
    let machine = Machine::new(cluster.settings());
    let project = machine.project();
    let mut queue = Queue::open_in(&project, &machine.store).unwrap();
    let KernelReply::Submitted(task) = submit(&mut queue, "one") else {
        panic!("it was to be let in");
    };
    let cancel = Cancel::new();
    let (says, said) = sync_channel(1);
    thread::scope(|scope| {
        let mut hear = |line: OutputLine<'_>| {
            if let OutputLine::Stdout(bytes) = line
                && let Some((_, task)) = String::from_utf8_lossy(bytes).split_once(WORKS_ON)
            {
                says.send(task.to_owned()).unwrap();
            }
        };
        let program = this_test(&cluster);
        let cancelled = &cancel;
        let worker = scope.spawn(move || process::run(program, cancelled, &mut hear).unwrap());
        let theirs = said.recv_timeout(PATIENCE);
        cancel.raise();
        let finished = worker.join().unwrap();
        assert_eq!(
            finished.end,
            process::ProcessEnd::Cancelled,
            "{}",
            finished.stdout.text()
        );
        assert_eq!(theirs.unwrap(), task.to_string());
    });
    queue.refresh().unwrap();
    let begun = queue.kernel().tasks[&task].clone();
    assert_eq!(begun.state, KernelTaskState::Running);
    let own = queue.enlist().unwrap();
    let began = Instant::now();
    let hold = loop {
        assert!(began.elapsed() < PATIENCE, "nobody takes over");
        queue.expire(&own).unwrap();
        if let Some(hold) = claim(&mut queue, &own, 60_000) {
            break hold;
        }
        pause();
    };
    assert_eq!(hold.task, task);
    assert!(Some(hold.fence) > begun.lease.map(|lease| lease.fence));
    queue
        .submit(&Actor::Engine, &KernelCommand::Begin(hold))
        .unwrap();
    finish(&mut queue, hold).unwrap();
    assert_eq!(queue.kernel().totals.completed, 1);
}

/// Runs this test once more, in the other part.
fn this_test(cluster: &Cluster) -> Program {
    let ports: Vec<String> = cluster.ports().iter().map(ToString::to_string).collect();
    let name = "real::killed::the_task_of_a_killed_worker_goes_to_another_machine";
    Program {
        path: process::current_exe().unwrap(),
        args: ["--exact", name, "--nocapture"]
            .map(OsString::from)
            .to_vec(),
        env: BTreeMap::from([(PORTS.into(), ports.join(",").into())]),
        cwd: env::temp_dir(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: PATIENCE * 2,
            idle: None,
            tail_bytes_max: 64 * 1024,
            line_bytes_max: 4096,
        },
    }
}

/// Claims a task and works on it until it is killed.
fn be_the_worker(ports: &str) {
    let ports: Vec<u16> = ports.split(',').map(|port| port.parse().unwrap()).collect();
    let machine = Machine::new(settings(&ports));
    let project = machine.project();
    let perform = |task: &KernelTask, handle: &LeaseHandle<'_>| {
        let mut out = std::io::stdout();
        writeln!(out, "{WORKS_ON}{}", task.id).unwrap();
        while !handle.cancel().is_raised() {
            pause();
        }
        AttemptReport::of(End::Cancelled)
    };
    let ring = || {};
    thread::scope(|scope| {
        let terms = WorkerTerms {
            slots: 1,
            capacity: capacity(),
            only: None,
            lease_ms: LEASE_MS,
            perform: &perform,
            ring: &ring,
        };
        let queue = Queue::open_in(&project, &machine.store).unwrap();
        let mut worker = KernelWorker::new(scope, queue, terms).unwrap();
        let began = Instant::now();
        while began.elapsed() < PATIENCE + Duration::from_secs(10) {
            worker.step(&|| true).unwrap();
            pause();
        }
        worker.leave();
    });
    panic!("nobody killed it");
}
