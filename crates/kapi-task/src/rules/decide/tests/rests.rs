//! What keeps a run of a loop from being let in or begun: one that waits, a cooldown, a condition.

use kapi_core::task_id::KernelTaskId;
use kapi_core::value::KernelValue;

use super::loops::{asked, cron, event, manual, skipped};
use super::{NOW, TestKernel, agent, definition, loop_name, person, run_of};
use crate::rules::admission::{Waits, waits};
use crate::rules::decide::KernelReply;
use crate::rules::definition::Definition;
use crate::rules::request::{KernelRequest, RequestKey};
use crate::rules::task::End;

/// Asks for a run by an event with a payload.
fn happened(test_kernel: &mut TestKernel, definition: Definition, payload: i64) -> KernelReply {
    let mut request = run_of(definition, event(&payload.to_string()));
    let run = request.loop_run.as_mut().unwrap();
    run.payload = KernelValue::Integer(payload);
    test_kernel
        .try_submit(&kapi_core::actor::Actor::Engine, request)
        .unwrap()
}

#[test]
fn a_run_that_waits_stands_for_instants_and_for_the_same_event_alone() {
    let mut test_kernel = TestKernel::new();
    let look = || definition("look");
    let submitted = |task| KernelReply::Submitted(KernelTaskId::new(task));
    let waits = skipped("a run of it is already queued");
    assert_eq!(happened(&mut test_kernel, look(), 1), submitted(1));
    // Another payload is another event; the same one is not.
    assert_eq!(happened(&mut test_kernel, look(), 2), submitted(2));
    assert_eq!(happened(&mut test_kernel, look(), 2), waits);
    assert_eq!(asked(&mut test_kernel, look(), cron(NOW)), waits);
    let name = loop_name("look");
    // What was skipped was dealt with: neither triggers it again.
    let state = test_kernel.kernel.loops[&name].clone();
    assert_eq!(
        (state.mark.as_deref(), state.fired_at_ms),
        (Some("2"), Some(NOW))
    );
    let skip = state.last_skip.unwrap();
    assert_eq!(
        (skip.reason.as_str(), skip.is_refused),
        ("a run of it is already queued", false)
    );
    assert_eq!(asked(&mut test_kernel, look(), manual()), submitted(3));
}

#[test]
fn a_run_that_waits_stands_for_all_events_where_the_definition_says_so() {
    let mut test_kernel = TestKernel::new();
    let look = || Definition {
        coalesce: true,
        ..definition("look")
    };
    let submitted = |task| KernelReply::Submitted(KernelTaskId::new(task));
    let waits = skipped("a run of it is already queued");
    assert_eq!(happened(&mut test_kernel, look(), 1), submitted(1));
    assert_eq!(happened(&mut test_kernel, look(), 2), waits);
    // One that has begun stands for none.
    test_kernel.start("worker 1");
    assert_eq!(happened(&mut test_kernel, look(), 3), submitted(2));
}

#[test]
fn an_event_waits_in_the_queue_while_its_loop_rests() {
    let mut test_kernel = TestKernel::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    happened(&mut test_kernel, look.clone(), 1);
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    let until_ms = test_kernel.now_ms + 300_000;
    let second = KernelTaskId::new(2);
    assert_eq!(
        happened(&mut test_kernel, look.clone(), 2),
        KernelReply::Submitted(second)
    );
    let waits = waits(
        &test_kernel.kernel,
        &test_kernel.capacity,
        test_kernel.now_ms,
    );
    assert_eq!(waits[&second], Waits::Cooldown { at_ms: until_ms });
    test_kernel.now_ms = until_ms - 1;
    assert_eq!(test_kernel.claim("worker 1"), None);
    test_kernel.now_ms = until_ms;
    assert_eq!(test_kernel.start("worker 1").task, second);
}

#[test]
fn a_condition_that_does_not_hold_starts_no_cooldown_and_keeps_no_key() {
    let mut test_kernel = TestKernel::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    let request = || {
        let key = Some(RequestKey {
            text: "loop:look".to_owned(),
            ttl_ms: 600_000,
        });
        KernelRequest {
            key,
            ..run_of(look.clone(), manual())
        }
    };
    let end = |test_kernel: &mut TestKernel, end| {
        let hold = test_kernel.start("worker 1");
        test_kernel.finish(hold, end).unwrap();
    };
    let nothing = || End::Skipped {
        reason: "nothing changed".to_owned(),
    };
    assert_eq!(test_kernel.submit(request()), KernelTaskId::new(1));
    end(&mut test_kernel, nothing());
    assert_eq!(test_kernel.submit(request()), KernelTaskId::new(2));
    end(&mut test_kernel, End::Completed);
    test_kernel.now_ms += 600_001;
    // Nor does it end one that is under way.
    test_kernel.submit(request());
    end(&mut test_kernel, End::Completed);
    let again = || KernelRequest {
        key: None,
        ..request()
    };
    test_kernel.submit(again());
    end(&mut test_kernel, nothing());
    let answer = asked(&mut test_kernel, look.clone(), cron(NOW));
    assert_eq!(answer, skipped("cooldown active"));
}

#[test]
fn a_person_who_asks_for_another_run_passes_the_cooldown() {
    let mut test_kernel = TestKernel::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    test_kernel.submit(run_of(look.clone(), manual()));
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    let by = |test_kernel: &mut TestKernel, who| {
        test_kernel.try_submit(&who, run_of(look.clone(), manual()))
    };
    let rests = Ok(skipped("cooldown active"));
    assert_eq!(by(&mut test_kernel, agent("r1")), rests);
    let second = Ok(KernelReply::Submitted(KernelTaskId::new(2)));
    assert_eq!(by(&mut test_kernel, person()), second);
}
