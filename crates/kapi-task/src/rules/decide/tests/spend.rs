//! What a day may cost: counted from every word of a worker, and nothing is begun beyond it.

use std::collections::BTreeMap;

use kapi_core::usage::Usage;

use crate::rules::admission::{Waits, waits};
use crate::rules::command::{Hold, KernelCommand};
use crate::rules::decide::tests::{LEASE_MS, NOW, TestKernel, give_back, plain};
use crate::rules::state::KernelState;
use crate::rules::task::{AttemptReport, End};
use crate::rules::task_state::KernelTaskState;

const DAY_MS: i64 = 86_400_000;

fn dollars(usd_micros: u64) -> Usage {
    Usage {
        usd_micros: Some(usd_micros),
        ..Usage::default()
    }
}

fn beat(test_kernel: &mut TestKernel, hold: Hold, usd_micros: u64) {
    let beat = KernelCommand::Beat {
        hold,
        ttl_ms: LEASE_MS,
        usage: dollars(usd_micros),
    };
    test_kernel.engine(&beat).unwrap();
}

#[test]
fn every_word_of_a_worker_is_counted_once_on_its_day() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    let hold = test_kernel.start("worker 1");
    beat(&mut test_kernel, hold, 3);
    beat(&mut test_kernel, hold, 4);
    let back = KernelCommand::GiveBack {
        hold,
        why: "told to stop".to_owned(),
        usage: dollars(5),
        pause_ms: 0,
    };
    test_kernel.engine(&back).unwrap();
    let hold = test_kernel.start("worker 2");
    test_kernel.now_ms = NOW + DAY_MS;
    let mut report = AttemptReport::of(End::Completed);
    report.usage = dollars(30);
    let finish = KernelCommand::Finish {
        hold,
        report: Box::new(report),
    };
    test_kernel.engine(&finish).unwrap();
    assert_eq!(test_kernel.kernel.spent_on_day_of(NOW), 12);
    assert_eq!(test_kernel.kernel.spent_on_day_of(test_kernel.now_ms), 30);
    assert_eq!(test_kernel.task(task).usage.usd_micros, Some(42));
    // It is kept, and what was long ago is forgotten.
    let json = serde_json::to_string(&test_kernel.kernel).unwrap();
    assert!(
        json.contains(r#""spent":{"2026-11-22":12,"2026-11-23":30}"#),
        "{json}"
    );
    assert_eq!(
        serde_json::from_str::<KernelState>(&json).unwrap(),
        test_kernel.kernel
    );
    for day in 2..60 {
        test_kernel.kernel.grants(&dollars(1), NOW + day * DAY_MS);
    }
    assert_eq!(test_kernel.kernel.spent.len(), 31);
    assert_eq!(test_kernel.kernel.spent_on_day_of(NOW), 0);
}

#[test]
fn a_day_that_has_cost_what_it_may_begins_nothing_more_until_the_next() {
    let mut test_kernel = TestKernel::new();
    test_kernel.capacity.usd_micros_per_day = Some(2_500_000);
    let first = test_kernel.submit(plain());
    let second = test_kernel.submit(plain());
    let hold = test_kernel.start("worker 1");
    beat(&mut test_kernel, hold, 2_499_999);
    let next = test_kernel.claim("worker 2").unwrap();
    assert_eq!(next.task, second);
    test_kernel.engine(&give_back(next)).unwrap();
    beat(&mut test_kernel, hold, 1);
    assert_eq!(test_kernel.claim("worker 2"), None);
    let usd_micros = 2_500_000;
    let waiting = waits(
        &test_kernel.kernel,
        &test_kernel.capacity,
        test_kernel.now_ms,
    );
    assert_eq!(
        waiting,
        BTreeMap::from([(second, Waits::Spend { usd_micros })])
    );
    assert_eq!(
        waiting[&second].to_string(),
        "spend: the daily cap of $2.50 is spent"
    );
    // What runs goes on.
    test_kernel.finish(hold, End::Completed).unwrap();
    assert_eq!(test_kernel.state(first), KernelTaskState::Completed);
    test_kernel.now_ms = NOW + DAY_MS;
    assert_eq!(test_kernel.claim("worker 2").unwrap().task, second);
}

#[test]
fn a_task_that_is_given_back_with_a_pause_rests_for_everybody() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    let hold = test_kernel.start("worker 1");
    let back = KernelCommand::GiveBack {
        hold,
        why: "commit 1 is not here".to_owned(),
        usage: Usage::default(),
        pause_ms: 5_000,
    };
    test_kernel.engine(&back).unwrap();
    assert_eq!(
        test_kernel.task(task).retry_cause.as_deref(),
        Some("commit 1 is not here")
    );
    assert_eq!(
        (
            test_kernel.task(task).losses,
            test_kernel.task(task).retries
        ),
        (0, 0)
    );
    assert_eq!(test_kernel.claim("worker 2"), None);
    test_kernel.now_ms += 5_000;
    assert_eq!(test_kernel.claim("worker 2").unwrap().task, task);
}
