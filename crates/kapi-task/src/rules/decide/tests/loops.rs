//! Runs of loops: their phases, when one is not let in, and who sets them off.

use std::collections::BTreeSet;

use kapi_core::task_id::TaskId;

use super::{
    Desk, Ending, LEASE_MS, NOW, agent, definition, failed, give_back, holder, loop_name, person,
    run_of, word,
};
use crate::rules::command::{Command, Hold};
use crate::rules::decide::Answer;
use crate::rules::definition::{COOLDOWN_MS_MAX, DEPTH_MAX, Definition};
use crate::rules::loop_run::Trigger;
use crate::rules::task::{End, FailureKind, Phase, PhaseStatus, Report};
use crate::rules::task_state::State;
use crate::rules::task_terms::Retry;

fn manual() -> Trigger {
    Trigger::Manual { source: None }
}

const fn cron(due_at_ms: i64) -> Trigger {
    Trigger::Cron { due_at_ms }
}

fn event(mark: &str) -> Trigger {
    Trigger::Event {
        source: "file src/**".to_owned(),
        mark: mark.to_owned(),
    }
}

fn asked(desk: &mut Desk, definition: Definition, trigger: Trigger) -> Answer {
    let request = run_of(definition, trigger);
    desk.try_submit(&kapi_core::actor::Actor::Engine, request)
        .unwrap()
}

fn skipped(reason: &str) -> Answer {
    Answer::Skipped(reason.to_owned())
}

fn end_phase(hold: Hold, phase: Phase) -> Command {
    Command::EndPhase {
        hold,
        phase,
        status: PhaseStatus::Ok,
        detail: None,
        report: None,
    }
}

fn phases(desk: &Desk, task: TaskId) -> Vec<Phase> {
    desk.task(task).phases.iter().map(|it| it.phase).collect()
}

#[test]
fn phases_follow_each_other_and_none_comes_twice_or_out_of_turn() {
    let mut desk = Desk::new();
    let task = desk.submit(run_of(definition("look"), event("m")));
    let first = desk.task(task).phases[0].clone();
    assert_eq!(
        (first.phase, first.detail.as_deref()),
        (Phase::Trigger, Some("event: file src/**"))
    );
    let hold = desk.claim("worker 1").unwrap();
    // Nothing happens in a phase before the worker has begun.
    let early = desk.engine(&end_phase(hold, Phase::ShouldRun)).unwrap_err();
    assert_eq!(word(&early), "WrongPhase");
    desk.engine(&Command::Begin(hold)).unwrap();
    for (place, phase) in Phase::ALL.iter().enumerate().skip(1) {
        for other in Phase::ALL.iter().filter(|other| *other != phase) {
            let denied = desk.engine(&end_phase(hold, *other)).unwrap_err();
            assert_eq!(word(&denied), "WrongPhase", "{other:?} in {phase:?}");
        }
        desk.engine(&end_phase(hold, *phase)).unwrap();
        assert_eq!(phases(&desk, task), Phase::ALL[..=place]);
    }
    for phase in Phase::ALL {
        assert_eq!(
            word(&desk.engine(&end_phase(hold, phase)).unwrap_err()),
            "WrongPhase"
        );
    }
}

#[test]
fn whoever_takes_over_goes_on_at_the_recorded_phase_with_its_report() {
    let endings: [Ending<'_>; 2] = [&|desk, _| desk.expire(&["worker 1"]), &|desk, hold| {
        desk.engine(&give_back(hold)).unwrap();
    }];
    for ending in endings {
        let mut desk = Desk::new();
        let task = desk.submit(run_of(definition("look"), manual()));
        let hold = desk.start("worker 1");
        for phase in [Phase::ShouldRun, Phase::Context] {
            desk.engine(&end_phase(hold, phase)).unwrap();
        }
        let mut report = Report::of(End::Completed);
        report.output = "Looked.".to_owned();
        let executed = Command::EndPhase {
            hold,
            phase: Phase::Execute,
            status: PhaseStatus::Ok,
            detail: None,
            report: Some(Box::new(report.clone())),
        };
        desk.engine(&executed).unwrap();
        ending(&mut desk, hold);
        let next = desk.start("worker 2");
        assert_eq!(desk.task(task).phase(), Some(Phase::Evaluate));
        assert_eq!(desk.task(task).report.as_deref(), Some(&report));
        // The one before cannot end the phase for it.
        let late = desk.engine(&end_phase(hold, Phase::Evaluate)).unwrap_err();
        assert_eq!(word(&late), "Fenced");
        desk.engine(&end_phase(next, Phase::Evaluate)).unwrap();
    }
}

