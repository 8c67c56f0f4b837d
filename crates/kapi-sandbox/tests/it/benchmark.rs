//! Programs that are kept to processors and counted, as each user, in each level that can.

use kapi_sandbox::benchmark::{check_counter, processors};
use kapi_sandbox::counter::KernelCounter;

use crate::request::{Reply, Request};
use crate::workplace::{Workplace, as_each_user};

const ALLOWED: &str = "grep Cpus_allowed_list /proc/self/status";

fn each_level(location: &Workplace, line: &str) -> [Request; 2] {
    [location.shell(line), location.bare(line)]
}

fn last_processor() -> u32 {
    *processors().unwrap().last().unwrap()
}

#[test]
fn a_program_stays_on_its_processors() {
    let number = last_processor();
    as_each_user(|location| {
        for request in each_level(location, ALLOWED) {
            let all = location.run(&request);
            let one = location.run(&Request {
                processors: vec![number],
                ..request
            });
            assert_eq!(one.stdout, format!("Cpus_allowed_list:\t{number}\n"));
            assert_eq!(all.end, "Exited(0)", "{all:?}");
        }
    });
}

#[test]
fn a_confined_program_cannot_leave_its_processors() {
    let number = last_processor();
    as_each_user(|location| {
        let line = format!("taskset -cp 0-{number} $$ >/dev/null 2>&1; echo $?");
        let free = location.run(&location.shell(&line));
        assert_eq!(free.stdout, "0\n", "{free:?}");
        let held = location.run(&Request {
            processors: vec![number],
            ..location.shell(&line)
        });
        assert_eq!(held.stdout, "1\n", "{held:?}");
    });
}

#[test]
fn processors_that_are_not_there_are_refused() {
    as_each_user(|location| {
        let refused = location.run(&Request {
            processors: vec![1_000],
            ..location.shell("echo it ran")
        });
        assert!(refused.end.contains("sched_setaffinity"), "{refused:?}");
        assert_eq!(refused.stdout, "");
    });
}

fn counted(location: &Workplace, request: Request, counters: &[&str]) -> Reply {
    let counters = counters.iter().map(|&name| name.to_owned()).collect();
    location.run(&Request {
        counters,
        ..request
    })
}

#[test]
fn what_a_program_starts_is_counted_with_it() {
    let line =
        |n: u32| format!("bash -c 'i=0; while [ $i -lt {n} ]; do i=$((i+1)); done' & wait; true");
    as_each_user(|location| {
        let (short, long) = (line(1_000), line(200_000));
        let pairs = each_level(location, &short)
            .into_iter()
            .zip(each_level(location, &long));
        for (short, long) in pairs {
            let [short, long] =
                [short, long].map(|request| counted(location, request, &["cpu", "faults"]));
            let (few, many) = (&short.counted, &long.counted);
            assert_eq!((few.len(), many.len()), (2, 2), "{short:?} {long:?}");
            assert!(many[0] > 3 * few[0], "{few:?} {many:?}");
            // Two shells touch memory, whatever they do with it.
            assert!(few[1] > 50 && many[1] > 50, "{few:?} {many:?}");
        }
    });
}

#[test]
fn instructions_are_counted_where_the_machine_counts_them_and_refused_elsewhere() {
    let is_there = check_counter(KernelCounter::Instructions);
    as_each_user(|location| {
        for request in each_level(location, "true") {
            let found = counted(location, request, &["instructions"]);
            if is_there.is_ok() {
                assert!(found.counted[0] > 1_000, "{found:?}");
            } else {
                assert!(found.end.contains("perf_event_open"), "{found:?}");
            }
        }
    });
}
