//! Limits that are really hit: only the offender ends, and the run says which limit it was.

use std::fs;
use std::path::PathBuf;

use kapi_sys::cancel::Cancel;
use kapi_sys::process;
use rustix::process::geteuid;

use crate::request::{Reply, Request};
use crate::room::with_room;
use crate::workplace::{Workplace, as_each_user, await_condition};

const MIB: u64 = 1 << 20;

fn limited(location: &Workplace, line: &str, resources: &[(&str, u64)]) -> Request {
    let mut request = location.shell(line);
    request.resources = resources
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    request
}

fn run(location: &Workplace, line: &str, resources: &[(&str, u64)]) -> Reply {
    location.run(&limited(location, line, resources))
}

/// Tells whether this place's sandboxes get control groups.
fn has_groups(location: &Workplace) -> bool {
    let reply = run(location, "true", &[("memory", 64 * MIB)]);
    assert_eq!(reply.end, "Exited(0)", "{reply:?}");
    reply.grade.contains("memory by cgroup")
}

#[test]
fn a_memory_hog_is_ended_and_the_run_says_so() {
    as_each_user(|location| {
        let line = "/helper try hoard 200; code=$?; echo after $code; exit $code";
        let reply = run(location, line, &[("memory", 64 * MIB)]);
        assert_eq!(
            (reply.exceeded.as_str(), reply.met.as_str()),
            ("memory 64 MiB", ""),
            "{reply:?}"
        );
        assert!(!reply.stdout.contains("took"), "{reply:?}");
        if has_groups(location) {
            // The kernel ends the one process; its shell sees that and goes on.
            assert_eq!(reply.stdout, "after 137\n", "{reply:?}");
        } else {
            assert!(reply.grade.contains("memory by sampling"), "{reply:?}");
            assert_eq!(reply.end, "Signaled(9)", "{reply:?}");
        }
    });
}

#[test]
fn a_limit_that_the_program_overcomes_is_only_told() {
    as_each_user(|location| {
        let line = "/helper try hoard 200; echo after $?";
        let reply = run(location, line, &[("memory", 64 * MIB)]);
        let reported = (reply.exceeded.as_str(), reply.met.as_str());
        if has_groups(location) {
            assert_eq!(reply.end, "Exited(0)", "{reply:?}");
            assert_eq!(reported, ("", "memory 64 MiB"), "{reply:?}");
        } else {
            // Without groups the whole sandbox is ended, so nothing in it can go on.
            assert_eq!(reply.end, "Signaled(9)", "{reply:?}");
            assert_eq!(reported, ("memory 64 MiB", ""), "{reply:?}");
        }
    });
}

#[test]
fn memory_within_the_limit_is_left_alone() {
    as_each_user(|location| {
        let line = "/helper try memory 40; node -e 'console.log(1)'";
        let reply = run(location, line, &[("memory", 512 * MIB)]);
        assert_eq!(reply.stdout, "took 40\n1\n", "{reply:?}");
        assert_eq!((reply.exceeded + &reply.met).as_str(), "");
    });
}

#[test]
fn temporary_files_are_bounded_by_the_memory() {
    as_each_user(|location| {
        let reply = run(
            location,
            "/helper try shared-memory 200",
            &[("memory", 64 * MIB)],
        );
        assert!(!reply.stdout.contains("took"), "{reply:?}");
    });
}

#[test]
fn a_fork_bomb_stays_small_and_the_run_says_so() {
    as_each_user(|location| {
        // Every child waits, so that the number stays at its height until it has been seen.
        let script = "import os, sys, time\nn = 0\nwhile n < 100:\n    try:\n        pid = os.fork()\n    except OSError:\n        break\n    if pid == 0:\n        time.sleep(600)\n        os._exit(0)\n    n += 1\nprint(n, flush=True)\ntime.sleep(float(sys.argv[2]))\nos._exit(int(sys.argv[1]))";
        let mut bomb = limited(location, "", &[("processes", 20)]);
        for (code, exceeded, met) in [("1", "processes 20", ""), ("0", "", "processes 20")] {
            let reply = with_room(400, |height_ms| {
                let height = format!("{}.{:03}", height_ms / 1_000, height_ms % 1_000);
                bomb.argv = ["/usr/bin/python3", "-c", script, code, &height]
                    .map(str::to_owned)
                    .to_vec();
                let reply = location.run(&bomb);
                assert_eq!(reply.stdout, "19\n", "{reply:?}");
                let is_seen = !reply.exceeded.is_empty() || !reply.met.is_empty();
                is_seen.then_some(reply)
            });
            assert_eq!(
                (reply.exceeded.as_str(), reply.met.as_str()),
                (exceeded, met),
                "{reply:?}"
            );
            assert!(reply.grade.contains("processes by "), "{reply:?}");
        }
        let free = run(location, "sleep 0 & wait; echo ok", &[("processes", 20)]);
        assert_eq!(
            (free.stdout.as_str(), free.exceeded.as_str()),
            ("ok\n", ""),
            "{free:?}"
        );
    });
}