#[test]
fn another_try_begins_again_at_the_context_and_remembers_no_report() {
    let mut desk = Desk::new();
    let mut look = run_of(definition("look"), manual());
    look.retry = Retry {
        times: 1,
        backoff_ms: 0,
        backoff_ms_max: 0,
    };
    let task = desk.submit(look);
    let hold = desk.start("worker 1");
    for phase in [Phase::ShouldRun, Phase::Context, Phase::Execute] {
        desk.engine(&end_phase(hold, phase)).unwrap();
    }
    desk.finish(hold, failed(FailureKind::EvalFailed)).unwrap();
    assert_eq!(desk.task(task).phase(), Some(Phase::Context));
    assert_eq!(desk.task(task).report, None);
    assert_eq!(desk.task(task).setback.as_deref(), Some("It did not work."));
}

#[test]
fn a_plain_task_has_no_phases() {
    let mut desk = Desk::new();
    let task = desk.submit(super::plain());
    let hold = desk.start("worker 1");
    assert_eq!(phases(&desk, task), []);
    for phase in Phase::ALL {
        assert_eq!(
            word(&desk.engine(&end_phase(hold, phase)).unwrap_err()),
            "WrongPhase"
        );
    }
}

#[test]
fn an_instant_of_a_schedule_sets_off_one_run_whoever_asks() {
    let mut desk = Desk::new();
    let look = || definition("look");
    assert_eq!(
        asked(&mut desk, look(), cron(NOW)),
        Answer::Submitted(TaskId::new(1))
    );
    let again = skipped("this scheduled time was already handled");
    assert_eq!(asked(&mut desk, look(), cron(NOW)), again);
    assert_eq!(asked(&mut desk, look(), cron(NOW - 60_000)), again);
    let hold = desk.start("worker 1");
    desk.finish(hold, End::Completed).unwrap();
    assert_eq!(asked(&mut desk, look(), cron(NOW)), again);
    assert_eq!(
        asked(&mut desk, look(), cron(NOW + 60_000)),
        Answer::Submitted(TaskId::new(2))
    );
    // Another loop has its own instants.
    assert_eq!(
        asked(&mut desk, definition("tidy"), cron(NOW)),
        Answer::Submitted(TaskId::new(3))
    );
}

#[test]
fn runs_that_wait_stand_for_all_that_come_meanwhile_but_a_person_always_gets_one() {
    let mut desk = Desk::new();
    let look = || definition("look");
    asked(&mut desk, look(), event("1"));
    let waits = skipped("a run of it is already queued");
    assert_eq!(asked(&mut desk, look(), event("2")), waits);
    assert_eq!(asked(&mut desk, look(), cron(NOW)), waits);
    let name = loop_name("look");
    // What was skipped was dealt with: neither triggers it again.
    let state = desk.kernel.loops[&name].clone();
    assert_eq!(
        (state.mark.as_deref(), state.fired_at_ms),
        (Some("2"), Some(NOW))
    );
    assert_eq!(
        state.last_skip.unwrap().reason,
        "a run of it is already queued"
    );
    assert_eq!(
        asked(&mut desk, look(), manual()),
        Answer::Submitted(TaskId::new(2))
    );
    desk.start("worker 1");
    // One runs and the other still waits.
    assert_eq!(asked(&mut desk, look(), event("3")), waits);
}

#[test]
fn a_loop_rests_after_its_run_and_no_longer() {
    let mut desk = Desk::new();
    let mut look = definition("look");
    look.cooldown_ms = 300_000;
    asked(&mut desk, look.clone(), manual());
    let hold = desk.start("worker 1");
    desk.finish(hold, End::Completed).unwrap();
    let ended_ms = desk.now_ms;
    desk.now_ms = ended_ms + 299_999;
    assert_eq!(
        asked(&mut desk, look.clone(), manual()),
        skipped("cooldown active")
    );
    desk.now_ms += 1;
    assert_eq!(
        asked(&mut desk, look.clone(), manual()),
        Answer::Submitted(TaskId::new(2))
    );
    // A definition that says a day holds for a day, whatever the one of the run before said.
    let hold = desk.start("worker 1");
    desk.finish(hold, End::Completed).unwrap();
    look.cooldown_ms = COOLDOWN_MS_MAX;
    desk.now_ms += 300_000;
    assert_eq!(asked(&mut desk, look, manual()), skipped("cooldown active"));
}

#[test]
fn a_loop_that_is_off_runs_for_a_person_alone_and_catches_up_on_nothing() {
    let mut desk = Desk::new();
    let name = loop_name("look");
    let switch = |is_enabled| Command::Switch {
        name: name.clone(),
        is_enabled,
    };
    desk.ask(&person(), &switch(false)).unwrap();
    let off = skipped("the loop is disabled");
    for trigger in [
        cron(NOW),
        event("1"),
        manual(),
        Trigger::Retrigger {
            task: TaskId::new(1),
        },
    ] {
        assert_eq!(asked(&mut desk, definition("look"), trigger), off);
    }
    let by_agent = desk.try_submit(&agent("r1"), run_of(definition("look"), manual()));
    assert_eq!(by_agent, Ok(off));
    let by_person = desk.try_submit(&person(), run_of(definition("look"), manual()));
    assert_eq!(by_person, Ok(Answer::Submitted(TaskId::new(1))));
    desk.now_ms += 3_600_000;
    desk.ask(&person(), &switch(true)).unwrap();
    let missed = cron(desk.now_ms - 60_000);
    let dealt = skipped("this scheduled time was already handled");
    assert_eq!(asked(&mut desk, definition("look"), missed), dealt);
    // Asked for what holds already, nothing is recorded.
    let n_recorded = desk.log.len();
    desk.ask(&person(), &switch(true)).unwrap();
    assert_eq!(desk.log.len(), n_recorded);
}

