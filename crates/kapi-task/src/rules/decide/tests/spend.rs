//! What a day may cost: counted from every word of a worker, and nothing is begun beyond it.

use std::collections::BTreeMap;

use kapi_core::usage::Usage;

use crate::rules::admission::{Waits, waits};
use crate::rules::command::{Command, Hold};
use crate::rules::decide::tests::{Desk, LEASE_MS, NOW, give_back, plain};
use crate::rules::state::Kernel;
use crate::rules::task::{End, Report};
use crate::rules::task_state::State;

const DAY_MS: i64 = 86_400_000;

fn dollars(usd_micros: u64) -> Usage {
    Usage {
        usd_micros: Some(usd_micros),
        ..Usage::default()
    }
}

fn beat(desk: &mut Desk, hold: Hold, usd_micros: u64) {
    let beat = Command::Beat {
        hold,
        ttl_ms: LEASE_MS,
        usage: dollars(usd_micros),
    };
    desk.engine(&beat).unwrap();
}

#[test]
fn every_word_of_a_worker_is_counted_once_on_its_day() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    let hold = desk.start("worker 1");
    beat(&mut desk, hold, 3);
    beat(&mut desk, hold, 4);
    let back = Command::GiveBack {
        hold,
        why: "told to stop".to_owned(),
        usage: dollars(5),
        pause_ms: 0,
    };
    desk.engine(&back).unwrap();
    let hold = desk.start("worker 2");
    desk.now_ms = NOW + DAY_MS;
    let mut report = Report::of(End::Completed);
    report.usage = dollars(30);
    let finish = Command::Finish {
        hold,
        report: Box::new(report),
    };
    desk.engine(&finish).unwrap();
    assert_eq!(desk.kernel.spent_on_day_of(NOW), 12);
    assert_eq!(desk.kernel.spent_on_day_of(desk.now_ms), 30);
    assert_eq!(desk.task(task).usage.usd_micros, Some(42));
    // It is kept, and what was long ago is forgotten.
    let json = serde_json::to_string(&desk.kernel).unwrap();
    assert!(
        json.contains(r#""spent":{"2026-11-22":12,"2026-11-23":30}"#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Kernel>(&json).unwrap(), desk.kernel);
    for day in 2..60 {
        desk.kernel.book(&dollars(1), NOW + day * DAY_MS);
    }
    assert_eq!(desk.kernel.spent.len(), 31);
    assert_eq!(desk.kernel.spent_on_day_of(NOW), 0);
}

#[test]
fn a_day_that_has_cost_what_it_may_begins_nothing_more_until_the_next() {
    let mut desk = Desk::new();
    desk.capacity.usd_micros_per_day = Some(2_500_000);
    let first = desk.submit(plain());
    let second = desk.submit(plain());
    let hold = desk.start("worker 1");
    beat(&mut desk, hold, 2_499_999);
    let next = desk.claim("worker 2").unwrap();
    assert_eq!(next.task, second);
    desk.engine(&give_back(next)).unwrap();
    beat(&mut desk, hold, 1);
    assert_eq!(desk.claim("worker 2"), None);
    let usd_micros = 2_500_000;
    let waiting = waits(&desk.kernel, &desk.capacity, desk.now_ms);
    assert_eq!(
        waiting,
        BTreeMap::from([(second, Waits::Spend { usd_micros })])
    );
    assert_eq!(
        waiting[&second].to_string(),
        "spend: the daily cap of $2.50 is spent"
    );
    // What runs goes on.
    desk.finish(hold, End::Completed).unwrap();
    assert_eq!(desk.state(first), State::Completed);
    desk.now_ms = NOW + DAY_MS;
    assert_eq!(desk.claim("worker 2").unwrap().task, second);
}

#[test]
fn a_task_that_is_given_back_with_a_pause_rests_for_everybody() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    let hold = desk.start("worker 1");
    let back = Command::GiveBack {
        hold,
        why: "commit 1 is not here".to_owned(),
        usage: Usage::default(),
        pause_ms: 5_000,
    };
    desk.engine(&back).unwrap();
    assert_eq!(
        desk.task(task).setback.as_deref(),
        Some("commit 1 is not here")
    );
    assert_eq!((desk.task(task).losses, desk.task(task).retries), (0, 0));
    assert_eq!(desk.claim("worker 2"), None);
    desk.now_ms += 5_000;
    assert_eq!(desk.claim("worker 2").unwrap().task, task);
}
