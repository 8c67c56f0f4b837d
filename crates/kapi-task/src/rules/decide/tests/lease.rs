//! Leases: fences, lost workers, attempts that fail and are tried again, and cancelling.

use kapi_core::task_id::Fence;
use kapi_core::usage::Usage;

use super::{
    Ending, LEASE_MS, TestKernel, agent, by_agent, cancel, failed, give_back, locations, person,
    plain, request, word,
};
use crate::rules::command::{Hold, KernelCommand};
use crate::rules::decide::attempt::SETTLING_LOSSES_MAX;
use crate::rules::event::{KernelEvent, RetryCause};
use crate::rules::task::{AttemptReport, End, FailureKind, KernelTask, LOSSES_MAX};
use crate::rules::task_state::KernelTaskState;
use crate::rules::task_terms::Retry;

const fn retry(times: u32) -> Retry {
    Retry {
        times,
        backoff_ms: 1_000,
        backoff_ms_max: 5_000,
    }
}

fn used(tokens: u64) -> Usage {
    Usage {
        input_tokens: tokens,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    }
}

#[test]
fn whoever_comes_back_late_can_do_nothing_at_all() {
    let mut test_kernel = TestKernel::new();
    test_kernel.submit(plain());
    let late = test_kernel.start("worker 1");
    test_kernel.now_ms += 60_000;
    test_kernel.expire(&[]);
    let now = test_kernel.start("worker 2");
    assert!(now.fence > late.fence);
    let before = test_kernel.kernel.clone();
    let with_usage = KernelCommand::GiveBack {
        hold: late,
        why: "late".to_owned(),
        usage: used(7),
        pause_ms: 0,
    };
    let report = || Box::new(AttemptReport::of(End::Completed));
    let finish = KernelCommand::Finish {
        hold: late,
        report: report(),
    };
    let beat = KernelCommand::Beat {
        hold: late,
        ttl_ms: u64::MAX,
        usage: used(7),
    };
    for command in [KernelCommand::Begin(late), beat, finish, with_usage] {
        let denied = test_kernel.engine(&command).unwrap_err();
        assert_eq!(word(&denied), "Fenced", "{command:?}");
        assert_eq!(test_kernel.kernel, before, "{command:?}");
    }
    // A number nobody was given yet is as good as an old one.
    let future = Hold {
        fence: Fence(now.fence.0 + 1),
        ..now
    };
    assert_eq!(
        word(&test_kernel.finish(future, End::Completed).unwrap_err()),
        "Fenced"
    );
    test_kernel.finish(now, End::Completed).unwrap();
    assert_eq!(test_kernel.state(now.task), KernelTaskState::Completed);
}

#[test]
fn a_lease_lasts_until_its_very_millisecond_and_a_beat_moves_it() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    let hold = test_kernel.start("worker 1");
    test_kernel.now_ms += 59_999;
    test_kernel.expire(&[]);
    assert_eq!(test_kernel.state(task), KernelTaskState::Running);
    let beat = KernelCommand::Beat {
        hold,
        ttl_ms: LEASE_MS,
        usage: used(3),
    };
    test_kernel.engine(&beat).unwrap();
    test_kernel.now_ms += 59_999;
    test_kernel.expire(&[]);
    assert_eq!(test_kernel.state(task), KernelTaskState::Running);
    test_kernel.now_ms += 1;
    test_kernel.expire(&[]);
    assert_eq!(test_kernel.state(task), KernelTaskState::Pending);
    assert_eq!(test_kernel.task(task).losses, 1);
    assert_eq!(test_kernel.task(task).usage, used(3));
    // It waits for nothing but a worker.
    assert!(test_kernel.claim("worker 2").is_some());
}

