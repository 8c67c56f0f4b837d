//! What five streams do to a disk, call by call, and every byte they leave: held fast, so that
//! nobody changes an order or a format by tidying up.
//!
//! The tape names each change and each lock in the order they came; the files are named by a part
//! of their hash.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use kapi_core::actor::Actor;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::drive;
use kapi_goal::record::preferences::{PreferenceChange, Preferences};
use kapi_goal::record::project::Project;
use kapi_machine::evidence::pruned::{PruneLog, PrunedRuns};
use kapi_machine::pace::Pace;
use kapi_spend::record::Ledger;
use kapi_store::hash::sha256_hex;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::disk::{Disk, DiskError, replace_derived};
use kapi_sys::lock::{Lock, LockError};
use kapi_sys::sim_disk::SimDisk;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::{Admission, Hold, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::request::KernelRequest;
use kapi_task::rules::task::{AttemptReport, End};
use kapi_workflow::record::delay::Delays;
use kapi_workflow::record::drive as workflow_drive;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;

use crate::support::{ROOT, Script, approved, contract, person, well};
use crate::workflow_support::{HOME, answered, asked, draft};
use crate::{kernel_worker, spend};

const NOW_MS: i64 = 1_795_348_800_000;
/// How long something takes is not the same twice, and stands in logs.
const STANDS_STILL: fn() -> u64 = || 0;

/// A disk that writes down every call that changes something, and every lock.
struct Tape {
    disk: SimDisk,
    /// Each begins with a lock, and holds what was done until the next.
    lines: Mutex<Vec<String>>,
}

impl Tape {
    fn new() -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        disk.provide_dir(Path::new(HOME));
        Self {
            disk,
            lines: Mutex::default(),
        }
    }

    fn note(&self, op: &str, path: &Path) {
        let entry = format!("{op} {}", path.display());
        let mut lines = self.lines.lock().unwrap();
        match lines.last_mut() {
            Some(line) if op != "lock" => write!(line, ", {entry}").unwrap(),
            Some(_) | None => lines.push(entry),
        }
    }

    /// Returns everything that was done: equal lines once with how many there were, and directories
    /// by a number where they come first.
    fn played(&self) -> String {
        let mut played = String::new();
        let mut lines: Vec<(usize, String)> = Vec::new();
        for line in self.lines.lock().unwrap().iter() {
            match lines.last_mut() {
                Some((n, last)) if last == line => *n += 1,
                _ => lines.push((1, line.clone())),
            }
        }
        let files = self.disk.snapshot();
        let dirs: BTreeSet<&Path> = files.keys().filter_map(|file| file.parent()).collect();
        let named: Vec<(String, String)> = dirs
            .iter()
            .enumerate()
            .map(|(number, dir)| (format!("{}/", dir.display()), format!("{number}:")))
            .collect();
        for (dir, name) in &named {
            writeln!(played, "{name} {dir}").unwrap();
        }
        let shorter = |text: &str| {
            // The longest first: a directory's name begins with that of the one above it.
            let longest = named.iter().rev();
            longest.fold(text.to_owned(), |text, (dir, name)| text.replace(dir, name))
        };
        for (n, line) in &lines {
            writeln!(played, "{n} x {}", shorter(line)).unwrap();
        }
        for (file, bytes) in &files {
            let hash: String = sha256_hex(bytes).chars().take(12).collect();
            let file = shorter(&file.display().to_string());
            writeln!(played, "{hash} {file}").unwrap();
        }
        played
    }
}

impl Disk for Tape {
    fn read(&self, path: &Path, from: u64) -> Result<Option<Vec<u8>>, DiskError> {
        self.disk.read(path, from)
    }

