//! How runs end.

use std::{fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process;
use rustix::process::{Signal, kill_process};

use crate::place::{Place, processes};
use crate::{Behaviour, await_condition, mark, notify, run};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    (
        "exit codes",
        |location| ends(location, &["true", "exit 7", "exit 125", "exit 137"]),
        "Exited(0) Exited(7) Exited(125) Exited(137)",
    ),
    (
        "signals",
        |location| ends(location, &["kill -9 $$", "kill -TERM $$", "kill -SEGV $$"]),
        "Signaled(9) Signaled(15) Signaled(11)",
    ),
    (
        "a program that is not there",
        no_program,
        "execve: No such file or directory (os error 2)",
    ),
    (
        "a directory that is not there",
        no_directory,
        "chdir: No such file or directory (os error 2)",
    ),
    ("the deadline", deadline, "DeadlinePassed, 0 left"),
    ("silence", idle, "IdlePassed, 0 left"),
    ("cancelling", cancel, "Cancelled, 0 left"),
    ("a daemon that stays behind", daemon, "Exited(3), 0 left"),
    ("orphans are collected", orphans, "no zombies"),
    ("the death of the host side", killed, "0 left, then again"),
];

fn ends(location: &Place, lines: &[&str]) -> String {
    let ends = lines
        .iter()
        .map(|line| run(location, &location.shell(line)).end);
    ends.collect::<Vec<String>>().join(" ")
}

/// Leaves of an error the call and the system's word.
fn brief(end: &str, call: &str) -> String {
    let why = end.rsplit(": ").next().unwrap_or_default();
    let named = if end.contains(&format!("{call} on ")) {
        call
    } else {
        end
    };
    format!("{named}: {why}")
}

fn no_program(location: &Place) -> String {
    let mut request = location.shell("");
    request.argv = vec!["/no/such/program".to_owned()];
    brief(&run(location, &request).end, "execve")
}

fn no_directory(location: &Place) -> String {
    let mut request = location.shell("echo ran");
    request.cwd = "/nowhere".to_owned();
    brief(&run(location, &request).end, "chdir")
}

/// A shell line that leaves a daemon which no group kill reaches, says so, and does `then`.
fn with_daemon(mark: &str, then: &str) -> String {
    format!(
        "(setsid setsid sleep {mark} >/dev/null 2>&1 </dev/null &); \
         until pgrep -f '^sleep {mark}' >/dev/null; do :; done; echo up; {then}"
    )
}

fn left(end: &str, mark: &str) -> String {
    format!("{end}, {} left", processes(mark).len())
}

fn deadline(location: &Place) -> String {
    let mark = mark(location, 6001);
    let mut request = location.shell(&with_daemon(&mark, &format!("trap '' TERM; sleep {mark}")));
    request.deadline_ms = 4_000;
    loop {
        let reply = run(location, &request);
        if reply.stdout.contains("up") {
            return left(&reply.end, &mark);
        }
        // A busy machine starts a container as slowly.
        request.deadline_ms *= 2;
        assert!(request.deadline_ms < 120_000, "{reply:?}");
    }
}

fn idle(location: &Place) -> String {
    let mark = mark(location, 6002);
    let mut idle_ms = 2_500;
    loop {
        // It speaks for longer than it may be silent, so only its silence can be what ends it.
        let pause = format!("{}.{:03}", idle_ms / 5_000, idle_ms / 5 % 1_000);
        let line = format!("for n in 1 2 3 4 5 6; do sleep {pause}; echo $n; done; sleep {mark}");
        let mut request = location.shell(&line);
        request.idle_ms = idle_ms;
        let reply = run(location, &request);
        if reply.stdout.contains('6') {
            return left(&reply.end, &mark);
        }
        // A busy machine is silent for longer before it begins.
        idle_ms *= 2;
        assert!(idle_ms < 60_000, "{reply:?}");
    }
}

fn cancel(location: &Place) -> String {
    let mark = mark(location, 6003);
    let mut request = location.shell(&with_daemon(&mark, &format!("sleep {mark}")));
    request.cancel_on = "up".to_owned();
    left(&run(location, &request).end, &mark)
}

fn daemon(location: &Place) -> String {
    let mark = mark(location, 6004);
    let reply = run(location, &location.shell(&with_daemon(&mark, "exit 3")));
    left(&reply.end, &mark)
}

fn orphans(location: &Place) -> String {
    let line = "for n in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &) ; done; sleep 0.2; \
                until ! grep -qs '^State:.*Z' /proc/[0-9]*/status; do sleep 0.05; done; echo no zombies";
    notify(&run(location, &location.shell(line)))
}

fn killed(location: &Place) -> String {
    let mark = mark(location, 6005);
    let line = with_daemon(&mark, &format!("touch up; sleep {mark}"));
    let driver = location.driver(&[], &location.shell(&line));
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| process::run(driver, &cancel, &mut |_| {}));
        let up = location.path("work/up");
        await_condition("the sandbox is up", || up.exists());
        fs::remove_file(&up).unwrap();
        let host_side = format!("{}\0run\0", location.text("helper"));
        for pid in processes(&host_side) {
            kill_process(pid, Signal::KILL).unwrap();
        }
        await_condition("everything has ended", || processes(&mark).is_empty());
        running.join().unwrap().unwrap();
    });
    let again = notify(&run(location, &location.shell("echo again")));
    format!("{} left, then {again}", processes(&mark).len())
}
