//! Runs of loops: their phases, when one is not let in, and who sets them off.

use std::collections::BTreeSet;

use kapi_core::task_id::KernelTaskId;

use super::{
    Ending, LEASE_MS, NOW, TestKernel, agent, definition, failed, give_back, holder, loop_name,
    person, run_of, word,
};
use crate::rules::command::{Hold, KernelCommand};
use crate::rules::decide::KernelReply;
use crate::rules::definition::{COOLDOWN_MS_MAX, DEPTH_MAX, Definition};
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::KernelRequest;
use crate::rules::task::{AttemptReport, End, FailureKind, LoopPhase, PhaseStatus};
use crate::rules::task_state::KernelTaskState;
use crate::rules::task_terms::Retry;

pub(super) fn manual() -> RunTrigger {
    RunTrigger::Manual { source: None }
}

pub(super) const fn cron(due_at_ms: i64) -> RunTrigger {
    RunTrigger::Cron { due_at_ms }
}

pub(super) fn event(mark: &str) -> RunTrigger {
    RunTrigger::Event {
        source: "file src/**".to_owned(),
        mark: mark.to_owned(),
    }
}

pub(super) fn asked(
    test_kernel: &mut TestKernel,
    definition: Definition,
    trigger: RunTrigger,
) -> KernelReply {
    let request = run_of(definition, trigger);
    test_kernel
        .try_submit(&kapi_core::actor::Actor::Engine, request)
        .unwrap()
}

pub(super) fn skipped(reason: &str) -> KernelReply {
    KernelReply::Skipped(reason.to_owned())
}

fn end_phase(hold: Hold, phase: LoopPhase) -> KernelCommand {
    KernelCommand::EndPhase {
        hold,
        phase,
        status: PhaseStatus::Ok,
        detail: None,
        report: None,
    }
}

fn phases(test_kernel: &TestKernel, task: KernelTaskId) -> Vec<LoopPhase> {
    test_kernel
        .task(task)
        .phases
        .iter()
        .map(|it| it.phase)
        .collect()
}

#[test]
fn phases_follow_each_other_and_none_comes_twice_or_out_of_turn() {
    let mut test_kernel = TestKernel::new();
    let task = test_kernel.submit(run_of(definition("look"), event("m")));
    let first = test_kernel.task(task).phases[0].clone();
    assert_eq!(
        (first.phase, first.detail.as_deref()),
        (LoopPhase::Trigger, Some("event: file src/**"))
    );
    let hold = test_kernel.claim("worker 1").unwrap();
    // Nothing happens in a phase before the worker has begun.
    let early = test_kernel
        .engine(&end_phase(hold, LoopPhase::ShouldRun))
        .unwrap_err();
    assert_eq!(word(&early), "WrongPhase");
    test_kernel.engine(&KernelCommand::Begin(hold)).unwrap();
    for (location, phase) in LoopPhase::ALL.iter().enumerate().skip(1) {
        for other in LoopPhase::ALL.iter().filter(|other| *other != phase) {
            let denied = test_kernel.engine(&end_phase(hold, *other)).unwrap_err();
            assert_eq!(word(&denied), "WrongPhase", "{other:?} in {phase:?}");
        }
        test_kernel.engine(&end_phase(hold, *phase)).unwrap();
        assert_eq!(phases(&test_kernel, task), LoopPhase::ALL[..=location]);
    }
    for phase in LoopPhase::ALL {
        assert_eq!(
            word(&test_kernel.engine(&end_phase(hold, phase)).unwrap_err()),
            "WrongPhase"
        );
    }
}

