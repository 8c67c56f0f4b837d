//! Leases: fences, lost workers, attempts that fail and are tried again, and cancelling.

use kapi_core::task_id::Fence;
use kapi_core::usage::Usage;

use super::{
    Desk, Ending, LEASE_MS, agent, by_agent, cancel, failed, give_back, person, plain, request,
    word,
};
use crate::rules::command::{Command, Hold};
use crate::rules::decide::attempt::LOSSES_MAX;
use crate::rules::event::{KernelEvent, Setback};
use crate::rules::task::{End, FailureKind, Report};
use crate::rules::task_state::State;
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
    }
}

#[test]
fn whoever_comes_back_late_can_do_nothing_at_all() {
    let mut desk = Desk::new();
    desk.submit(plain());
    let late = desk.start("worker 1");
    desk.now_ms += 60_000;
    desk.expire(&[]);
    let now = desk.start("worker 2");
    assert!(now.fence > late.fence);
    let before = desk.kernel.clone();
    let with_usage = Command::GiveBack {
        hold: late,
        why: "late".to_owned(),
        usage: used(7),
        pause_ms: 0,
    };
    let report = || Box::new(Report::of(End::Completed));
    let finish = Command::Finish {
        hold: late,
        report: report(),
    };
    let beat = Command::Beat {
        hold: late,
        ttl_ms: u64::MAX,
        usage: used(7),
    };
    for command in [Command::Begin(late), beat, finish, with_usage] {
        let denied = desk.engine(&command).unwrap_err();
        assert_eq!(word(&denied), "Fenced", "{command:?}");
        assert_eq!(desk.kernel, before, "{command:?}");
    }
    // A number nobody was given yet is as good as an old one.
    let future = Hold {
        fence: Fence(now.fence.0 + 1),
        ..now
    };
    assert_eq!(
        word(&desk.finish(future, End::Completed).unwrap_err()),
        "Fenced"
    );
    desk.finish(now, End::Completed).unwrap();
    assert_eq!(desk.state(now.task), State::Completed);
}

#[test]
fn a_lease_lasts_until_its_very_millisecond_and_a_beat_moves_it() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    let hold = desk.start("worker 1");
    desk.now_ms += 59_999;
    desk.expire(&[]);
    assert_eq!(desk.state(task), State::Running);
    let beat = Command::Beat {
        hold,
        ttl_ms: LEASE_MS,
        usage: used(3),
    };
    desk.engine(&beat).unwrap();
    desk.now_ms += 59_999;
    desk.expire(&[]);
    assert_eq!(desk.state(task), State::Running);
    desk.now_ms += 1;
    desk.expire(&[]);
    assert_eq!(desk.state(task), State::Pending);
    assert_eq!(desk.task(task).losses, 1);
    assert_eq!(desk.task(task).usage, used(3));
    // It waits for nothing but a worker.
    assert!(desk.claim("worker 2").is_some());
}

#[test]
fn a_gone_holder_loses_what_it_holds_and_nobody_else_does() {
    let mut desk = Desk::new();
    let (first, second) = (desk.submit(plain()), desk.submit(plain()));
    desk.start("worker 1");
    desk.claim("worker 2").unwrap();
    desk.expire(&["worker 2", "worker 3"]);
    assert_eq!(desk.state(first), State::Running);
    assert_eq!(desk.state(second), State::Pending);
    // It was not launched, so the task is not to blame.
    assert_eq!(desk.task(second).losses, 0);
    let setback = desk.task(second).setback.as_deref();
    assert_eq!(setback, Some("worker 2 died"));
}

#[test]
fn a_task_that_takes_its_workers_with_it_fails_in_the_end() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    for losses in 1..=LOSSES_MAX {
        desk.start("worker 1");
        desk.expire(&["worker 1"]);
        assert_eq!(
            (desk.state(task), desk.task(task).losses),
            (State::Pending, losses)
        );
    }
    desk.start("worker 1");
    desk.expire(&["worker 1"]);
    assert_eq!(desk.state(task), State::Failed);
    let report = desk.task(task).report.as_deref().unwrap();
    let End::Failed(failure) = &report.end else {
        panic!("it has failed: {report:?}");
    };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert_eq!(failure.message, "its worker died 11 times");
}

#[test]
fn workers_lost_before_a_launch_are_never_the_tasks_fault() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    for _ in 0..3 * LOSSES_MAX {
        desk.claim("worker 1").unwrap();
        desk.expire(&["worker 1"]);
    }
    assert_eq!(
        (desk.state(task), desk.task(task).losses),
        (State::Pending, 0)
    );
}

#[test]
fn a_failure_is_tried_again_after_pauses_that_double_up_to_their_limit() {
    let mut desk = Desk::new();
    let mut asked = plain();
    asked.retry = retry(5);
    let task = desk.submit(asked);
    for pause_ms in [1_000, 2_000, 4_000, 5_000, 5_000] {
        let hold = desk.start("worker 1");
        desk.finish(hold, failed(FailureKind::Agent)).unwrap();
        assert_eq!(desk.state(task), State::Pending);
        desk.now_ms += pause_ms - 1;
        assert_eq!(desk.claim("worker 1"), None, "after {pause_ms} ms less one");
        desk.now_ms += 1;
    }
    let hold = desk.start("worker 1");
    desk.finish(hold, failed(FailureKind::Agent)).unwrap();
    assert_eq!(desk.state(task), State::Failed);
    assert_eq!(desk.task(task).attempts, 6);
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
        let mut desk = Desk::new();
        let mut asked = plain();
        asked.retry = retry(1);
        let task = desk.submit(asked);
        let hold = desk.start("worker 1");
        desk.finish(hold, failed(kind)).unwrap();
        assert_eq!(desk.state(task) == State::Pending, is_tried, "{kind:?}");
    }
}

