//! Whose turn it is, and how many may run.

use std::collections::BTreeMap;

use kapi_core::task_id::KernelTaskId;

use super::{
    NOW, TestKernel, by_person, cancel, definition, failed, person, plain, request, run_of,
};
use crate::rules::admission::{Waits, waits};
use crate::rules::command::Overflow;
use crate::rules::denied::KernelDenial;
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::KernelRequest;
use crate::rules::task::{End, FailureKind};
use crate::rules::task_terms::{Priority, Retry};

fn of(user: &str, priority: Priority) -> KernelRequest {
    KernelRequest {
        priority,
        ..request(by_person(user))
    }
}

fn manual() -> RunTrigger {
    RunTrigger::Manual { source: None }
}

/// Claims until nothing is left, and returns the tasks in the order of their turns.
fn order(test_kernel: &mut TestKernel) -> Vec<KernelTaskId> {
    let mut tasks = Vec::new();
    while let Some(hold) = test_kernel.claim("worker 1") {
        tasks.push(hold.task);
    }
    tasks
}

#[test]
fn the_more_urgent_come_first_and_the_older_before_the_younger() {
    let mut test_kernel = TestKernel::new();
    let low = test_kernel.submit(of("user", Priority::Low));
    let normal = test_kernel.submit(of("user", Priority::Normal));
    let high = test_kernel.submit(of("user", Priority::High));
    let normal_too = test_kernel.submit(of("user", Priority::Normal));
    assert_eq!(order(&mut test_kernel), [high, normal, normal_too, low]);
}

#[test]
fn waiting_makes_urgent_a_step_every_quarter_of_an_hour() {
    let quarter = 15 * 60 * 1_000;
    for (waited_ms, low_is_first) in [
        (2 * quarter - 1, false),
        (2 * quarter, false),
        (3 * quarter, true),
    ] {
        let mut test_kernel = TestKernel::new();
        let low = test_kernel.submit(of("a", Priority::Low));
        test_kernel.now_ms += waited_ms;
        let high = test_kernel.submit(of("b", Priority::High));
        let first = test_kernel.claim("worker 1").unwrap().task;
        // As urgent, neither group was served yet: then the older is.
        let expected = if low_is_first || waited_ms == 2 * quarter {
            low
        } else {
            high
        };
        assert_eq!(first, expected, "after {waited_ms} ms");
    }
}

#[test]
fn a_low_task_is_not_starved_by_urgent_ones_that_keep_coming() {
    let mut test_kernel = TestKernel::new();
    let low = test_kernel.submit(of("a", Priority::Low));
    let mut turns = 0;
    loop {
        test_kernel.submit(of("b", Priority::High));
        test_kernel.now_ms += 60_000;
        let hold = test_kernel.start("worker 1");
        turns += 1;
        assert!(turns <= 31, "it still waits after {turns} others");
        if hold.task == low {
            break;
        }
        test_kernel.finish(hold, End::Completed).unwrap();
    }
}

#[test]
fn groups_take_turns_however_much_one_of_them_wants() {
    let mut test_kernel = TestKernel::new();
    for _ in 0..1_000 {
        test_kernel.submit(of("greedy", Priority::Normal));
    }
    let modest: Vec<KernelTaskId> = (0..5)
        .map(|_| test_kernel.submit(of("modest", Priority::Normal)))
        .collect();
    test_kernel.capacity.project = 10;
    let turns = order(&mut test_kernel);
    let locations: Vec<usize> = modest
        .iter()
        .filter_map(|task| turns.iter().position(|turn| turn == task))
        .collect();
    assert_eq!(locations, [1, 3, 5, 7, 9]);
}

#[test]
fn one_who_joins_late_does_not_have_to_wait_and_does_not_push_ahead_twice() {
    let mut test_kernel = TestKernel::new();
    let a: Vec<KernelTaskId> = (0..4)
        .map(|_| test_kernel.submit(of("a", Priority::Normal)))
        .collect();
    let b: Vec<KernelTaskId> = (0..4)
        .map(|_| test_kernel.submit(of("b", Priority::Normal)))
        .collect();
    let first: Vec<KernelTaskId> = (0..4)
        .map(|_| test_kernel.claim("worker 1").unwrap().task)
        .collect();
    assert_eq!(first, [a[0], b[0], a[1], b[1]]);
    let c: Vec<KernelTaskId> = (0..2)
        .map(|_| test_kernel.submit(of("c", Priority::Normal)))
        .collect();
    assert_eq!(
        order(&mut test_kernel),
        [c[0], a[2], b[2], c[1], a[3], b[3]]
    );
}