#[test]
fn a_gone_holder_loses_what_it_holds_and_nobody_else_does() {
    let mut test_kernel = TestKernel::new();
    let (first, second) = (test_kernel.submit(plain()), test_kernel.submit(plain()));
    test_kernel.start("worker 1");
    test_kernel.claim("worker 2").unwrap();
    test_kernel.expire(&["worker 2", "worker 3"]);
    assert_eq!(test_kernel.state(first), KernelTaskState::Running);
    assert_eq!(test_kernel.state(second), KernelTaskState::Pending);
    // It was not launched, so the task is not to blame.
    assert_eq!(test_kernel.task(second).losses, 0);
    let retry_cause = test_kernel.task(second).retry_cause.as_deref();
    assert_eq!(retry_cause, Some("worker 2 died"));
    // As it is written, and as it was before.
    let written = serde_json::to_string(test_kernel.task(second)).unwrap();
    let earlier = written.replace("\"retry_cause\":", "\"setback\":");
    assert_ne!(earlier, written);
    for text in [written, earlier] {
        let read: KernelTask = serde_json::from_str(&text).unwrap();
        assert_eq!(&read, test_kernel.task(second));
    }
}

#[test]
fn a_task_that_waits_for_nothing_is_claimed_when_the_clock_is_set_back() {
    let mut test_kernel = TestKernel::new();
    test_kernel.submit(plain());
    test_kernel.now_ms -= 600_000;
    assert!(test_kernel.claim("worker 1").is_some());
}

#[test]
fn a_task_that_takes_its_workers_with_it_fails_in_the_end() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    for losses in 1..=LOSSES_MAX + SETTLING_LOSSES_MAX {
        test_kernel.start("worker 1");
        test_kernel.expire(&["worker 1"]);
        assert_eq!(
            (test_kernel.state(task), test_kernel.task(task).losses),
            (KernelTaskState::Pending, losses)
        );
        let is_given_up = test_kernel.task(task).is_only_settled();
        assert_eq!(is_given_up, losses > LOSSES_MAX, "{losses}");
    }
    test_kernel.start("worker 1");
    test_kernel.expire(&["worker 1"]);
    assert_eq!(test_kernel.state(task), KernelTaskState::Failed);
    let report = test_kernel.task(task).report.as_deref().unwrap();
    let End::Failed(failure) = &report.end else {
        panic!("it has failed: {report:?}");
    };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert_eq!(failure.message, "its worker died 14 times");
}

#[test]
fn workers_lost_before_a_launch_are_never_the_tasks_fault() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    for _ in 0..3 * LOSSES_MAX {
        test_kernel.claim("worker 1").unwrap();
        test_kernel.expire(&["worker 1"]);
    }
    assert_eq!(
        (test_kernel.state(task), test_kernel.task(task).losses),
        (KernelTaskState::Pending, 0)
    );
}

#[test]
fn a_failure_is_tried_again_after_pauses_that_double_up_to_their_limit() {
    let mut test_kernel = TestKernel::new();
    let mut asked = plain();
    asked.retry = retry(5);
    let task = test_kernel.submit(asked);
    for pause_ms in [1_000, 2_000, 4_000, 5_000, 5_000] {
        let hold = test_kernel.start("worker 1");
        test_kernel
            .finish(hold, failed(FailureKind::Agent))
            .unwrap();
        assert_eq!(test_kernel.state(task), KernelTaskState::Pending);
        test_kernel.now_ms += pause_ms - 1;
        assert_eq!(
            test_kernel.claim("worker 1"),
            None,
            "after {pause_ms} ms less one"
        );
        test_kernel.now_ms += 1;
    }
    let hold = test_kernel.start("worker 1");
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    assert_eq!(test_kernel.state(task), KernelTaskState::Failed);
    assert_eq!(test_kernel.task(task).attempts, 6);
}

#[test]
fn only_what_may_come_to_another_end_is_tried_again() {
    for (kind, is_tried) in [
        (FailureKind::Agent, true),
        (FailureKind::TimedOut, true),
        (FailureKind::EvalFailed, true),
        (FailureKind::Provider, true),
        (FailureKind::BudgetSpent, false),
        (FailureKind::PolicyDenied, false),
        (FailureKind::NotLaunched, false),
        (FailureKind::Lost, false),
    ] {
        let mut test_kernel = TestKernel::new();
        let mut asked = plain();
        asked.retry = retry(1);
        let task = test_kernel.submit(asked);
        let hold = test_kernel.start("worker 1");
        test_kernel.finish(hold, failed(kind)).unwrap();
        assert_eq!(
            test_kernel.state(task) == KernelTaskState::Pending,
            is_tried,
            "{kind:?}"
        );
    }
}