    fn len(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.disk.len(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &Path) -> Result<bool, DiskError> {
        self.note("create", dir);
        self.disk.create_dir(dir)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.note("write", path);
        self.disk.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.note("append", path);
        self.disk.append(path, bytes)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), DiskError> {
        self.note("truncate", path);
        self.disk.truncate(path, len)
    }

    fn sync(&self, path: &Path) -> Result<(), DiskError> {
        self.note("sync", path);
        self.disk.sync(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.note("rename to", to);
        self.disk.rename(from, to)
    }

    fn lock(&self, path: &Path, owner: &str, wait_ms: u64) -> Result<Lock, LockError> {
        self.note("lock", path);
        self.disk.lock(path, owner, wait_ms)
    }
}

fn project<'a>(tape: &'a Tape, clock: &'a StepClock) -> Project<'a> {
    Project {
        disk: tape,
        clock,
        layout: ProjectLayout::new(PathBuf::from(ROOT)),
        owner: "test".to_owned(),
        home: Some(PathBuf::from(HOME)),
    }
}

/// A goal from its proposal to its end.
#[test]
fn a_goal() {
    let (tape, clock) = (Tape::new(), StepClock::new(NOW_MS));
    let project = project(&tape, &clock);
    let id = approved(&project, &contract());
    let control = drive::DriveControl {
        person: person(),
        interrupted: &|| false,
        monotonic_ms: &STANDS_STILL,
        pace: Pace {
            look_ms: 1,
            ..Pace::STANDARD
        },
    };
    let world = Script(&|effect, _| well(effect));
    drive::drive(&project, &id, &world, &control, &mut |_| {}).unwrap();
    insta::assert_snapshot!(tape.played(), @r"
    0: /person/.ilchul/approvals/project-ea0135bca5e3/
    1: /project/.ilchul/
    2: /project/.ilchul/goals/001-try/
    1 x create /project/.ilchul, sync /project
    1 x lock 1:lock, write 1:.gitignore.tmp, sync 1:.gitignore.tmp, rename to 1:.gitignore, sync /project/.ilchul
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul, create 1:goals/001-try
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, sync 1:goals/001-try, sync 1:goals, sync /project/.ilchul, sync /project, write 2:state.json.tmp, rename to 2:state.json, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:contract.yaml.tmp, rename to 2:contract.yaml
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul, create /person/.ilchul/approvals/project-ea0135bca5e3, sync /person/.ilchul/approvals, sync /person/.ilchul, sync /person
    1 x lock 0:lock, write 0:001-try.json.tmp, sync 0:001-try.json.tmp, rename to 0:001-try.json, sync /person/.ilchul/approvals/project-ea0135bca5e3
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:state.json.tmp, rename to 2:state.json, write 2:snapshot.json.tmp, rename to 2:snapshot.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    1 x lock 2:drive.lock
    1 x lock 2:lock
    2 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:state.json.tmp, rename to 2:state.json, write 2:snapshot.json.tmp, rename to 2:snapshot.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    9 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:state.json.tmp, rename to 2:state.json, write 2:snapshot.json.tmp, rename to 2:snapshot.json
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:state.json.tmp, rename to 2:state.json, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:distilled.md.tmp, rename to 2:distilled.md
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    e3de3e70c40a 0:001-try.json
    e3b0c44298fc 0:lock
    cdbcae15105d 1:.gitignore
    d2fbee747f7b 2:contract.yaml
    26ac003d3122 2:distilled.md
    e3b0c44298fc 2:drive.lock
    bf4388d1ee4f 2:events.jsonl
    e3b0c44298fc 2:lock
    92176a13888b 2:snapshot.json
    ec92df9e400b 2:state.json
    00e90bc25028 1:inventory.json
    e3b0c44298fc 1:lock
    ");
}

/// An interview until its spec waits, an edit of that, a revision, and drafts that do not answer it.
#[test]
fn a_workflow() {
    let (tape, clock) = (Tape::new(), StepClock::new(NOW_MS));
    let project = project(&tape, &clock);
    let mut new = asked("Keep sessions");
    new.terms.jobs = 1;
    let key = Workflows::of(&project)
        .start_workflow(&person(), &new)
        .unwrap()
        .key();
    let enough = WorkflowCommand::Mode(ModeCommand::Interview(InterviewCommand::Enough {}));
    Workflows::of(&project)
        .submit_workflow(&key, &person(), &enough)
        .unwrap();
    interview(&project, &key);
    let file = project
        .layout
        .workflow(key.mode, &key.id)
        .document("spec.md");
    replace_derived(&tape.disk, &file, b"Something else.\n").unwrap();
    Workflows::of(&project)
        .revise_workflow(&key, &person(), "Smaller.")
        .unwrap();
    interview(&project, &key);
    insta::assert_snapshot!(tape.played(), @r"
    0: /person/.ilchul/approvals/project-ea0135bca5e3/
    1: /project/.ilchul/
    2: /project/.ilchul/workflows/deep-interview/001-keep-sessions/
    1 x create /project/.ilchul, sync /project
    1 x lock 1:lock, write 1:.gitignore.tmp, sync 1:.gitignore.tmp, rename to 1:.gitignore, sync /project/.ilchul
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul, create 1:workflows/deep-interview/001-keep-sessions
    1 x lock 2:lock, create /person/.ilchul/approvals/project-ea0135bca5e3, sync /person/.ilchul/approvals, sync /person/.ilchul, sync /person, write 0:001-keep-sessions.json.tmp, sync 0:001-keep-sessions.json.tmp, rename to 0:001-keep-sessions.json, sync /person/.ilchul/approvals/project-ea0135bca5e3, append 2:events.jsonl, sync 2:events.jsonl, sync 1:workflows/deep-interview/001-keep-sessions, sync 1:workflows/deep-interview, sync 1:workflows, sync /project/.ilchul, sync /project, write 2:interview.md.tmp, rename to 2:interview.md, write 2:decision-report.md.tmp, rename to 2:decision-report.md, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:decision-report.md.tmp, rename to 2:decision-report.md, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    1 x lock 2:drive.lock
    1 x lock 2:lock
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:interview.md.tmp, rename to 2:interview.md, write 2:spec.md.tmp, sync 2:spec.md.tmp, rename to 2:spec.md, sync 1:workflows/deep-interview/001-keep-sessions, write 2:decision-report.md.tmp, rename to 2:decision-report.md, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    1 x lock 2:lock, write 2:spec.edited.md.tmp, sync 2:spec.edited.md.tmp, rename to 2:spec.edited.md, sync 1:workflows/deep-interview/001-keep-sessions
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:interview.md.tmp, rename to 2:interview.md, write 2:spec.md.tmp, rename to 2:spec.md, write 2:decision-report.md.tmp, rename to 2:decision-report.md, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    1 x lock 2:drive.lock
    1 x lock 2:lock
    5 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 2:lock, append 2:events.jsonl, sync 2:events.jsonl, write 2:interview.md.tmp, rename to 2:interview.md, write 2:snapshot.json.tmp, rename to 2:snapshot.json, write 2:state.json.tmp, rename to 2:state.json
    1 x lock 1:lock, write 1:inventory.json.tmp, sync 1:inventory.json.tmp, rename to 1:inventory.json, sync /project/.ilchul
    19df26c164d5 0:001-keep-sessions.json
    cdbcae15105d 1:.gitignore
    d01f59ab108f 1:inventory.json
    e3b0c44298fc 1:lock
    b82e9b027274 2:decision-report.md
    e3b0c44298fc 2:drive.lock
    b74e58d62c3a 2:events.jsonl
    54b45e6d8b11 2:interview.md
    e3b0c44298fc 2:lock
    fc206f332b30 2:snapshot.json
    16627e121426 2:spec.edited.md
    c466d4b737fa 2:spec.md
    dcbc67221f29 2:state.json
    ");
}

fn interview(project: &Project<'_>, key: &WorkflowKey) {
    let control = workflow_drive::WorkflowDriveControl {
        interrupted: &|| false,
        monotonic_ms: &STANDS_STILL,
        pace: Pace {
            look_ms: 1,
            ..Pace::STANDARD
        },
        delays: Delays::NONE,
    };
    workflow_drive::drive(
        project,
        key,
        &|effect, _| answered(effect, draft()),
        &control,
        &mut |_| {},
    )
    .unwrap();
}

/// Twelve tasks, so long that the fold is written anew in between.
#[test]
fn tasks() {
    let (tape, clock) = (Tape::new(), StepClock::new(NOW_MS));
    let project = project(&tape, &clock);
    let mut queue = Queue::open(&project).unwrap();
    let own = queue.enlist().unwrap();
    let mut submit = |number: u64| {
        let command = KernelCommand::Submit {
            request: Box::new(KernelRequest {
                prompt: "x".repeat(9_000),
                ..kernel_worker::request(number)
            }),
            admission: Admission {
                tasks_max: 100,
                overflow: Overflow::Queue,
                running_max: 4,
            },
        };
        queue.submit(&kernel_worker::person(), &command).unwrap();
        if !number.is_multiple_of(3) {
            return;
        }
        let claim = KernelCommand::Claim {
            holder: own.holder.clone(),
            ttl_ms: 60_000,
            capacity: kernel_worker::capacity(),
            only: None,
            reach: None,
        };
        let KernelReply::Claimed(task, fence) = queue.submit(&Actor::Engine, &claim).unwrap()
        else {
            panic!("a task waits");
        };
        let hold = Hold { task, fence };
        let report = Box::new(AttemptReport::of(End::Completed));
        for command in [
            KernelCommand::Begin(hold),
            KernelCommand::Finish { hold, report },
        ] {
            queue.submit(&Actor::Engine, &command).unwrap();
        }
    };
    for number in 0..12 {
        submit(number);
    }
    // What somebody else reads says the same.
    let other = Queue::open(&project).unwrap();
    assert_eq!(other.kernel().tasks, queue.kernel().tasks);
    insta::assert_snapshot!(tape.played(), @r"
    0: /project/.ilchul/kernel/
    1: /project/.ilchul/kernel/history/
    2: /project/.ilchul/kernel/workers/
    1 x lock 0:lock
    1 x lock 2:0001.lock
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, sync /project/.ilchul/kernel, sync /project/.ilchul, sync /project, write 0:state.json.tmp, rename to 0:state.json
    11 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, create 0:history, append 1:000000.jsonl, sync 1:000000.jsonl, sync 0:history, sync /project/.ilchul/kernel, write 0:state.json.tmp, rename to 0:state.json
    11 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl
    d961f876fd35 0:events.jsonl
    9daa933903ff 1:000000.jsonl
    e3b0c44298fc 0:lock
    7ac18d314ae6 0:state.json
    e3b0c44298fc 2:0001.lock
    ");
}

/// Twenty turns that spend.
#[test]
fn a_ledger() {
    let (tape, clock) = (Tape::new(), StepClock::new(NOW_MS));
    let ledger = Ledger::open(spend::ledger_home(&tape, &clock, Path::new(HOME))).unwrap();
    let caps = spend::capped(1_000_000);
    for turn in 0..20 {
        let wish = spend::request("a", &format!("turn-{turn}"), 60);
        ledger.reserve(&wish, &caps).unwrap();
        match turn % 3 {
            0 => ledger.release(&wish.id).unwrap(),
            1 => ledger.settle(&wish.id, &spend::used(60)).unwrap(),
            _ => drop(ledger.meter(&wish.id, &spend::used(1), &caps).unwrap()),
        }
    }
    drop(ledger);
    // Whoever comes next ends what was left open.
    Ledger::open(spend::ledger_home(&tape, &clock, Path::new(HOME))).unwrap();
    insta::assert_snapshot!(tape.played(), @r"
    0: /person/.ilchul/spend/
    1: /person/.ilchul/spend/holders/
    1 x lock 0:lock
    1 x lock 1:0001.lock
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person
    14 x lock 0:lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl
    1 x lock 0:lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl, write 0:state.json.tmp, rename to 0:state.json
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl
    14 x lock 0:lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl
    1 x lock 0:lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl, write 0:state.json.tmp, rename to 0:state.json
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl
    7 x lock 0:lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl
    1 x lock 0:lock
    1 x lock 1:0001.lock, sync 0:events.jsonl, sync /person/.ilchul/spend, sync /person/.ilchul, sync /person, append 0:events.jsonl, sync 0:events.jsonl
    6c0349038737 0:events.jsonl
    e3b0c44298fc 1:0001.lock
    e3b0c44298fc 0:lock
    a34b880a35b6 0:state.json
    ");
}

/// Preferences and the record of what was cleaned away.
#[test]
fn preferences_and_what_was_pruned() {
    let (tape, clock) = (Tape::new(), StepClock::new(NOW_MS));
    let preferences = Preferences {
        disk: &tape,
        clock: &clock,
        home: PathBuf::from(HOME),
        project_key: "shop-0123456789ab".to_owned(),
        owner: "test".to_owned(),
    };
    let judge = |judge: Option<&str>| PreferenceChange::JudgeSet {
        judge: judge.map(str::to_owned),
    };
    for change in [
        PreferenceChange::AutopilotSet { on: true },
        judge(Some("anthropic/claude")),
        judge(Some("anthropic/claude")),
        judge(None),
    ] {
        preferences.change(&person(), &change).unwrap();
    }
    let log = PruneLog {
        disk: &tape,
        state_dir: PathBuf::from(HOME),
    };
    for sandbox in ["task_1-1", "task_2-4"] {
        let pruned = PrunedRuns {
            project: "shop-1".to_owned(),
            sandbox: sandbox.to_owned(),
        };
        log.record(&[pruned], NOW_MS).unwrap();
    }
    insta::assert_snapshot!(tape.played(), @r"
    0: /person/.ilchul/projects/shop-0123456789ab/preferences/
    1: /person/pruned/
    1 x create /person/.ilchul/projects/shop-0123456789ab/preferences, sync /person/.ilchul/projects/shop-0123456789ab, sync /person/.ilchul/projects, sync /person/.ilchul, sync /person
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, sync /person/.ilchul/projects/shop-0123456789ab/preferences, sync /person/.ilchul/projects/shop-0123456789ab, sync /person/.ilchul/projects, sync /person/.ilchul, sync /person, write 0:state.json.tmp, rename to 0:state.json, create /person/.ilchul/projects/shop-0123456789ab/preferences, sync /person/.ilchul/projects/shop-0123456789ab, sync /person/.ilchul/projects, sync /person/.ilchul, sync /person
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, write 0:state.json.tmp, rename to 0:state.json, create /person/.ilchul/projects/shop-0123456789ab/preferences, sync /person/.ilchul/projects/shop-0123456789ab, sync /person/.ilchul/projects, sync /person/.ilchul, sync /person
    1 x lock 0:lock, create /person/.ilchul/projects/shop-0123456789ab/preferences, sync /person/.ilchul/projects/shop-0123456789ab, sync /person/.ilchul/projects, sync /person/.ilchul, sync /person
    1 x lock 0:lock, append 0:events.jsonl, sync 0:events.jsonl, write 0:state.json.tmp, rename to 0:state.json
    2 x lock 1:lock, append 1:events.jsonl, sync 1:events.jsonl, sync /person/pruned, sync /person
    d0286af3d2f8 0:events.jsonl
    e3b0c44298fc 0:lock
    b2b396a3b3c2 0:state.json
    91a4c52ad530 1:events.jsonl
    e3b0c44298fc 1:lock
    ");
}