#[test]
fn whoever_takes_over_goes_on_at_the_recorded_phase_with_its_report() {
    let endings: [Ending<'_>; 2] = [
        &|test_kernel, _| test_kernel.expire(&["worker 1"]),
        &|test_kernel, hold| {
            test_kernel.engine(&give_back(hold)).unwrap();
        },
    ];
    for ending in endings {
        let mut test_kernel = TestKernel::new();
        let task = test_kernel.submit(run_of(definition("look"), manual()));
        let hold = test_kernel.start("worker 1");
        for phase in [LoopPhase::ShouldRun, LoopPhase::Context] {
            test_kernel.engine(&end_phase(hold, phase)).unwrap();
        }
        let mut report = AttemptReport::of(End::Completed);
        report.output = "Looked.".to_owned();
        let executed = KernelCommand::EndPhase {
            hold,
            phase: LoopPhase::Execute,
            status: PhaseStatus::Ok,
            detail: None,
            report: Some(Box::new(report.clone())),
        };
        test_kernel.engine(&executed).unwrap();
        ending(&mut test_kernel, hold);
        let next = test_kernel.start("worker 2");
        assert_eq!(test_kernel.task(task).phase(), Some(LoopPhase::Evaluate));
        assert_eq!(test_kernel.task(task).report.as_deref(), Some(&report));
        // The one before cannot end the phase for it.
        let late = test_kernel
            .engine(&end_phase(hold, LoopPhase::Evaluate))
            .unwrap_err();
        assert_eq!(word(&late), "Fenced");
        test_kernel
            .engine(&end_phase(next, LoopPhase::Evaluate))
            .unwrap();
    }
}

#[test]
fn another_try_begins_again_at_the_context_and_remembers_no_report() {
    let mut test_kernel = TestKernel::new();
    let mut look = run_of(definition("look"), manual());
    look.retry = Retry {
        times: 1,
        backoff_ms: 0,
        backoff_ms_max: 0,
    };
    let task = test_kernel.submit(look);
    let hold = test_kernel.start("worker 1");
    for phase in [LoopPhase::ShouldRun, LoopPhase::Context, LoopPhase::Execute] {
        test_kernel.engine(&end_phase(hold, phase)).unwrap();
    }
    test_kernel
        .finish(hold, failed(FailureKind::EvalFailed))
        .unwrap();
    assert_eq!(test_kernel.task(task).phase(), Some(LoopPhase::Context));
    assert_eq!(test_kernel.task(task).report, None);
    assert_eq!(
        test_kernel.task(task).retry_cause.as_deref(),
        Some("It did not work.")
    );
}

#[test]
fn a_plain_task_has_the_phases_of_its_agent_and_its_checks() {
    for verify in [&[][..], &["sh test.sh".to_owned()]] {
        let mut test_kernel = TestKernel::new();
        let task = test_kernel.submit(KernelRequest {
            verify: verify.to_vec(),
            ..super::plain()
        });
        let hold = test_kernel.start("worker 1");
        let own: &[LoopPhase] = match verify {
            [] => &[LoopPhase::Execute],
            _ => &[LoopPhase::Execute, LoopPhase::Evaluate],
        };
        for phase in own {
            for other in LoopPhase::ALL.iter().filter(|other| *other != phase) {
                let denied = test_kernel.engine(&end_phase(hold, *other)).unwrap_err();
                assert_eq!(word(&denied), "WrongPhase");
            }
            test_kernel.engine(&end_phase(hold, *phase)).unwrap();
        }
        assert_eq!(phases(&test_kernel, task), own);
        let denied = test_kernel.engine(&end_phase(hold, LoopPhase::Execute));
        assert_eq!(word(&denied.unwrap_err()), "WrongPhase");
    }
}

#[test]
fn an_instant_of_a_schedule_sets_off_one_run_whoever_asks() {
    let mut test_kernel = TestKernel::new();
    let look = || definition("look");
    assert_eq!(
        asked(&mut test_kernel, look(), cron(NOW)),
        KernelReply::Submitted(KernelTaskId::new(1))
    );
    let again = skipped("this scheduled time was already handled");
    assert_eq!(asked(&mut test_kernel, look(), cron(NOW)), again);
    assert_eq!(asked(&mut test_kernel, look(), cron(NOW - 60_000)), again);
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    assert_eq!(asked(&mut test_kernel, look(), cron(NOW)), again);
    assert_eq!(
        asked(&mut test_kernel, look(), cron(NOW + 60_000)),
        KernelReply::Submitted(KernelTaskId::new(2))
    );
    // Another loop has its own instants.
    assert_eq!(
        asked(&mut test_kernel, definition("tidy"), cron(NOW)),
        KernelReply::Submitted(KernelTaskId::new(3))
    );
}