#[test]
fn the_limit_of_processes_is_each_sandboxs_own() {
    as_each_user(|location| {
        let line = "for i in 1 2 3 4 5 6; do sleep 1 & done; wait; echo all";
        let resources = [("processes", 8)];
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| run(location, line, &resources)))
                .collect();
            for one in runs {
                let reply = one.join().unwrap();
                assert_eq!(reply.stdout, "all\n", "{reply:?}");
            }
        });
    });
}

#[test]
fn a_file_that_is_too_large_ends_its_writer() {
    as_each_user(|location| {
        let line = "head -c 2097152 /dev/zero > big; code=$?; wc -c < big; exit $code";
        let reply = run(location, line, &[("size", MIB)]);
        assert_eq!(
            (reply.end.as_str(), reply.stdout.as_str()),
            ("Exited(153)", "1048576\n"),
            "{reply:?}"
        );
        assert_eq!(reply.exceeded, "file size 1 MiB", "{reply:?}");
    });
}

#[test]
fn open_files_are_bounded_and_no_limit_can_be_raised() {
    as_each_user(|location| {
        let line = "ulimit -n; ulimit -n 65 2>/dev/null || echo kept; for i in $(seq 3 70); do eval \"exec $i</dev/null\" || break; done 2>/dev/null; echo $i";
        let reply = run(location, line, &[("files", 64)]);
        assert_eq!(reply.stdout, "64\nkept\n64\n", "{reply:?}");
    });
}

#[test]
fn filling_the_disk_ends_the_sandbox() {
    as_each_user(|location| {
        let line = "while :; do head -c 1048576 /dev/zero >> fill; done";
        let reply = run(location, line, &[("disk", 16 * MIB)]);
        assert_eq!(
            (reply.end.as_str(), reply.exceeded.as_str()),
            ("Signaled(9)", "disk 16 MiB"),
            "{reply:?}"
        );
        assert!(reply.grade.contains("disk by sampling"), "{reply:?}");
        // What that run left is not the next one's: it has the whole limit again, and no more.
        assert!(fs::metadata(location.path("work/fill")).unwrap().len() > 16 * MIB);
        let reply = run(
            location,
            "head -c 10485760 /dev/zero > small; echo ok",
            &[("disk", 16 * MIB)],
        );
        // The last look is after its end.
        assert_eq!(
            (
                reply.stdout.as_str(),
                reply.exceeded.as_str(),
                reply.met.as_str()
            ),
            ("ok\n", "", ""),
            "{reply:?}"
        );
        let reply = run(location, line, &[("disk", 16 * MIB)]);
        assert_eq!(reply.exceeded, "disk 16 MiB", "{reply:?}");
        fs::remove_file(location.path("work/fill")).unwrap();
    });
}

#[test]
fn a_short_run_that_passes_the_disk_limit_is_told() {
    as_each_user(|location| {
        let line = "sleep 0.3; fallocate -l 33554432 big; echo ok";
        // A look may fall between the writing and the end, and end it before; the next looks are a
        // second later.
        let mut short = (0..20).map(|_| {
            drop(fs::remove_file(location.path("work/big")));
            run(location, line, &[("disk", 16 * MIB)])
        });
        let ended = short.find(|reply| reply.end != "Signaled(9)");
        let reply = ended.expect("one that no look falls into");
        assert_eq!(
            (reply.end.as_str(), reply.stdout.as_str()),
            ("Exited(0)", "ok\n"),
            "{reply:?}"
        );
        assert_eq!(reply.met, "disk 16 MiB", "{reply:?}");
        fs::remove_file(location.path("work/big")).unwrap();
    });
}

