//! Many sandboxes at once, and host sides that die at any instant: nothing stays behind.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::launch::run;
use kapi_sandbox::spec::{IsolationLevel, Mount, MountAccess, OverlayLayer};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::ProcessEnd;
use rustix::process::geteuid;

use crate::workplace::{Workplace, as_each_user, await_condition, count_processes, shell, spec};

/// How many run at once.
const SWARM: usize = 100;
/// How many host sides are killed, and how far apart in their lives.
const KILLED: u32 = 80;
const APART: Duration = Duration::from_millis(1);
/// The longest that one is waited for on a machine that is busy.
const BACKSTOP: Duration = Duration::from_secs(240);

/// Counts the processes of this machine that run a program, dead ones that nobody collected included.
fn running(program: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.starts_with(program))
        })
        .count()
}

/// Counts the descriptors of this process, which keep alive whatever they stand for.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_hundred_at_once_leave_nothing() {
    let location = Workplace::new(geteuid().as_raw());
    location.directory("lower");
    location.file("lower/file", "shared\n");
    for index in 0..SWARM {
        location.directory(&format!("upper{index}"));
        location.directory(&format!("scratch{index}"));
    }
    let mark = format!("5001.{}", std::process::id());
    let before = descriptors();
    std::thread::scope(|scope| {
        for index in 0..SWARM {
            let (location, mark) = (&location, &mark);
            scope.spawn(move || run_one(location, index, mark));
        }
    });
    assert_eq!(count_processes(&mark), 0);
    assert_eq!(running(&location.path("helper")), 0);
    assert_eq!(descriptors(), before);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&location.text("")), "{mounts}");
    for index in 0..SWARM {
        let written = fs::read_to_string(location.path(&format!("upper{index}/file"))).unwrap();
        assert_eq!(written, format!("{index}\n"));
    }
    assert_eq!(
        fs::read_to_string(location.path("lower/file")).unwrap(),
        "shared\n"
    );
}

/// Runs the sandbox of one number, which leaves a daemon and writes its number.
fn run_one(location: &Workplace, index: usize, mark: &str) {
    let mut spec = spec(IsolationLevel::Native, &location.path("home"));
    spec.self_exe = location.path("helper");
    spec.name = format!("swarm-{}-{index}", std::process::id());
    spec.mounts = vec![Mount {
        host: location.path("lower"),
        inside: "/workspace".into(),
        access: MountAccess::CopyOnWrite(OverlayLayer {
            upper: location.path(&format!("upper{index}")),
            work: location.path(&format!("scratch{index}")),
            beneath: Vec::new(),
        }),
    }];
    let line = format!(
        "(setsid sleep {mark} &) >/dev/null 2>&1; cd /workspace && cat file && echo {index} > file"
    );
    let callbacks = RunCallbacks {
        on_line: &mut |_| {},
        on_listeners: &mut drop,
    };
    let ran = run(&spec, shell(&line), &Cancel::new(), callbacks).unwrap();
    assert_eq!(
        ran.finished.end,
        ProcessEnd::Exited(0),
        "{:?}",
        ran.finished
    );
    assert_eq!(ran.finished.stdout.tail, b"shared\n");
}

/// Starts a driver and kills it when it is time, wherever it is then.
#[expect(
    clippy::disallowed_methods,
    reason = "a plain child of which nothing but itself is killed"
)]
fn kill_when(location: &Workplace, line: &str, is_time: &dyn Fn() -> bool) {
    let mut request = location.shell(line);
    let layer = format!(
        "cow:{}:{}",
        location.text("upper"),
        location.text("scratch")
    );
    request
        .mounts
        .push((location.text("work"), "/copy".to_owned(), layer));
    let program = location.driver(&[], &["run"], &request);
    let mut child = std::process::Command::new(program.path)
        .args(program.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&program.stdin).unwrap();
    drop(stdin);
    while !is_time() {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_host_side_killed_at_any_instant_leaves_nothing_and_its_layer_can_be_used_again() {
    as_each_user(|location| {
        location.directory("upper");
        location.directory("scratch");
        let mark = format!("5002.{}", std::process::id());
        let line = format!("(setsid sleep {mark} &); echo x >> /copy/file; sleep {mark}");
        for index in 0..KILLED {
            let started = Instant::now();
            kill_when(location, &line, &|| started.elapsed() >= APART * index);
        }
        // On a busy machine none of them came so far as to write; the last one does.
        let written = location.path("upper").join("file");
        let has_written = || fs::read(&written).is_ok_and(|text| text.ends_with(b"x\n"));
        let started = Instant::now();
        kill_when(location, &line, &|| {
            has_written() || started.elapsed() > BACKSTOP
        });
        await_condition("everything has ended", || {
            count_processes(&mark) == 0 && running(&location.path("helper")) == 0
        });
        let mut request = location.shell("sort -u /copy/file; echo again");
        let layer = format!(
            "cow:{}:{}",
            location.text("upper"),
            location.text("scratch")
        );
        request
            .mounts
            .push((location.text("work"), "/copy".to_owned(), layer));
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "x\nagain\n", "{reply:?}");
    });
}
