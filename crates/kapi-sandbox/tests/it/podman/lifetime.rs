//! Nothing outlives a run, however it ends: exit, deadline, cancel, death of podman or of the host
//! side.

use std::{fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process;
use rustix::process::{Pid, Signal, kill_process};

use super::yard::{Yard, as_each_user};
use crate::workplace::{await_condition, count_processes};

/// A number of seconds no other test sleeps, so that its processes can be told from others.
fn mark(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

/// A shell line that leaves a daemon which no group kill reaches, says so, and does `then`.
fn with_daemon(mark: &str, then: &str) -> String {
    format!(
        "(setsid setsid sh -c 'echo > /tmp/daemon; exec sleep {mark}' >/dev/null 2>&1 </dev/null &); \
         until test -e /tmp/daemon; do sleep 0.01; done; echo up; {then}"
    )
}

#[test]
fn a_daemon_does_not_outlive_the_program() {
    as_each_user(|yard| {
        let mark = mark(5001);
        let reported = yard.run(&yard.shell(&with_daemon(&mark, "exit 3")));
        assert_eq!(
            (reported.end.as_str(), reported.stdout.as_str()),
            ("Exited(3)", "up\n"),
            "{reported:?}"
        );
        assert_eq!(count_processes(&mark), 0);
        assert_eq!(yard.remains(), "");
    });
}

#[test]
fn the_deadline_ends_everything() {
    as_each_user(|yard| {
        let mark = mark(5002);
        let mut ask = yard.shell(&with_daemon(
            &mark,
            &format!("trap '' TERM INT HUP; sleep {mark}"),
        ));
        ask.deadline_ms = 4_000;
        loop {
            let reported = yard.run(&ask);
            assert_eq!(reported.end, "DeadlinePassed", "{reported:?}");
            assert_eq!(count_processes(&mark), 0);
            assert_eq!(yard.remains(), "");
            if reported.stdout == "up\n" {
                break;
            }
            // A busy machine starts a container as slowly; the driver has a limit, too.
            ask.deadline_ms *= 2;
            assert!(ask.deadline_ms < 60_000, "{reported:?}");
        }
    });
}

#[test]
fn a_deadline_before_the_start_leaves_nothing_either() {
    as_each_user(|yard| {
        for deadline_ms in [1, 40, 80, 110, 140, 180] {
            let mark = mark(5006);
            let mut ask = yard.shell(&format!("sleep {mark}"));
            ask.deadline_ms = deadline_ms;
            let reported = yard.run(&ask);
            assert_eq!(
                reported.end, "DeadlinePassed",
                "{deadline_ms}: {reported:?}"
            );
            let left = (count_processes(&mark), yard.remains());
            assert_eq!(left, (0, String::new()), "{deadline_ms}");
            // The monitor of a half-made container says its name in its arguments.
            let name = format!("kapi-{}", ask.name);
            await_condition("no monitor is left", || count_processes(&name) == 0);
        }
    });
}

#[test]
fn cancel_ends_everything() {
    as_each_user(|yard| {
        let mark = mark(5003);
        let mut ask = yard.shell(&with_daemon(&mark, &format!("sleep {mark}")));
        ask.cancel_on = "up".to_owned();
        let reported = yard.run(&ask);
        assert_eq!(reported.end, "Cancelled", "{reported:?}");
        assert_eq!(count_processes(&mark), 0);
        assert_eq!(yard.remains(), "");
    });
}

/// Finds the first process whose command line begins with some words and holds another.
fn find(first: &str, also: &str) -> Option<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let matches = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.starts_with(first) && line.contains(also)
    };
    pids.find(matches).and_then(Pid::from_raw)
}

/// Runs a line in a second process, kills one of its processes by number, and checks that all end.
fn check_killed(yard: &Yard, mark: &str, victim: impl Fn(&Yard) -> Option<Pid> + Sync) {
    let line = with_daemon(mark, &format!("touch up; sleep {mark}"));
    let program = yard.driver(&yard.shell(&line));
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| process::run(program, &cancel, &mut |_| {}));
        let up = yard.path("work/up");
        await_condition("the container is up", || up.exists());
        fs::remove_file(&up).unwrap();
        await_condition("both run", || count_processes(mark) >= 2);
        kill_process(victim(yard).unwrap(), Signal::KILL).unwrap();
        await_condition("everything has ended", || count_processes(mark) == 0);
        running.join().unwrap().unwrap();
    });
}

#[test]
fn the_death_of_the_host_side_ends_everything_and_the_next_start_clears_up() {
    as_each_user(|yard| {
        let mark = mark(5004);
        check_killed(yard, &mark, |yard| {
            find(&format!("{} run", yard.text("helper")), "")
        });
        let swept = yard.sweep();
        assert_eq!((swept.as_str(), yard.remains()), ("1", String::new()));
        let reported = yard.run(&yard.shell("echo again"));
        assert_eq!(reported.stdout, "again\n", "{reported:?}");
    });
}

#[test]
fn the_death_of_podman_ends_everything() {
    as_each_user(|yard| {
        let mark = mark(5005);
        let name = format!("--name=kapi-{} ", yard.shell("").name);
        check_killed(yard, &mark, |_| find("/usr/bin/podman ", &name));
        assert_eq!(yard.remains(), "");
    });
}

#[test]
fn a_kill_of_the_whole_container_is_told_as_such() {
    as_each_user(|yard| {
        let mark = mark(5007);
        let ask = yard.shell(&format!("touch up; sleep {mark}"));
        let reported = thread::scope(|scope| {
            let running = scope.spawn(|| yard.run(&ask));
            let up = yard.path("work/up");
            await_condition("the container is up", || up.exists());
            yard.podman(&["kill", &format!("kapi-{}", ask.name)]);
            running.join().unwrap()
        });
        assert_eq!(reported.end, "Signaled(9)", "{reported:?}");
        assert_eq!((count_processes(&mark), yard.remains()), (0, String::new()));
    });
}
