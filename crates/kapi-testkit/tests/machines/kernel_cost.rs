//! What a request costs on disk, after few tasks and after many: counted, not timed.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_core::task_id::KernelTaskId;
use kapi_machine::logged::to_payload;
use kapi_store::record::Batch;
use kapi_store::stream::LogStream;
use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::sim_disk::SimDisk;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::event::KernelEvent;
use kapi_task::rules::request::KernelRequest;
use kapi_task::rules::task::{AttemptReport, End};

use crate::kernel_worker::{person, project, request, submit};
use crate::support::{Fixture, ROOT};

/// Tasks that are let in and cancelled while it is counted: enough for the fold to be written anew
/// several times, so that once more or less does not matter.
const TASKS: u64 = 600;
/// Before the clock of these tests begins, so that no key holds any more.
const EARLIER_MS: i64 = 1_787_392_700_000;

/// A disk that counts what passes through it.
struct Counting<'a> {
    disk: &'a SimDisk,
    ops: AtomicU64,
    bytes: AtomicU64,
}

impl Counting<'_> {
    fn count(&self, n_bytes: usize) {
        self.ops.fetch_add(1, Ordering::SeqCst);
        let n_bytes = u64::try_from(n_bytes).unwrap();
        self.bytes.fetch_add(n_bytes, Ordering::SeqCst);
    }

    fn so_far(&self) -> (u64, u64) {
        let of = |number: &AtomicU64| number.load(Ordering::SeqCst);
        (of(&self.ops), of(&self.bytes))
    }
}

impl Disk for Counting<'_> {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let bytes = self.disk.read(path, from)?;
        self.count(bytes.as_ref().map_or(0, Vec::len));
        Ok(bytes)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.count(0);
        self.disk.len(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        self.count(0);
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        self.count(0);
        self.disk.create_dir(dir)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.count(bytes.len());
        self.disk.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.count(bytes.len());
        self.disk.append(path, bytes)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        self.count(0);
        self.disk.truncate(path, len)
    }

    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.count(0);
        self.disk.sync(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.count(0);
        self.disk.rename(from, to)
    }

    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        self.count(0);
        self.disk.lock(path, owner, wait_ms)
    }
}

/// Records that many tasks that were let in and have ended, as their queue would have.
fn fill(fixture: &Fixture, n_tasks: u64) {
    let project = project(&fixture.disk, &fixture.clock);
    let stream = LogStream {
        disk: &fixture.disk,
        name: "kernel".to_owned(),
        dir: project.layout.kernel_dir(),
        anchor: Path::new(ROOT).to_path_buf(),
    };
    let held = stream.lock("test", 0).unwrap();
    let mut cursor = stream.load().unwrap().cursor;
    let numbers: Vec<u64> = (1..=n_tasks).collect();
    for some in numbers.chunks(1_000) {
        let events = some.iter().flat_map(|number| {
            let task = KernelTaskId::new(*number);
            [
                KernelEvent::Submitted {
                    task,
                    request: Box::new(KernelRequest {
                        // Keys are forgotten bit by bit; here they would all be there at once.
                        key: None,
                        ..request(*number)
                    }),
                },
                KernelEvent::Ended {
                    task,
                    report: Box::new(AttemptReport::of(End::Completed)),
                },
            ]
        });
        let batch = Batch {
            actor: &person(),
            at_ms: EARLIER_MS,
            payloads: events.map(|event| to_payload(&event).unwrap()).collect(),
        };
        stream.append(&held, &mut cursor, &batch).unwrap();
    }
    drop(held);
    // The first request hands all of them to the history.
    submit(&mut Queue::open(&project).unwrap(), n_tasks + 1);
}

/// Returns the operations and bytes of some requests of one process, and of opening the queue anew.
fn cost(n_tasks: u64) -> ((u64, u64), (u64, u64)) {
    let fixture = Fixture::new();
    fill(&fixture, n_tasks);
    let disk = Counting {
        disk: &fixture.disk,
        ops: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let project = project(&disk, &fixture.clock);
    let mut queue = Queue::open(&project).unwrap();
    assert!(queue.kernel().ended.is_empty(), "the history has them all");
    assert_eq!(queue.kernel().totals.completed, n_tasks);
    let (ops, bytes) = disk.so_far();
    for number in 0..TASKS {
        let task = submit(&mut queue, 1_000_000 + number);
        let why = "not wanted".to_owned();
        queue
            .submit(&person(), &KernelCommand::Cancel { task, why })
            .unwrap();
    }
    let (ops_after, bytes_after) = disk.so_far();
    ((ops_after - ops, bytes_after - bytes), (ops, bytes))
}

#[test]
fn a_request_costs_the_same_after_a_hundred_tasks_and_after_many_thousand() {
    let (few, few_opened) = cost(100);
    let (many, many_opened) = cost(5_000);
    let within = |few: u64, many: u64| many.abs_diff(few) * 5 < few;
    assert!(
        within(few.0, many.0) && within(few.1, many.1),
        "{few:?} and {many:?}"
    );
    // Opening reads the fold and the log's tail, never the tasks that have ended.
    assert!(
        many_opened.1 < few_opened.1 + 128 * 1024,
        "{few_opened:?} and {many_opened:?}"
    );
    assert_eq!(many_opened.0, few_opened.0);
}