#[test]
fn only_the_offender_ends() {
    as_each_user(|location| {
        let calm = limited(
            location,
            "touch up; until test -e go; do sleep 0.02; done; echo calm",
            &[("memory", 64 * MIB), ("processes", 50)],
        );
        let hog = limited(location, "/helper try hoard 300", &[("memory", 64 * MIB)]);
        std::thread::scope(|scope| {
            let calm = scope.spawn(|| location.run(&calm));
            let up = location.path("work/up");
            await_condition("the calm one is up", || up.exists());
            let hog = location.run(&hog);
            location.file("work/go", "");
            assert_eq!(hog.exceeded, "memory 64 MiB", "{hog:?}");
            let calm = calm.join().unwrap();
            assert_eq!(
                (
                    calm.end.as_str(),
                    calm.stdout.as_str(),
                    calm.exceeded.as_str()
                ),
                ("Exited(0)", "calm\n", ""),
                "{calm:?}"
            );
        });
    });
}

/// Returns a name for sandboxes that no other test on this machine gives, whoever runs it.
fn own_name(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Lists the control groups of sandboxes of a name, in every tree that the machine has.
fn groups_left(name: &str) -> Vec<PathBuf> {
    let name = format!("kapi-{name}.");
    let mut left = Vec::new();
    let mut to_see = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = to_see.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(&name) {
                left.push(entry.path());
            }
            to_see.push(entry.path());
        }
    }
    left
}

#[test]
fn no_control_group_is_left() {
    let name = own_name("limits-left");
    as_each_user(|location| {
        for line in ["true", "sleep 100 & exit 3", "/helper try hoard 200"] {
            let resources = [("memory", 64 * MIB), ("processes", 30), ("cpu", 500)];
            let mut request = limited(location, line, &resources);
            request.name.clone_from(&name);
            request.deadline_ms = 10_000;
            let reply = location.run(&request);
            let is_held = reply.grade.contains("cpu by cgroup");
            let is_missed = reply.grade.contains("without cpu limit (");
            assert!(is_held != is_missed, "{reply:?}");
            assert!(
                !geteuid().is_root() || location.is_ordinary() || is_held,
                "{reply:?}"
            );
            assert_eq!(groups_left(&name), Vec::<PathBuf>::new());
        }
        let mut failed = limited(location, "true", &[("memory", 64 * MIB)]);
        failed.name.clone_from(&name);
        failed.argv = vec!["/no/such/program".to_owned()];
        assert!(location.run(&failed).end.contains("execve"));
        assert_eq!(groups_left(&name), Vec::<PathBuf>::new());
    });
}

#[test]
fn groups_of_a_killed_host_side_are_removed_by_the_next() {
    let name = own_name("limits-killed");
    as_each_user(|location| {
        let n_groups = usize::from(has_groups(location));
        let mut request = limited(location, "touch up; sleep 100", &[("memory", 64 * MIB)]);
        request.name.clone_from(&name);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let driver = location.driver(&[], &["run"], &request);
            let running = scope.spawn(|| process::run(driver, &cancel, &mut |_| {}));
            let up = location.path("work/up");
            await_condition("the sandbox is up", || up.exists());
            assert_eq!(groups_left(&name).len(), n_groups);
            // Ends the driver with the signal that leaves it no time for anything.
            cancel.raise();
            running.join().unwrap().unwrap();
        });
        // Whoever runs next removes it, and that may be another test's sandbox.
        let is_gone = || {
            let next = run(location, "true", &[("memory", 64 * MIB)]);
            assert_eq!(next.end, "Exited(0)", "{next:?}");
            groups_left(&name).is_empty()
        };
        // The kernel may still be burying the last process when the next run starts.
        await_condition("the group is gone", is_gone);
    });
}

#[test]
fn the_limit_of_processors_is_in_force() {
    let location = Workplace::new(geteuid().as_raw());
    let mut request = limited(&location, "read line", &[("cpu", 500)]);
    let name = own_name("limits-cpu");
    request.name.clone_from(&name);
    if !run(&location, "true", &[("cpu", 500)])
        .grade
        .contains("cpu by cgroup v1")
    {
        // Nobody can be given a share of processors on this host by this user; the grade says so.
        return;
    }
    request.argv[2] = "until test -e go; do sleep 0.01; done".to_owned();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| location.run(&request));
        await_condition("the group is made and joined", || {
            groups_left(&name).first().is_some_and(|group| {
                let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
                read("cpu.cfs_quota_us") == "50000\n" && read("cgroup.procs").lines().count() >= 3
            })
        });
        location.file("work/go", "");
        assert_eq!(running.join().unwrap().end, "Exited(0)");
    });
}
