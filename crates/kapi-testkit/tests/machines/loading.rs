//! Loading costs the same, however long the history is.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_core::id::GoalId;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::logged::to_payload;
use kapi_store::record::Batch;
use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::sim_disk::SimDisk;

use crate::support::{Fixture, ROOT, contract, person, project_on, well};

/// A disk that counts the bytes read from it.
struct Counted {
    disk: SimDisk,
    bytes_read: AtomicU64,
}

impl Disk for Counted {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let bytes = self.disk.read(path, from)?;
        let n_bytes = bytes.as_ref().map_or(0, Vec::len) as u64;
        self.bytes_read.fetch_add(n_bytes, Ordering::SeqCst);
        Ok(bytes)
    }
    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.disk.len(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }
    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        self.disk.create_dir(dir)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.write(path, bytes)
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.append(path, bytes)
    }
    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        self.disk.truncate(path, len)
    }
    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.sync(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        self.disk.lock(path, owner, wait_ms)
    }
}

/// Makes a goal with this many events and returns it.
fn goal_with(fixture: &Fixture, n_events: u64) -> GoalId {
    let mut limited = contract();
    limited.budget.tokens = Some(2);
    let id = fixture.approved(&limited);
    let project = fixture.project();
    let stream = project.stream(&id);
    let raise = Raise {
        tokens: 1,
        ..Raise::default()
    };
    let payload = to_payload(&GoalEvent::BudgetRaised { raise }).unwrap();
    {
        let held = stream.lock("test", 0).unwrap();
        let mut cursor = stream.load().unwrap().cursor;
        // The two of the approval, and one more that comes through the front door.
        let mut missing = n_events - 3;
        while missing > 0 {
            let n_payloads = missing.min(1_000);
            let payloads = (0..n_payloads).map(|_| payload.clone()).collect();
            let batch = Batch {
                actor: &person(),
                at_ms: 0,
                payloads,
            };
            stream.append(&held, &mut cursor, &batch).unwrap();
            missing -= n_payloads;
        }
    }
    project
        .submit(&id, &person(), &GoalCommand::RaiseBudget(raise))
        .unwrap();
    assert_eq!(project.load(&id).unwrap().budget.tokens, Some(n_events));
    id
}

/// Returns the bytes read by loading, by a command, and by listing.
fn bytes_read(n_events: u64) -> [u64; 3] {
    let fixture = Fixture::new();
    let id = goal_with(&fixture, n_events);
    let counted = Counted {
        disk: fixture.disk.clone(),
        bytes_read: AtomicU64::new(0),
    };
    let project = project_on(&counted, &fixture.clock, ROOT.into());
    let taken = || counted.bytes_read.swap(0, Ordering::SeqCst);
    project.load(&id).unwrap();
    let load = taken();
    let raise = Raise {
        turns: 1,
        ..Raise::default()
    };
    project
        .submit(&id, &person(), &GoalCommand::RaiseBudget(raise))
        .unwrap();
    let submit = taken();
    assert_eq!(project.goals().unwrap().len(), 1);
    [load, submit, taken()]
}

#[test]
fn reading_is_flat_from_ten_to_a_hundred_thousand_events() {
    let few = bytes_read(10);
    let many = bytes_read(100_000);
    for (few, many) in few.iter().zip(many) {
        // Numbers grow by a few digits; nothing else does.
        assert!(
            many < few + 200,
            "{few} bytes for 10 events, {many} for 100000"
        );
    }
}

#[test]
fn a_fold_of_another_shape_is_made_anew() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.drive(&id, &|effect, _| well(effect));
    let project = fixture.project();
    let stream = project.stream(&id);
    let held = stream.lock("test", 0).unwrap();
    let cursor = stream.load().unwrap().cursor;
    let other = serde_json::value::RawValue::from_string("{\"other\":1}".to_owned()).unwrap();
    stream.save(&held, &cursor, other).unwrap();
    drop(held);
    assert_eq!(project.load(&id).unwrap(), goal);
    assert_eq!(project.repair(&id).unwrap().status, GoalStatus::Done);
    let saved = stream.load().unwrap();
    assert!(saved.state.unwrap().get().contains("make the tests pass"));
}
