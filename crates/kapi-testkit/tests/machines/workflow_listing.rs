//! A listing of workflows is believed from the inventory only as long as every log says the same, and
//! a driver only as long as the lock is held.

use std::path::{Path, PathBuf};

use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::disk::{Disk as _, replace_derived};
use kapi_sys::lock::Lock;
use kapi_sys::real_disk::RealDisk;
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;

use crate::support::person;
use crate::workflow_support::{Governed, asked};

fn words(listed: &[WorkflowListingEntry]) -> Vec<String> {
    let of = |listed: &WorkflowListingEntry| match &listed.state {
        WorkflowSummary::Known(entry) => {
            let (status, phase) = (entry.status.as_str(), &entry.phase);
            format!("{} {status} {phase}", listed.key)
        }
        WorkflowSummary::Damaged(_) => format!("{} damaged", listed.key),
    };
    listed.iter().map(of).collect()
}

fn abandon(project: &Project<'_>, key: &WorkflowKey) {
    let reason = "not needed".to_owned();
    let abandon = WorkflowCommand::Abandon { reason };
    Workflows::of(project)
        .submit_workflow(key, &person(), &abandon)
        .unwrap();
}

/// Makes two interviews, does something to the log of the second behind the inventory's back, and
/// compares the whole listing.
fn check_second(change: &dyn Fn(&Governed, &WorkflowKey, &Path), expected: &str) {
    let governed = Governed::new();
    governed.interview("Keep sessions");
    let second = governed.interview("Other things");
    let project = governed.project();
    let layout = &project.layout;
    let inventory = governed.disk.snapshot()[&layout.inventory()].clone();
    let log = layout.workflow(second.mode, &second.id).events();
    change(&governed, &second, &log);
    // Whatever the change itself noted is forgotten again.
    replace_derived(&governed.disk, &layout.inventory(), &inventory).unwrap();
    let listed = Workflows::of(&project).workflows().unwrap();
    let first = "deep-interview 001-keep-sessions active interview";
    assert_eq!(words(&listed), [first, expected]);
    assert_eq!(
        words(&Workflows::of(&project).standings().unwrap().workflows),
        words(&listed)
    );
}

#[test]
fn a_log_that_grew_is_read() {
    check_second(
        &|governed, key, _| abandon(&governed.project(), key),
        "deep-interview 002-other-things abandoned interview",
    );
}

#[test]
fn a_log_that_was_damaged_replaced_or_removed_is_told() {
    let damaged = "deep-interview 002-other-things damaged";
    check_second(
        &|governed, _, log| governed.disk.append(log, b"nonsense\n").unwrap(),
        damaged,
    );
    check_second(
        &|governed, _, log| replace_derived(&governed.disk, log, b"{}\n").unwrap(),
        damaged,
    );
    check_second(
        &|governed, _, log| governed.disk.truncate(log, 10).unwrap(),
        damaged,
    );
    check_second(
        &|governed, _, log| {
            let elsewhere = log.with_extension("gone");
            governed.disk.rename(log, &elsewhere).unwrap();
        },
        damaged,
    );
}

/// A project in a real directory.
struct Real {
    directory: tempfile::TempDir,
    home: tempfile::TempDir,
    clock: StepClock,
}

impl Real {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            clock: StepClock::new(1_787_392_800_000),
        }
    }

    fn project(&self) -> Project<'_> {
        Project {
            disk: &RealDisk,
            clock: &self.clock,
            layout: ProjectLayout::new(self.directory.path().to_path_buf()),
            owner: "test".to_owned(),
            home: Some(self.home.path().to_path_buf()),
        }
    }

    fn interview(&self, purpose: &str) -> WorkflowKey {
        let started = Workflows::of(&self.project()).start_workflow(&person(), &asked(purpose));
        started.unwrap().key()
    }

    fn dir(&self, key: &WorkflowKey) -> PathBuf {
        let layout = self.project().layout.workflow(key.mode, &key.id);
        layout.dir().to_path_buf()
    }

    fn words(&self) -> Vec<String> {
        words(&Workflows::of(&self.project()).workflows().unwrap())
    }

    fn drivers(&self) -> Vec<Option<String>> {
        let project = self.project();
        let listed = Workflows::of(&project).workflows().unwrap();
        Workflows::of(&project).workflow_drivers(&listed).unwrap()
    }
}

#[test]
fn only_a_directory_of_exactly_that_name_and_mode_is_the_workflow() {
    let real = Real::new();
    let first = real.interview("Keep sessions");
    let second = real.interview("Other things");
    let both = [
        "deep-interview 001-keep-sessions active interview",
        "deep-interview 002-other-things active interview",
    ];
    assert_eq!(real.words(), both);
    let modes = real.project().layout.workflows_dir();
    for other in [
        "deep-interview/0001-keep-sessions",
        "deep-interview/+01-keep-sessions",
        "deep-interview/001-keep",
        "deep-interview/001-keep-sessions-2",
        "deep-interview/1-keep-sessions",
        "ralph/001-keep-sessions",
    ] {
        std::fs::create_dir_all(modes.join(other)).unwrap();
    }
    assert_eq!(real.words(), both);
    std::fs::remove_dir_all(real.dir(&second)).unwrap();
    assert_eq!(real.words(), both[..1]);
    // A workflow that is there and that the inventory does not know of.
    std::fs::rename(real.dir(&first), modes.join("deep-interview/003-moved")).unwrap();
    let moved = real.words();
    assert_eq!(moved.len(), 1);
    assert!(
        moved[0].starts_with("deep-interview 003-moved "),
        "{moved:?}"
    );
}

#[test]
fn a_driver_is_told_while_the_lock_is_held_and_not_after() {
    let real = Real::new();
    let [first, second] = ["Keep sessions", "Other things"].map(|purpose| real.interview(purpose));
    assert_eq!(real.drivers(), [None, None]);
    let lock = |key: &WorkflowKey| real.dir(key).join("drive.lock");
    let held = Lock::acquire(&lock(&second), "kapi resume", 0).unwrap();
    let holder = format!("pid {}, kapi resume", std::process::id());
    assert_eq!(real.drivers(), [None, Some(holder)]);
    let one_by_one = Workflows::of(&real.project())
        .workflow_driver(&second)
        .unwrap();
    assert_eq!(real.drivers()[1], one_by_one);
    drop(held);
    assert!(
        lock(&second).is_file(),
        "what the holder wrote stays behind"
    );
    assert_eq!(real.drivers(), [None, None]);
    // A lock that cannot be asked is told, and not taken for a free one.
    std::os::unix::fs::symlink(lock(&second), lock(&first)).unwrap();
    let project = real.project();
    let listed = Workflows::of(&project).workflows().unwrap();
    let error = Workflows::of(&project)
        .workflow_drivers(&listed)
        .unwrap_err();
    assert!(format!("{error}").contains("drive.lock"), "{error}");
}

#[test]
fn what_has_ended_is_not_asked_for_its_driver() {
    let real = Real::new();
    let key = real.interview("Keep sessions");
    abandon(&real.project(), &key);
    let _held = Lock::acquire(&real.dir(&key).join("drive.lock"), "somebody", 0).unwrap();
    assert_eq!(real.drivers(), [None]);
}