#[test]
fn runs_that_set_each_other_off_end_at_a_depth() {
    let run = |depth| {
        let mut request = run_of(
            definition("look"),
            Trigger::Retrigger {
                task: TaskId::new(1),
            },
        );
        request.loop_run.as_mut().unwrap().depth = depth;
        Desk::new().try_submit(&kapi_core::actor::Actor::Engine, request)
    };
    assert_eq!(run(DEPTH_MAX), Ok(Answer::Submitted(TaskId::new(1))));
    assert_eq!(word(&run(DEPTH_MAX + 1).unwrap_err()), "TooDeep");
}

#[test]
fn a_loop_remembers_its_last_run_and_counts_how_its_runs_ended() {
    let mut desk = Desk::new();
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
        let task = desk.submit(run_of(definition("look"), manual()));
        let hold = desk.start("worker 1");
        desk.now_ms += 5;
        desk.finish(hold, end).unwrap();
        let last = desk.kernel.loops[&loop_name("look")]
            .last_run
            .clone()
            .unwrap();
        assert_eq!((last.task, last.was_skipped), (task, was_skipped));
        assert_eq!(last.ended_at_ms - last.started_at_ms, 5);
        assert!(last.state.is_ended());
    }
    let totals = desk.kernel.loops[&loop_name("look")].totals;
    assert_eq!(
        (totals.completed, totals.failed, totals.cancelled),
        (2, 1, 1)
    );
    assert_eq!(totals, desk.kernel.totals);
}

#[test]
fn what_a_loops_events_watch_is_noted_once() {
    let mut desk = Desk::new();
    let see = |mark: Option<&str>| Command::See {
        name: loop_name("look"),
        mark: mark.map(str::to_owned),
    };
    desk.engine(&see(None)).unwrap();
    desk.now_ms += 1;
    desk.engine(&see(None)).unwrap();
    assert_eq!(desk.log.len(), 1);
    desk.engine(&see(Some("a"))).unwrap();
    desk.engine(&see(Some("a"))).unwrap();
    assert_eq!(desk.log.len(), 2);
    let state = &desk.kernel.loops[&loop_name("look")];
    assert_eq!(
        (state.seen_at_ms, state.mark.as_deref()),
        (Some(NOW), Some("a"))
    );
}

#[test]
fn one_leads_until_its_lease_is_over_or_it_is_gone_or_resigns() {
    let mut desk = Desk::new();
    let lead = |who: &str, gone: &[&str]| Command::Lead {
        holder: holder(who),
        ttl_ms: LEASE_MS,
        gone: gone.iter().map(|who| holder(who)).collect::<BTreeSet<_>>(),
    };
    let fence = |desk: &Desk| desk.kernel.leader.as_ref().unwrap().fence;
    desk.engine(&lead("worker 1", &[])).unwrap();
    let first = fence(&desk);
    assert_eq!(
        word(&desk.engine(&lead("worker 2", &[])).unwrap_err()),
        "Led"
    );
    desk.now_ms += 59_999;
    desk.engine(&lead("worker 1", &[])).unwrap();
    assert_eq!(fence(&desk), first);
    desk.now_ms += 59_999;
    assert_eq!(
        word(&desk.engine(&lead("worker 2", &[])).unwrap_err()),
        "Led"
    );
    desk.now_ms += 1;
    desk.engine(&lead("worker 2", &[])).unwrap();
    let second = fence(&desk);
    assert!(second > first);
    desk.engine(&lead("worker 3", &["worker 2"])).unwrap();
    assert!(fence(&desk) > second);
    // Only the one that leads can resign.
    desk.engine(&Command::Resign {
        holder: holder("worker 1"),
    })
    .unwrap();
    assert!(desk.kernel.leader.is_some());
    desk.engine(&Command::Resign {
        holder: holder("worker 3"),
    })
    .unwrap();
    assert_eq!(desk.kernel.leader, None);
    // Leases of leaders and of tasks are counted together: no number comes twice.
    let task = desk.submit(super::plain());
    let hold = desk.claim("worker 1").unwrap();
    assert!(hold.fence > second);
    assert_eq!(desk.state(task), State::Leased);
}