#[test]
fn what_was_given_back_or_lost_does_not_use_up_the_retries() {
    let mut test_kernel = TestKernel::new();
    let mut asked = plain();
    asked.retry = retry(1);
    let task = test_kernel.submit(asked);
    let hold = test_kernel.start("worker 1");
    test_kernel.engine(&give_back(hold)).unwrap();
    test_kernel.start("worker 1");
    test_kernel.expire(&["worker 1"]);
    let hold = test_kernel.start("worker 2");
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    assert_eq!(
        test_kernel.state(task),
        KernelTaskState::Pending,
        "it was never tried again"
    );
    test_kernel.now_ms += 1_000;
    let hold = test_kernel.start("worker 2");
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    assert_eq!(test_kernel.state(task), KernelTaskState::Failed);
}

#[test]
fn use_adds_up_over_beats_attempts_and_the_report() {
    let mut test_kernel = TestKernel::new();
    let mut asked = plain();
    asked.retry = retry(1);
    let task = test_kernel.submit(asked);
    let finish = |test_kernel: &mut TestKernel, end, tokens| {
        let hold = test_kernel.start("worker 1");
        let beat = KernelCommand::Beat {
            hold,
            ttl_ms: LEASE_MS,
            usage: used(10),
        };
        test_kernel.engine(&beat).unwrap();
        let mut report = Box::new(AttemptReport::of(end));
        report.usage = used(tokens);
        test_kernel
            .engine(&KernelCommand::Finish { hold, report })
            .unwrap();
    };
    finish(&mut test_kernel, failed(FailureKind::Agent), 1);
    test_kernel.now_ms += 1_000;
    finish(&mut test_kernel, End::Completed, 2);
    assert_eq!(test_kernel.task(task).usage, used(23));
}

/// Has the next worker settle a cancelled task whose worker was lost.
fn settle(test_kernel: &mut TestKernel) {
    let hold = test_kernel.start("worker 2");
    assert!(test_kernel.task(hold.task).is_only_settled());
    test_kernel.finish(hold, End::Cancelled).unwrap();
}

