//! Requests that are the same: while the first is under way, after it, and what sets a key free.

use kapi_core::task_id::TaskId;

use super::{Desk, cancel, failed, person, plain};
use crate::rules::command::Overflow;
use crate::rules::decide::Answer;
use crate::rules::request::{Key, Request};
use crate::rules::task::{End, FailureKind};

const TTL_MS: u64 = 600_000;

fn keyed(text: &str) -> Request {
    let key = Some(Key {
        text: text.to_owned(),
        ttl_ms: TTL_MS,
    });
    Request { key, ..plain() }
}

fn again(desk: &mut Desk) -> Answer {
    desk.try_submit(&person(), keyed("k")).unwrap()
}

#[test]
fn a_key_holds_as_long_as_its_task_is_under_way() {
    let mut desk = Desk::new();
    let task = desk.submit(keyed("k"));
    for _ in 0..3 {
        desk.now_ms += 600_001;
        assert_eq!(again(&mut desk), Answer::Duplicate(task));
    }
    desk.start("worker 1");
    assert_eq!(again(&mut desk), Answer::Duplicate(task));
    let other = desk.try_submit(&person(), keyed("another")).unwrap();
    assert!(matches!(other, Answer::Submitted(_)), "{other:?}");
}

#[test]
fn after_a_good_end_it_holds_for_its_time_also_when_the_task_is_forgotten() {
    let mut desk = Desk::new();
    let task = desk.submit(keyed("k"));
    let hold = desk.start("worker 1");
    desk.finish(hold, End::Completed).unwrap();
    assert_eq!(again(&mut desk), Answer::Duplicate(task));
    desk.kernel.take_ended();
    desk.now_ms += 599_999;
    assert_eq!(again(&mut desk), Answer::Duplicate(task));
    desk.now_ms += 1;
    assert_eq!(again(&mut desk), Answer::Submitted(TaskId::new(2)));
    assert_eq!(again(&mut desk), Answer::Duplicate(TaskId::new(2)));
}

#[test]
fn a_bad_end_and_a_cancel_set_it_free_at_once() {
    let mut desk = Desk::new();
    desk.submit(keyed("k"));
    let hold = desk.start("worker 1");
    desk.finish(hold, failed(FailureKind::BudgetSpent)).unwrap();
    assert_eq!(again(&mut desk), Answer::Submitted(TaskId::new(2)));
    desk.ask(&person(), &cancel(TaskId::new(2))).unwrap();
    assert_eq!(again(&mut desk), Answer::Submitted(TaskId::new(3)));
}

#[test]
fn a_key_without_time_holds_only_while_its_task_is_under_way() {
    let mut desk = Desk::new();
    let mut asked = keyed("k");
    asked.key.as_mut().unwrap().ttl_ms = 0;
    let first = desk.submit(asked.clone());
    let again = desk.try_submit(&person(), asked.clone()).unwrap();
    assert_eq!(again, Answer::Duplicate(first));
    let hold = desk.start("worker 1");
    desk.finish(hold, End::Completed).unwrap();
    assert!(desk.submit(asked) > first);
}

#[test]
fn a_refusal_takes_no_key() {
    let mut desk = Desk::new();
    desk.admission.tasks_max = 0;
    assert!(desk.try_submit(&person(), keyed("k")).is_err());
    assert!(desk.kernel.keys.is_empty());
    desk.admission.tasks_max = 1;
    assert_eq!(again(&mut desk), Answer::Submitted(TaskId::new(1)));
}

#[test]
fn the_same_request_is_told_so_even_when_every_place_is_taken() {
    let mut desk = Desk::new();
    desk.admission.tasks_max = 1;
    desk.admission.overflow = Overflow::Reject;
    let task = desk.submit(keyed("k"));
    assert_eq!(again(&mut desk), Answer::Duplicate(task));
}

#[test]
fn keys_whose_time_is_over_do_not_pile_up() {
    let mut desk = Desk::new();
    for number in 0..1_000 {
        let mut asked = keyed(&format!("k{number}"));
        asked.key.as_mut().unwrap().ttl_ms = 10;
        desk.submit(asked);
        let hold = desk.start("worker 1");
        desk.finish(hold, End::Completed).unwrap();
        desk.kernel.take_ended();
        desk.now_ms += 10;
        assert!(desk.kernel.keys.len() <= 64, "{}", desk.kernel.keys.len());
    }
}