#[test]
fn a_loop_rests_after_its_run_and_no_longer() {
    let mut test_kernel = TestKernel::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    asked(&mut test_kernel, look.clone(), manual());
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    let ended_ms = test_kernel.now_ms;
    test_kernel.now_ms = ended_ms + 299_999;
    assert_eq!(
        asked(&mut test_kernel, look.clone(), manual()),
        skipped("cooldown active")
    );
    test_kernel.now_ms += 1;
    assert_eq!(
        asked(&mut test_kernel, look.clone(), manual()),
        KernelReply::Submitted(KernelTaskId::new(2))
    );
    // A definition that says a day holds for a day, whatever the one of the run before said.
    let hold = test_kernel.start("worker 1");
    test_kernel.finish(hold, End::Completed).unwrap();
    look.cooldown_ms = COOLDOWN_MS_MAX;
    test_kernel.now_ms += 300_000;
    assert_eq!(
        asked(&mut test_kernel, look, manual()),
        skipped("cooldown active")
    );
}

#[test]
fn a_run_that_could_not_start_begins_no_cooldown() {
    let mut test_kernel = TestKernel::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    asked(&mut test_kernel, look.clone(), manual());
    let hold = test_kernel.start("worker 1");
    test_kernel
        .finish(hold, failed(FailureKind::NotLaunched))
        .unwrap();
    assert_eq!(
        asked(&mut test_kernel, look.clone(), manual()),
        KernelReply::Submitted(KernelTaskId::new(2))
    );
    // One that worked and failed begins one.
    let hold = test_kernel.start("worker 1");
    test_kernel
        .finish(hold, failed(FailureKind::Agent))
        .unwrap();
    assert_eq!(
        asked(&mut test_kernel, look, manual()),
        skipped("cooldown active")
    );
}

#[test]
fn a_loop_that_is_off_runs_for_a_person_alone_and_catches_up_on_nothing() {
    let mut test_kernel = TestKernel::new();
    let name = loop_name("look");
    let switch = |is_enabled| KernelCommand::Switch {
        name: name.clone(),
        is_enabled,
    };
    test_kernel.ask(&person(), &switch(false)).unwrap();
    let off = skipped("the loop is disabled");
    for trigger in [
        cron(NOW),
        event("1"),
        manual(),
        RunTrigger::Retrigger {
            task: KernelTaskId::new(1),
        },
    ] {
        assert_eq!(asked(&mut test_kernel, definition("look"), trigger), off);
    }
    let by_agent = test_kernel.try_submit(&agent("r1"), run_of(definition("look"), manual()));
    assert_eq!(by_agent, Ok(off));
    let by_person = test_kernel.try_submit(&person(), run_of(definition("look"), manual()));
    assert_eq!(by_person, Ok(KernelReply::Submitted(KernelTaskId::new(1))));
    test_kernel.now_ms += 3_600_000;
    test_kernel.ask(&person(), &switch(true)).unwrap();
    let missed = cron(test_kernel.now_ms - 60_000);
    let dealt = skipped("this scheduled time was already handled");
    assert_eq!(asked(&mut test_kernel, definition("look"), missed), dealt);
    // Asked for what holds already, nothing is recorded.
    let n_recorded = test_kernel.log.len();
    test_kernel.ask(&person(), &switch(true)).unwrap();
    assert_eq!(test_kernel.log.len(), n_recorded);
}

#[test]
fn runs_that_set_each_other_off_end_at_a_depth() {
    let run = |depth| {
        let mut request = run_of(
            definition("look"),
            RunTrigger::Retrigger {
                task: KernelTaskId::new(1),
            },
        );
        request.loop_run.as_mut().unwrap().depth = depth;
        TestKernel::new().try_submit(&kapi_core::actor::Actor::Engine, request)
    };
    assert_eq!(
        run(DEPTH_MAX),
        Ok(KernelReply::Submitted(KernelTaskId::new(1)))
    );
    assert_eq!(word(&run(DEPTH_MAX + 1).unwrap_err()), "TooDeep");
}