#[test]
fn a_cancelled_task_ends_once_its_worker_is_done_with_it() {
    let endings: [(&str, Ending<'_>); 4] = [
        ("stopped", &|test_kernel, hold| {
            test_kernel.finish(hold, End::Cancelled).unwrap();
        }),
        ("given back", &|test_kernel, hold| {
            test_kernel.engine(&give_back(hold)).unwrap();
        }),
        ("gone", &|test_kernel, _| {
            test_kernel.expire(&["worker 1"]);
            settle(test_kernel);
        }),
        ("run out", &|test_kernel, _| {
            test_kernel.now_ms += 60_000;
            test_kernel.expire(&[]);
            settle(test_kernel);
        }),
    ];
    for (name, ending) in endings {
        let mut test_kernel = TestKernel::new();
        let task = test_kernel.submit(plain());
        let hold = test_kernel.start("worker 1");
        test_kernel.ask(&person(), &cancel(task)).unwrap();
        assert_eq!(test_kernel.state(task), KernelTaskState::Running, "{name}");
        ending(&mut test_kernel, hold);
        assert_eq!(
            test_kernel.state(task),
            KernelTaskState::Cancelled,
            "{name}"
        );
        assert_eq!(test_kernel.kernel.totals.cancelled, 1, "{name}");
        assert_eq!(test_kernel.claim("worker 2"), None, "{name}");
    }
}

#[test]
fn a_cancelled_task_whose_worker_was_lost_waits_for_nothing_but_one_that_settles_it() {
    // Cancelled while a worker has it, and when it waits for the next.
    for is_cancelled_first in [true, false] {
        let mut test_kernel = TestKernel::new();
        let task = test_kernel.submit(plain());
        test_kernel.start("worker 1");
        if is_cancelled_first {
            test_kernel.ask(&person(), &cancel(task)).unwrap();
            test_kernel.expire(&["worker 1"]);
        } else {
            test_kernel.expire(&["worker 1"]);
            test_kernel.ask(&person(), &cancel(task)).unwrap();
        }
        test_kernel.ask(&person(), &cancel(task)).unwrap();
        assert_eq!(test_kernel.state(task), KernelTaskState::Pending);
        test_kernel.capacity = locations(0);
        // Workers that are lost before they settle it change nothing, those that begin are counted.
        test_kernel.claim("worker 2").unwrap();
        test_kernel.expire(&["worker 2"]);
        for losses in 2..=LOSSES_MAX + SETTLING_LOSSES_MAX {
            test_kernel.start("worker 2");
            test_kernel.expire(&["worker 2"]);
            assert_eq!(test_kernel.task(task).losses, losses);
            assert_eq!(test_kernel.state(task), KernelTaskState::Pending);
        }
        test_kernel.start("worker 2");
        test_kernel.expire(&["worker 2"]);
        assert_eq!(test_kernel.state(task), KernelTaskState::Cancelled);
        assert_eq!(test_kernel.kernel.totals.cancelled, 1);
    }
}

#[test]
fn what_was_cancelled_and_never_launched_ends_with_its_worker() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    test_kernel.claim("worker 1").unwrap();
    test_kernel.ask(&person(), &cancel(task)).unwrap();
    test_kernel.expire(&["worker 1"]);
    assert_eq!(test_kernel.state(task), KernelTaskState::Cancelled);
}

#[test]
fn a_cancelled_task_that_fails_is_not_tried_again() {
    let mut test_kernel = TestKernel::new();
    let mut asked = plain();
    asked.retry = retry(3);
    let task = test_kernel.submit(asked);
    let hold = test_kernel.start("worker 1");
    test_kernel.ask(&person(), &cancel(task)).unwrap();
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    assert_eq!(test_kernel.state(task), KernelTaskState::Failed);
}

#[test]
fn what_was_cancelled_between_claim_and_launch_is_never_launched() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    let hold = test_kernel.claim("worker 1").unwrap();
    test_kernel.ask(&person(), &cancel(task)).unwrap();
    assert_eq!(
        word(&test_kernel.engine(&KernelCommand::Begin(hold)).unwrap_err()),
        "WrongState"
    );
    test_kernel.engine(&give_back(hold)).unwrap();
    assert_eq!(test_kernel.state(task), KernelTaskState::Cancelled);
    assert_eq!(test_kernel.task(task).attempts, 0);
}

#[test]
fn an_agent_cancels_what_it_asked_for_and_nothing_else() {
    let mut test_kernel = TestKernel::new();
    let theirs = test_kernel.submit(request(by_agent("r1")));
    let other = test_kernel.submit(request(by_agent("r2")));
    let persons = test_kernel.submit(plain());
    test_kernel.ask(&agent("r1"), &cancel(theirs)).unwrap();
    for task in [other, persons] {
        let denied = test_kernel.ask(&agent("r1"), &cancel(task)).unwrap_err();
        assert_eq!(word(&denied), "NotYours");
        assert_eq!(test_kernel.state(task), KernelTaskState::Pending);
    }
}

#[test]
fn a_task_that_was_given_back_says_why_and_may_be_had_at_once() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(plain());
    let hold = test_kernel.start("worker 1");
    test_kernel.engine(&give_back(hold)).unwrap();
    let (last, _) = test_kernel.log.last().unwrap();
    assert!(
        matches!(
            last,
            KernelEvent::Requeued {
                cause: RetryCause::GivenBack,
                ..
            }
        ),
        "{last:?}"
    );
    assert_eq!(
        test_kernel.task(task).retry_cause.as_deref(),
        Some("told to stop")
    );
    assert_eq!(test_kernel.claim("worker 2").unwrap().task, task);
}