#[test]
fn the_project_the_agents_and_the_loops_each_have_their_places() {
    let mut test_kernel = TestKernel::new();
    test_kernel.capacity.project = 4;
    test_kernel.capacity.per_agent = BTreeMap::from([("oracle".to_owned(), 1)]);
    let with = |agent: &str| KernelRequest {
        agent: agent.to_owned(),
        ..plain()
    };
    let oracles = [
        test_kernel.submit(with("oracle")),
        test_kernel.submit(with("oracle")),
    ];
    let mut looking = definition("look");
    looking.max_concurrent = 2;
    let runs: Vec<KernelTaskId> = (0..3)
        .map(|_| test_kernel.submit(run_of(looking.clone(), manual())))
        .collect();
    let plains = [test_kernel.submit(plain()), test_kernel.submit(plain())];
    let taken = order(&mut test_kernel);
    assert_eq!(taken, [oracles[0], runs[0], plains[0], runs[1]]);
    let waiting = waits(
        &test_kernel.kernel,
        &test_kernel.capacity,
        test_kernel.now_ms,
    );
    let expected = BTreeMap::from([
        (
            oracles[1],
            Waits::Agent {
                agent: "oracle".to_owned(),
                locations: 1,
            },
        ),
        (runs[2], Waits::Loop { locations: 2 }),
        (plains[1], Waits::Project { locations: 4 }),
    ]);
    assert_eq!(waiting, expected);
    assert_eq!(test_kernel.kernel.n_held(), 4);
}

#[test]
fn what_waits_for_a_time_or_only_for_a_worker_says_so() {
    let mut test_kernel = TestKernel::new();
    let mut asked = plain();
    asked.retry = Retry {
        times: 1,
        backoff_ms: 500,
        backoff_ms_max: 500,
    };
    let again = test_kernel.submit(asked);
    let hold = test_kernel.start("worker 1");
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    let free = test_kernel.submit(plain());
    let waiting = waits(
        &test_kernel.kernel,
        &test_kernel.capacity,
        test_kernel.now_ms,
    );
    let at_ms = NOW + 500;
    let expected = BTreeMap::from([(again, Waits::Until { at_ms }), (free, Waits::Worker)]);
    assert_eq!(waiting, expected);
    let words: Vec<String> = waiting.values().map(ToString::to_string).collect();
    assert_eq!(words, ["waiting to retry", "waiting for a worker"]);
}

#[test]
fn a_worker_that_wants_one_task_gets_that_one_or_nothing() {
    let mut test_kernel = TestKernel::new();
    let first = test_kernel.submit(plain());
    let second = test_kernel.submit(plain());
    assert_eq!(
        test_kernel
            .claim_only("worker 1", Some(second))
            .unwrap()
            .task,
        second
    );
    assert_eq!(test_kernel.claim_only("worker 1", Some(second)), None);
    test_kernel.capacity.project = 1;
    assert_eq!(test_kernel.claim_only("worker 1", Some(first)), None);
}

#[test]
fn a_queue_takes_until_it_is_full_and_without_one_only_what_can_run() {
    for (overflow, capacity) in [(Overflow::Queue, 5), (Overflow::Reject, 2)] {
        let mut test_kernel = TestKernel::new();
        test_kernel.admission.tasks_max = 5;
        test_kernel.admission.running_max = 2;
        test_kernel.admission.overflow = overflow;
        for _ in 0..capacity {
            test_kernel.submit(plain());
        }
        let denied = test_kernel.try_submit(&person(), plain()).unwrap_err();
        let full = KernelDenial::OverCapacity {
            running: capacity,
            max: capacity,
        };
        assert_eq!(denied, full);
        assert_eq!(
            denied.to_string(),
            format!("over capacity ({capacity}/{capacity})")
        );
        // Any end makes room.
        test_kernel
            .ask(&person(), &cancel(KernelTaskId::new(1)))
            .unwrap();
        test_kernel.submit(plain());
    }
}

#[test]
fn the_memory_of_whose_turn_it_was_has_an_end() {
    let mut test_kernel = TestKernel::new();
    for number in 0..1_100 {
        test_kernel.submit(of(&format!("user{number}"), Priority::Normal));
        let hold = test_kernel.start("worker 1");
        test_kernel.finish(hold, End::Completed).unwrap();
        assert!(test_kernel.kernel.served.len() <= 1_025);
    }
}