#[test]
fn a_loop_remembers_its_last_run_and_counts_how_its_runs_ended() {
    let mut test_kernel = TestKernel::new();
    let ends = [
        End::Completed,
        End::Skipped {
            reason: "nothing changed".to_owned(),
        },
        failed(FailureKind::NotLaunched),
        End::Cancelled,
    ];
    for end in ends {
        let was_skipped = matches!(end, End::Skipped { .. });
        let task = test_kernel.submit(run_of(definition("look"), manual()));
        let hold = test_kernel.start("worker 1");
        test_kernel.now_ms += 5;
        test_kernel.finish(hold, end).unwrap();
        let last = test_kernel.kernel.loops[&loop_name("look")]
            .last_run
            .clone()
            .unwrap();
        assert_eq!((last.task, last.was_skipped), (task, was_skipped));
        assert_eq!(last.ended_at_ms - last.started_at_ms, 5);
        assert!(last.state.is_ended());
    }
    let totals = test_kernel.kernel.loops[&loop_name("look")].totals;
    assert_eq!(
        (totals.completed, totals.failed, totals.cancelled),
        (2, 1, 1)
    );
    assert_eq!(totals, test_kernel.kernel.totals);
}

#[test]
fn what_a_loops_events_watch_is_noted_once() {
    let mut test_kernel = TestKernel::new();
    let see = |mark: Option<&str>| KernelCommand::See {
        name: loop_name("look"),
        mark: mark.map(str::to_owned),
    };
    test_kernel.engine(&see(None)).unwrap();
    test_kernel.now_ms += 1;
    test_kernel.engine(&see(None)).unwrap();
    assert_eq!(test_kernel.log.len(), 1);
    test_kernel.engine(&see(Some("a"))).unwrap();
    test_kernel.engine(&see(Some("a"))).unwrap();
    assert_eq!(test_kernel.log.len(), 2);
    let state = &test_kernel.kernel.loops[&loop_name("look")];
    assert_eq!(
        (state.seen_at_ms, state.mark.as_deref()),
        (Some(NOW), Some("a"))
    );
}

#[test]
fn one_leads_until_its_lease_is_over_or_it_is_gone_or_resigns() {
    let mut test_kernel = TestKernel::new();
    let lead = |who: &str, gone: &[&str]| KernelCommand::Lead {
        holder: holder(who),
        ttl_ms: LEASE_MS,
        gone: gone.iter().map(|who| holder(who)).collect::<BTreeSet<_>>(),
    };
    let fence = |test_kernel: &TestKernel| test_kernel.kernel.leader.as_ref().unwrap().fence;
    test_kernel.engine(&lead("worker 1", &[])).unwrap();
    let first = fence(&test_kernel);
    assert_eq!(
        word(&test_kernel.engine(&lead("worker 2", &[])).unwrap_err()),
        "Led"
    );
    test_kernel.now_ms += 59_999;
    test_kernel.engine(&lead("worker 1", &[])).unwrap();
    assert_eq!(fence(&test_kernel), first);
    test_kernel.now_ms += 59_999;
    assert_eq!(
        word(&test_kernel.engine(&lead("worker 2", &[])).unwrap_err()),
        "Led"
    );
    test_kernel.now_ms += 1;
    test_kernel.engine(&lead("worker 2", &[])).unwrap();
    let second = fence(&test_kernel);
    assert!(second > first);
    test_kernel
        .engine(&lead("worker 3", &["worker 2"]))
        .unwrap();
    assert!(fence(&test_kernel) > second);
    // Only the one that leads can resign.
    test_kernel
        .engine(&KernelCommand::Resign {
            holder: holder("worker 1"),
        })
        .unwrap();
    assert!(test_kernel.kernel.leader.is_some());
    test_kernel
        .engine(&KernelCommand::Resign {
            holder: holder("worker 3"),
        })
        .unwrap();
    assert_eq!(test_kernel.kernel.leader, None);
    // Leases of leaders and of tasks are counted together: no number comes twice.
    let task = test_kernel.submit(super::plain());
    let hold = test_kernel.claim("worker 1").unwrap();
    assert!(hold.fence > second);
    assert_eq!(test_kernel.state(task), KernelTaskState::Leased);
}
