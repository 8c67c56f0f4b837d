//! Lessons while others write the same file, or power fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kapi_sys::clock::StepClock;
use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::{SimDisk, Survival};

use super::{NOW_MS, domain, entry_of, lesson, memory, person, put, reported, text_of};
use crate::record::guardrails::error::MemoryError;
use crate::rules::guardrail::LessonSource;

#[test]
fn writers_in_parallel_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let add = |writer: usize| {
        let clock = StepClock::new(NOW_MS);
        let memory = memory(&RealDisk, &clock, dir.path());
        for idx in 0..10 {
            let text = format!("lesson_{writer}_{idx}");
            memory
                .add(&lesson(&text, LessonSource::agent("task_1")))
                .unwrap();
            let source = LessonSource::agent(&format!("task_{writer}_{idx}"));
            memory.add(&lesson("shared by all", source)).unwrap();
        }
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || add(writer));
        }
    });
    let clock = StepClock::new(NOW_MS);
    let entries = memory(&RealDisk, &clock, dir.path())
        .list(None)
        .unwrap()
        .entries;
    assert_eq!(entries.len(), 41);
    let shared = entries
        .iter()
        .find(|entry| entry.lesson.as_str() == "shared by all");
    assert_eq!(shared.unwrap().hits, 40);
}

/// A disk on which a person saves the file at every other time it is about to be replaced.
struct EditedDisk {
    file: PathBuf,
    n_synced: AtomicUsize,
}

impl Disk for EditedDisk {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        RealDisk.read(path, from)
    }
    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        RealDisk.len(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        RealDisk.list(dir)
    }
    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        RealDisk.create_dir(dir)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        RealDisk.write(path, bytes)
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        RealDisk.append(path, bytes)
    }
    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        RealDisk.truncate(path, len)
    }
    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        let is_beside = path.extension().is_some_and(|extension| extension == "tmp");
        if is_beside
            && self
                .n_synced
                .fetch_add(1, Ordering::SeqCst)
                .is_multiple_of(2)
        {
            let n_synced = self.n_synced.load(Ordering::SeqCst);
            RealDisk.append(&self.file, format!("note {n_synced}\n").as_bytes())?;
        }
        RealDisk.sync(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        RealDisk.rename(from, to)
    }
    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        RealDisk.lock(path, owner, wait_ms)
    }
}

#[test]
fn a_person_who_saves_while_we_write_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let disk = EditedDisk {
        file: dir.path().join(".ilchul/guardrails/code-review.md"),
        n_synced: AtomicUsize::new(0),
    };
    let clock = StepClock::new(NOW_MS);
    let memory = memory(&disk, &clock, dir.path());
    let added = entry_of(
        memory
            .add(&lesson("alpha", LessonSource::agent("task_1")))
            .unwrap(),
    );
    memory
        .add(&lesson("Alpha", LessonSource::agent("task_2")))
        .unwrap();
    memory.accept(&person(), &added.id).unwrap();
    let text = text_of(&memory);
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("note"))
        .collect();
    assert_eq!(notes, ["note 1", "note 3", "note 5"]);
    assert_eq!(text.lines().count(), 4);
    assert_eq!(reported(&memory), ["alpha"]);
}

#[test]
fn power_may_fail_at_any_operation() {
    let torn = (1..=6).map(Survival::TornPrefix);
    let whole = [Survival::Nothing, Survival::Everything, Survival::PageCache];
    for survival in torn.chain(whole) {
        let mut op = 1;
        loop {
            let disk = SimDisk::new();
            disk.provide_dir(Path::new("/p"));
            let clock = StepClock::new(NOW_MS);
            let memory = memory(&disk, &clock, Path::new("/p"));
            disk.crash_at(op, survival);
            let first = memory.add(&lesson("alpha", LessonSource::person("alice")));
            let second = memory.add(&lesson("beta", LessonSource::agent("task_1")));
            let is_over = !disk.is_crashed();
            disk.reboot();
            let found: Vec<String> = memory
                .list(None)
                .unwrap()
                .entries
                .iter()
                .map(|entry| format!("{} {}", entry.lesson, entry.state.word()))
                .collect();
            let all = ["alpha accepted", "beta proposed"];
            let n_durable = usize::from(first.is_ok()) + usize::from(second.is_ok());
            assert!(found.len() >= n_durable, "{op}: {found:?}");
            assert_eq!(found, all[..found.len()], "{op}: whole lines or none");
            if is_over {
                assert_eq!(n_durable, 2);
                break;
            }
            // And it goes on.
            memory
                .add(&lesson("alpha", LessonSource::person("alice")))
                .unwrap();
            memory
                .add(&lesson("beta", LessonSource::agent("task_1")))
                .unwrap();
            assert_eq!(memory.list(None).unwrap().entries.len(), 2);
            op += 1;
        }
        assert!(op > 8, "{op} operations were cut");
    }
}

#[test]
fn a_link_is_not_replaced_and_a_huge_file_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(NOW_MS);
    let memory = memory(&RealDisk, &clock, dir.path());
    put(&memory, &vec![b'x'; (1 << 20) + 1]);
    let said = lesson("alpha", LessonSource::person("alice"));
    assert!(matches!(
        memory.add(&said),
        Err(MemoryError::TooLarge { .. })
    ));
    let file = memory.file(&domain());
    RealDisk
        .rename(&file, &dir.path().join("elsewhere"))
        .unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &file).unwrap();
    assert!(matches!(memory.add(&said), Err(MemoryError::IsLink { .. })));
}
