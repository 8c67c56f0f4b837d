//! Nothing outlives a run, however it ends: exit, deadline, cancel, death of the launcher or of the
//! host side.

use std::thread;

use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::launch::run;
use kapi_sandbox::spec::IsolationLevel;
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, OutputLine, ProcessEnd};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tempfile::TempDir;

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user, await_condition, count_processes, shell, spec};

/// A shell line that leaves a daemon which no group kill reaches, says so, and does `then`.
fn with_daemon(mark: &str, then: &str) -> String {
    format!(
        "(setsid setsid sleep {mark} >/dev/null 2>&1 </dev/null &); until pgrep -f '^sleep {mark}' >/dev/null; do :; done; echo up; {then}"
    )
}

/// A number of seconds no other test sleeps, so that its processes can be told from others.
fn mark(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

fn both(location: &Workplace, line: &str) -> [Request; 2] {
    [location.shell(line), location.bare(line)]
}

#[test]
fn a_daemon_does_not_outlive_the_program() {
    as_each_user(|location| {
        let mark = mark(4001);
        for request in both(location, &with_daemon(&mark, "exit 3")) {
            let reply = location.run(&request);
            assert_eq!(
                (reply.end.as_str(), reply.stdout.as_str()),
                ("Exited(3)", "up\n"),
                "{reply:?}"
            );
            assert_eq!(count_processes(&mark), 0, "{}", request.level);
        }
    });
}

#[test]
fn the_deadline_ends_everything() {
    as_each_user(|location| {
        let mark = mark(4002);
        for mut request in both(
            location,
            &with_daemon(&mark, &format!("trap '' TERM INT HUP; sleep {mark}")),
        ) {
            request.deadline_ms = 1_500;
            let mut has_started = false;
            while !has_started {
                // A busy machine starts a daemon as slowly; the driver has a limit, too.
                assert!(request.deadline_ms < 60_000, "{}", request.level);
                let reply = location.run(&request);
                assert_eq!(reply.end, "DeadlinePassed", "{reply:?}");
                assert_eq!(count_processes(&mark), 0, "{}", request.level);
                has_started = reply.stdout == "up\n";
                request.deadline_ms *= 2;
            }
        }
    });
}

#[test]
fn cancel_ends_everything() {
    as_each_user(|location| {
        let mark = mark(4003);
        for mut request in both(location, &with_daemon(&mark, &format!("sleep {mark}"))) {
            request.cancel_on = "up".to_owned();
            let reply = location.run(&request);
            assert_eq!(reply.end, "Cancelled", "{reply:?}");
            assert_eq!(count_processes(&mark), 0, "{}", request.level);
        }
    });
}

#[test]
fn when_a_run_returns_not_one_of_many_generations_is_alive() {
    let home = TempDir::new().unwrap();
    let mark = mark(4006);
    // Each generation is the parent of the next, so that a sweep needs one pass for each.
    let line = format!(
        "f() {{ if [ $1 = 0 ]; then sleep {mark}; else f $(($1 - 1)) & wait; fi; }}; (exec >/dev/null 2>&1; f 40) & \
         until pgrep -f '^sleep {mark}' >/dev/null; do :; done; echo up; wait"
    );
    for level in [IsolationLevel::Native, IsolationLevel::None] {
        let mut kill_launcher = |_: OutputLine<'_>| {
            kill_process(child_of(getpid()).unwrap(), Signal::KILL).unwrap();
        };
        let spec = spec(level, home.path());
        let callbacks = RunCallbacks {
            on_line: &mut kill_launcher,
            on_listeners: &mut drop,
        };
        let ran = run(&spec, shell(&line), &Cancel::new(), callbacks).unwrap();
        let finished = ran.finished;
        // No waiting here: the promise is about the very moment of return.
        let n_alive = count_processes(&mark);
        assert_eq!(
            (finished.end, n_alive),
            (ProcessEnd::Signaled(9), 0),
            "{level:?}"
        );
    }
}

/// Runs a request in a second process, kills one of its processes by number, and checks that all of
/// them end.
fn check_killed(
    location: &Workplace,
    request: &Request,
    mark: &str,
    victim: impl Fn(&str) -> Option<Pid> + Sync,
) {
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let program = location.driver(&[], &["run"], request);
        let running = scope.spawn(|| process::run(program, &cancel, &mut |_| {}));
        let up = location.path("work/up");
        await_condition("the sandbox is up", || up.exists());
        std::fs::remove_file(&up).unwrap();
        // The daemon and the shell or its sleep: what must not survive is really there.
        await_condition("both run", || count_processes(mark) >= 2);
        let victim = victim(&location.text("helper")).unwrap();
        kill_process(victim, Signal::KILL).unwrap();
        await_condition("everything has ended", || count_processes(mark) == 0);
        running.join().unwrap().unwrap();
    });
}

/// Finds the first process whose command line and number match a rule.
fn find(matches: impl Fn(&[u8], i32) -> bool) -> Option<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut pids = pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        matches(&line, *pid)
    });
    pids.next().and_then(Pid::from_raw)
}

/// Finds the driver: the helper that was given `run`.
fn host_side(helper: &str) -> Option<Pid> {
    let expected = format!("{helper}\0run\0");
    find(|line, _| line == expected.as_bytes())
}

/// Finds the launcher: the driver's only child.
fn launcher(helper: &str) -> Option<Pid> {
    child_of(host_side(helper)?)
}

/// Finds a child of a process.
fn child_of(parent: Pid) -> Option<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    find(|_, pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest);
        after_name.and_then(|rest| rest.split_whitespace().nth(1)) == Some(parent.as_str())
    })
}

#[test]
fn the_death_of_the_host_side_ends_everything() {
    as_each_user(|location| {
        let mark = mark(4004);
        for request in both(
            location,
            &with_daemon(&mark, &format!("touch up; sleep {mark}")),
        ) {
            check_killed(location, &request, &mark, host_side);
        }
    });
}

#[test]
fn the_death_of_the_launcher_ends_everything() {
    as_each_user(|location| {
        let mark = mark(4005);
        for request in both(
            location,
            &with_daemon(&mark, &format!("touch up; sleep {mark}")),
        ) {
            check_killed(location, &request, &mark, launcher);
        }
    });
}
