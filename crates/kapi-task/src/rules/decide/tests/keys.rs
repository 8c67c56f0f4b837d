//! Requests that are the same: while the first is under way, after it, and what sets a key free.

use kapi_core::task_id::KernelTaskId;

use super::{TestKernel, cancel, failed, person, plain};
use crate::rules::command::Overflow;
use crate::rules::decide::KernelReply;
use crate::rules::request::{KernelRequest, RequestKey};
use crate::rules::task::{End, FailureKind};

const TTL_MS: u64 = 600_000;

fn keyed(text: &str) -> KernelRequest {
    let key = Some(RequestKey {
        text: text.to_owned(),
        ttl_ms: TTL_MS,
    });
    KernelRequest { key, ..plain() }
}

fn again(test_kernel: &mut TestKernel) -> KernelReply {
    test_kernel.try_submit(&person(), keyed("k")).unwrap()
}

#[test]
fn a_key_holds_as_long_as_its_task_is_under_way() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(keyed("k"));
    for _ in 0..3 {
        test_kernel.now_ms += 600_001;
        assert_eq!(again(&mut test_kernel), KernelReply::Duplicate(task));
    }
    test_kernel.start("worker 1");
    assert_eq!(again(&mut test_kernel), KernelReply::Duplicate(task));
    let other = test_kernel.try_submit(&person(), keyed("another")).unwrap();
    assert!(matches!(other, KernelReply::Submitted(_)), "{other:?}");
}

#[test]
fn after_a_good_end_it_holds_for_its_time_also_when_the_task_is_forgotten() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(keyed("k"));
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    assert_eq!(again(&mut test_kernel), KernelReply::Duplicate(task));
    test_kernel.kernel.take_ended();
    test_kernel.now_ms += 599_999;
    assert_eq!(again(&mut test_kernel), KernelReply::Duplicate(task));
    test_kernel.now_ms += 1;
    assert_eq!(
        again(&mut test_kernel),
        KernelReply::Submitted(KernelTaskId::new(2))
    );
    assert_eq!(
        again(&mut test_kernel),
        KernelReply::Duplicate(KernelTaskId::new(2))
    );
}

#[test]
fn a_bad_end_and_a_cancel_set_it_free_at_once() {
    let mut test_kernel = TestKernel::new();
    test_kernel.submit(keyed("k"));
    let hold = test_kernel.start("worker 1");
    test_kernel
        .finish(hold, failed(FailureKind::BudgetSpent))
        .unwrap();
    assert_eq!(
        again(&mut test_kernel),
        KernelReply::Submitted(KernelTaskId::new(2))
    );
    test_kernel
        .ask(&person(), &cancel(KernelTaskId::new(2)))
        .unwrap();
    assert_eq!(
        again(&mut test_kernel),
        KernelReply::Submitted(KernelTaskId::new(3))
    );
}

#[test]
fn a_key_without_time_holds_only_while_its_task_is_under_way() {
    let mut test_kernel = TestKernel::new();
    let mut asked = keyed("k");
    asked.key.as_mut().unwrap().ttl_ms = 0;
    let first = test_kernel.submit(asked.clone());
    let again = test_kernel.try_submit(&person(), asked.clone()).unwrap();
    assert_eq!(again, KernelReply::Duplicate(first));
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    assert!(test_kernel.submit(asked) > first);
}

#[test]
fn a_refusal_takes_no_key() {
    let mut test_kernel = TestKernel::new();
    test_kernel.admission.tasks_max = 0;
    assert!(test_kernel.try_submit(&person(), keyed("k")).is_err());
    assert!(test_kernel.kernel.keys.is_empty());
    test_kernel.admission.tasks_max = 1;
    assert_eq!(
        again(&mut test_kernel),
        KernelReply::Submitted(KernelTaskId::new(1))
    );
}

#[test]
fn the_same_request_is_told_so_even_when_every_place_is_taken() {
    let mut test_kernel = TestKernel::new();
    test_kernel.admission.tasks_max = 1;
    test_kernel.admission.overflow = Overflow::Reject;
    let task = test_kernel.submit(keyed("k"));
    assert_eq!(again(&mut test_kernel), KernelReply::Duplicate(task));
}

#[test]
fn keys_whose_time_is_over_do_not_pile_up() {
    let mut test_kernel = TestKernel::new();
    for number in 0..1_000 {
        let mut asked = keyed(&format!("k{number}"));
        asked.key.as_mut().unwrap().ttl_ms = 10;
        test_kernel.submit(asked);
        let hold = test_kernel.start("worker 1");
        test_kernel.finish(hold, End::Completed).unwrap();
        test_kernel.kernel.take_ended();
        test_kernel.now_ms += 10;
        assert!(
            test_kernel.kernel.keys.len() <= 64,
            "{}",
            test_kernel.kernel.keys.len()
        );
    }
}