#[test]
fn what_was_given_back_or_lost_does_not_use_up_the_retries() {
    let mut desk = Desk::new();
    let mut asked = plain();
    asked.retry = retry(1);
    let task = desk.submit(asked);
    let hold = desk.start("worker 1");
    desk.engine(&give_back(hold)).unwrap();
    desk.start("worker 1");
    desk.expire(&["worker 1"]);
    let hold = desk.start("worker 2");
    desk.finish(hold, failed(FailureKind::Agent)).unwrap();
    assert_eq!(desk.state(task), State::Pending, "it was never tried again");
    desk.now_ms += 1_000;
    let hold = desk.start("worker 2");
    desk.finish(hold, failed(FailureKind::Agent)).unwrap();
    assert_eq!(desk.state(task), State::Failed);
}

#[test]
fn use_adds_up_over_beats_attempts_and_the_report() {
    let mut desk = Desk::new();
    let mut asked = plain();
    asked.retry = retry(1);
    let task = desk.submit(asked);
    let finish = |desk: &mut Desk, end, tokens| {
        let hold = desk.start("worker 1");
        let beat = Command::Beat {
            hold,
            ttl_ms: LEASE_MS,
            usage: used(10),
        };
        desk.engine(&beat).unwrap();
        let mut report = Box::new(Report::of(end));
        report.usage = used(tokens);
        desk.engine(&Command::Finish { hold, report }).unwrap();
    };
    finish(&mut desk, failed(FailureKind::Agent), 1);
    desk.now_ms += 1_000;
    finish(&mut desk, End::Completed, 2);
    assert_eq!(desk.task(task).usage, used(23));
}

#[test]
fn a_cancelled_task_ends_once_its_worker_is_done_with_it() {
    let endings: [(&str, Ending<'_>); 4] = [
        ("stopped", &|desk, hold| {
            desk.finish(hold, End::Cancelled).unwrap();
        }),
        ("given back", &|desk, hold| {
            desk.engine(&give_back(hold)).unwrap();
        }),
        ("gone", &|desk, _| desk.expire(&["worker 1"])),
        ("run out", &|desk, _| {
            desk.now_ms += 60_000;
            desk.expire(&[]);
        }),
    ];
    for (name, ending) in endings {
        let mut desk = Desk::new();
        let task = desk.submit(plain());
        let hold = desk.start("worker 1");
        desk.ask(&person(), &cancel(task)).unwrap();
        assert_eq!(desk.state(task), State::Running, "{name}");
        ending(&mut desk, hold);
        assert_eq!(desk.state(task), State::Cancelled, "{name}");
        assert_eq!(desk.kernel.totals.cancelled, 1, "{name}");
        assert_eq!(desk.claim("worker 2"), None, "{name}");
    }
}

#[test]
fn a_cancelled_task_that_fails_is_not_tried_again() {
    let mut desk = Desk::new();
    let mut asked = plain();
    asked.retry = retry(3);
    let task = desk.submit(asked);
    let hold = desk.start("worker 1");
    desk.ask(&person(), &cancel(task)).unwrap();
    desk.finish(hold, failed(FailureKind::Agent)).unwrap();
    assert_eq!(desk.state(task), State::Failed);
}

#[test]
fn what_was_cancelled_between_claim_and_launch_is_never_launched() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    let hold = desk.claim("worker 1").unwrap();
    desk.ask(&person(), &cancel(task)).unwrap();
    assert_eq!(
        word(&desk.engine(&Command::Begin(hold)).unwrap_err()),
        "WrongState"
    );
    desk.engine(&give_back(hold)).unwrap();
    assert_eq!(desk.state(task), State::Cancelled);
    assert_eq!(desk.task(task).attempts, 0);
}

#[test]
fn an_agent_cancels_what_it_asked_for_and_nothing_else() {
    let mut desk = Desk::new();
    let theirs = desk.submit(request(by_agent("r1")));
    let other = desk.submit(request(by_agent("r2")));
    let persons = desk.submit(plain());
    desk.ask(&agent("r1"), &cancel(theirs)).unwrap();
    for task in [other, persons] {
        let denied = desk.ask(&agent("r1"), &cancel(task)).unwrap_err();
        assert_eq!(word(&denied), "NotYours");
        assert_eq!(desk.state(task), State::Pending);
    }
}

#[test]
fn a_task_that_was_given_back_says_why_and_may_be_had_at_once() {
    let mut desk = Desk::new();
    let task = desk.submit(plain());
    let hold = desk.start("worker 1");
    desk.engine(&give_back(hold)).unwrap();
    let (last, _) = desk.log.last().unwrap();
    assert!(
        matches!(
            last,
            KernelEvent::Requeued {
                cause: Setback::GivenBack,
                ..
            }
        ),
        "{last:?}"
    );
    assert_eq!(desk.task(task).setback.as_deref(), Some("told to stop"));
    assert_eq!(desk.claim("worker 2").unwrap().task, task);
}
