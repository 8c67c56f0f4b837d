//! Loops that events set off: marks of files and refs, and the results of other loops.

use std::collections::BTreeMap;

use kapi_core::value::KernelValue;
use kapi_sys::clock::Clock as _;
use kapi_task::record::events::Sight;
use kapi_task::record::terms::KernelTerms;
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::loop_run::{LoopRun, RunTrigger};

use crate::kernel_leader::{
    Fixture, MINUTE_MS, Place, Process, loop_of, name, on_files, pass, with_one, with_processes,
};
use crate::kernel_worker::{person, request};
use crate::support::ROOT;

#[test]
fn an_event_sets_off_one_run_for_each_mark_and_none_at_first_sight() {
    let fixture = Fixture::new();
    let mut location = Place::new();
    location.sees("a");
    with_processes(&fixture, &[on_files("")], |mut all| {
        assert_eq!(all[0].dealt(&location), [""; 0]);
        assert_eq!(all[0].dealt(&location), [""; 0]);
        location.sees("b");
        assert_eq!(all[0].dealt(&location), ["event task_1"]);
        assert_eq!(all[0].dealt(&location), [""; 0]);
        // Whoever takes over knows it.
        all.remove(0);
        assert_eq!(all[0].dealt(&location), [""; 0]);
        assert!(all[0].leader.leads());
        all[0].end(1);
        location.sees("a");
        assert_eq!(all[0].dealt(&location), ["event task_2"]);
        location.sees("c");
        assert_eq!(
            all[0].dealt(&location),
            ["event none: a run of it is already queued"]
        );
        all[0].end(2);
        // Back within ten minutes: it was worked on, and is so no more than once.
        location.sees("b");
        assert_eq!(
            all[0].dealt(&location),
            ["event none: task_1 was triggered by it"]
        );
        assert_eq!(all[0].dealt(&location), [""; 0]);
        location.sights.insert(name("tidy"), Sight::Nothing);
        assert_eq!(all[0].dealt(&location), [""; 0]);
        // Other globs are seen for the first time.
        let other = "trigger: {type: event, files: [lib/**]}";
        all[0].leader.set(vec![loop_of("tidy", other)]);
        location.sees("d");
        assert_eq!(all[0].dealt(&location), [""; 0]);
        location.sees("e");
        assert_eq!(all[0].dealt(&location), ["event task_3"]);
    });
}

#[test]
fn what_happens_while_a_loop_rests_sets_it_off_when_the_rest_is_over() {
    let fixture = Fixture::new();
    let mut location = Place::new();
    location.sees("a");
    with_one(&fixture, &[on_files("cooldown: 60")], |mut one| {
        one.step(&location);
        location.sees("b");
        assert_eq!(one.dealt(&location), ["event task_1"]);
        one.end(1);
        let ended_ms = fixture.clock.now_ms();
        location.sees("c");
        let led = one.step(&location);
        assert_eq!(
            (led.dealt, led.again_at_ms),
            (vec![], Some(ended_ms + MINUTE_MS))
        );
        pass(&fixture, MINUTE_MS);
        assert_eq!(one.dealt(&location), ["event task_2"]);
    });
}

#[test]
fn loops_that_wait_for_each_others_results_come_to_an_end() {
    let fixture = Fixture::new();
    let location = Place::new();
    let after = |own: &str, other: &str| {
        loop_of(
            own,
            &format!("trigger: {{type: event, loop: {other}, on: any}}"),
        )
    };
    with_one(
        &fixture,
        &[after("ping", "pong"), after("pong", "ping")],
        |mut one| {
            assert_eq!(one.dealt(&location), [""; 0]);
            location_first_run(&mut one);
            one.end(1);
            let mut runs = 1;
            loop {
                let dealt = one.dealt(&location);
                let Some(last) = dealt.last() else { break };
                if !last.starts_with("event task_") {
                    assert!(last.contains("exceeds maxDepth=16"), "{last}");
                    break;
                }
                runs += 1;
                one.end(runs);
                assert!(runs < 100, "they never end");
            }
            assert_eq!(runs, 17);
            assert_eq!(one.dealt(&location), [""; 0]);
        },
    );
}

/// Lets a person run the first loop.
fn location_first_run(one: &mut Process<'_>) {
    let mut request = request(1);
    let definition = loop_of("ping", "");
    request.loop_run = Some(Box::new(LoopRun {
        definition,
        trigger: RunTrigger::Manual { source: None },
        inputs: BTreeMap::new(),
        payload: KernelValue::Null,
        depth: 0,
    }));
    let submit = KernelCommand::Submit {
        request: Box::new(request),
        admission: KernelTerms::standard(ROOT.into()).admission(),
    };
    one.queue.submit(&person(), &submit).unwrap();
}
