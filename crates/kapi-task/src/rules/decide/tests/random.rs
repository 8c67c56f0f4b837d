//! Whatever is asked in whatever order, by clocks that go forth and back: what must always hold.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::actor::Actor;
use kapi_core::task_id::{Fence, KernelTaskId};
use kapi_core::usage::Usage;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::{
    TestKernel, agent, by_agent, by_person, cancel, definition, failed, give_back, holder,
    locations, loop_name, person, request, run_of,
};
use crate::rules::command::{Hold, KernelCommand, Overflow};
use crate::rules::decide::decide;
use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::loop_run::RunTrigger;
use crate::rules::request::{KernelRequest, RequestKey};
use crate::rules::state::{KernelState, TaskTotals};
use crate::rules::task::{AttemptReport, End, FailureKind, LoopPhase, PhaseStatus};
use crate::rules::task_state::KernelTaskState;
use crate::rules::task_terms::{Priority, Retry};

const LOCATIONS: u32 = 3;
const TASKS_MAX: u32 = 12;
/// Runs of the loop of these tests that may be under way at once.
const LOOP_LOCATIONS: u32 = 2;

/// One step, in small numbers that name what is there.
#[derive(Debug, Clone)]
enum Step {
    Submit {
        who: u8,
        key: Option<u8>,
        priority: u8,
        retries: u8,
    },
    Run(u8),
    Claim(u8),
    Begin(u8),
    Beat(u8, u16),
    EndPhase(u8, u8),
    Finish(u8, u8),
    GiveBack(u8),
    Cancel(u8, u8),
    Expire(u8),
    Switch(bool),
    Lead(u8),
    Resign(u8),
    Archive,
    Sleep(i32),
}

fn step() -> impl Strategy<Value = Step> {
    let small = || 0_u8..8;
    prop_oneof![
        4 => (0_u8..4, prop::option::of(0_u8..3), 0_u8..3, 0_u8..3)
            .prop_map(|(who, key, priority, retries)| Step::Submit { who, key, priority, retries }),
        2 => small().prop_map(Step::Run),
        5 => (0_u8..3).prop_map(Step::Claim),
        5 => small().prop_map(Step::Begin),
        2 => (small(), any::<u16>()).prop_map(|(hold, ttl)| Step::Beat(hold, ttl)),
        4 => (small(), small()).prop_map(|(hold, phase)| Step::EndPhase(hold, phase)),
        5 => (small(), 0_u8..5).prop_map(|(hold, end)| Step::Finish(hold, end)),
        1 => small().prop_map(Step::GiveBack),
        2 => (small(), 0_u8..4).prop_map(|(task, who)| Step::Cancel(task, who)),
        2 => (0_u8..4).prop_map(Step::Expire),
        1 => any::<bool>().prop_map(Step::Switch),
        1 => (0_u8..3).prop_map(Step::Lead),
        1 => (0_u8..3).prop_map(Step::Resign),
        1 => Just(Step::Archive),
        2 => (-5_000_i32..90_000).prop_map(Step::Sleep),
    ]
}

fn worker(number: u8) -> String {
    format!("worker {number}")
}

fn actor(number: u8) -> Actor {
    match number {
        0 => person(),
        1 => agent("r1"),
        2 => agent("r2"),
        _ => Actor::Engine,
    }
}

/// A desk with every lease that was ever given, the newest last.
struct RandomScenario {
    test_kernel: TestKernel,
    holds: Vec<Hold>,
    ended: BTreeMap<KernelTaskId, KernelTaskState>,
    fences: BTreeSet<Fence>,
}

impl RandomScenario {
    fn new() -> Self {
        let mut test_kernel = TestKernel::new();
        test_kernel.capacity = locations(LOCATIONS);
        test_kernel.admission.tasks_max = TASKS_MAX;
        test_kernel.admission.overflow = Overflow::Queue;
        Self {
            test_kernel,
            holds: Vec::new(),
            ended: BTreeMap::new(),
            fences: BTreeSet::new(),
        }
    }

    /// Returns one of the last leases, which may be over, or one that never was.
    fn hold(&self, back: u8) -> Hold {
        let never = Hold {
            task: KernelTaskId::new(1),
            fence: Fence(u64::MAX),
        };
        self.holds
            .iter()
            .rev()
            .nth(back.into())
            .copied()
            .unwrap_or(never)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    fn command(&self, step: &Step) -> (Actor, KernelCommand) {
        let engine = Actor::Engine;
        match step {
            Step::Submit {
                who,
                key,
                priority,
                retries,
            } => {
                let request = Box::new(asked(*who, *key, *priority, *retries));
                let admission = self.test_kernel.admission;
                (actor(*who), KernelCommand::Submit { request, admission })
            }
            Step::Run(kind) => {
                let request = Box::new(run(*kind, self.test_kernel.now_ms));
                let admission = self.test_kernel.admission;
                (engine, KernelCommand::Submit { request, admission })
            }
            Step::Claim(number) => {
                let capacity = self.test_kernel.capacity.clone();
                (engine, super::claim(&worker(*number), capacity, None))
            }
            Step::Begin(back) => (engine, KernelCommand::Begin(self.hold(*back))),
            Step::Beat(back, ttl) => {
                let beat = KernelCommand::Beat {
                    hold: self.hold(*back),
                    ttl_ms: u64::from(*ttl),
                    usage: one_token(),
                };
                (engine, beat)
            }
            Step::EndPhase(back, phase) => {
                let end = KernelCommand::EndPhase {
                    hold: self.hold(*back),
                    phase: LoopPhase::ALL[usize::from(*phase)],
                    status: PhaseStatus::Ok,
                    detail: None,
                    report: None,
                };
                (engine, end)
            }
            Step::Finish(back, end) => {
                let hold = self.hold(*back);
                let report = Box::new(AttemptReport::of(ending(*end)));
                (engine, KernelCommand::Finish { hold, report })
            }
            Step::GiveBack(back) => (engine, give_back(self.hold(*back))),
            Step::Cancel(back, who) => {
                let last = self.test_kernel.kernel.last_task;
                (
                    actor(*who),
                    cancel(KernelTaskId::new(last.saturating_sub((*back).into()))),
                )
            }
            Step::Expire(number) => {
                let gone = BTreeSet::from([holder(&worker(*number))]);
                (engine, KernelCommand::Expire { gone })
            }
            Step::Switch(is_enabled) => {
                let (name, is_enabled) = (loop_name("look"), *is_enabled);
                (person(), KernelCommand::Switch { name, is_enabled })
            }
            Step::Lead(number) => {
                let lead = KernelCommand::Lead {
                    holder: holder(&worker(*number)),
                    ttl_ms: 30_000,
                    gone: BTreeSet::new(),
                };
                (engine, lead)
            }
            Step::Resign(number) => {
                let holder = holder(&worker(*number));
                (engine, KernelCommand::Resign { holder })
            }
            Step::Archive | Step::Sleep(_) => unreachable!("no command"),
        }
    }

    fn take(&mut self, step: &Step) {
        if let Step::Sleep(ms) = step {
            self.test_kernel.now_ms += i64::from(*ms);
        } else if let Step::Archive = step {
            self.test_kernel.kernel.take_ended();
        } else {
            let (actor, command) = self.command(step);
            let n_before = self.test_kernel.log.len();
            let before = self.test_kernel.kernel.clone();
            let is_denied = self.test_kernel.ask(&actor, &command).is_err();
            if is_denied || n_before == self.test_kernel.log.len() {
                assert_eq!(self.test_kernel.kernel, before, "{command:?}");
            }
            self.look_at_events(&before, n_before);
        }
        self.check();
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other facts say nothing of leases, launches and ends"
    )]
    fn look_at_events(&mut self, before: &KernelState, n_before: usize) {
        let new: Vec<KernelEvent> = self.test_kernel.log[n_before..]
            .iter()
            .map(|(event, _)| event.clone())
            .collect();
        for event in new {
            match event {
                KernelEvent::Claimed { task, fence, .. } => {
                    let is_highest = self.fences.last().is_none_or(|last| fence > *last);
                    assert!(is_highest, "fence {fence} after {:?}", self.fences.last());
                    self.fences.insert(fence);
                    self.holds.push(Hold { task, fence });
                    let is_free = before.n_held() < LOCATIONS;
                    assert!(is_free || before.tasks[&task].is_only_settled());
                }
                KernelEvent::Led { fence, .. } => drop(self.fences.insert(fence)),
                KernelEvent::Begun { task } => {
                    let task = &before.tasks[&task];
                    assert!(task.cancelling.is_none() || task.is_only_settled());
                    assert_eq!(task.state, KernelTaskState::Leased);
                }
                KernelEvent::Ended { task, .. } => {
                    let state = self.test_kernel.kernel.ended[&task].state;
                    let twice = self.ended.insert(task, state);
                    assert_eq!(twice, None, "{task} ended twice");
                }
                KernelEvent::Submitted { .. } => {
                    assert!(before.tasks.len() < usize::try_from(TASKS_MAX).unwrap());
                }
                _ => {}
            }
        }
    }

    fn check(&self) {
        let kernel = &self.test_kernel.kernel;
        assert_eq!(
            kernel.tasks.len() + self.ended.len(),
            usize::try_from(kernel.last_task).unwrap()
        );
        assert!(
            kernel
                .ended
                .keys()
                .all(|task| self.ended.contains_key(task))
        );
        let n =
            |state| u64::try_from(self.ended.values().filter(|it| **it == state).count()).unwrap();
        let totals = TaskTotals {
            completed: n(KernelTaskState::Completed),
            failed: n(KernelTaskState::Failed),
            cancelled: n(KernelTaskState::Cancelled),
        };
        assert_eq!(kernel.totals, totals);
        let mut keys = BTreeSet::new();
        let (mut n_held, mut n_runs) = (0, 0);
        for (id, task) in &kernel.tasks {
            assert_eq!(*id, task.id);
            assert_eq!(
                task.lease.is_some(),
                matches!(
                    task.state,
                    KernelTaskState::Leased | KernelTaskState::Running
                )
            );
            assert!(
                task.cancelling.is_none() || task.lease.is_some() || task.is_only_settled(),
                "{task:?}"
            );
            assert!(task.attempts >= task.losses + task.retries, "{task:?}");
            assert!(task.retries <= task.request.retry.times, "{task:?}");
            let n_phases = task.phases.len();
            let phases = task.phases.iter().map(|record| record.phase);
            let all: &[LoopPhase] = match task.loop_run() {
                Some(_) => &LoopPhase::ALL,
                None => &[LoopPhase::Execute, LoopPhase::Evaluate],
            };
            assert!(phases.eq(all.iter().copied().take(n_phases)), "{task:?}");
            if let Some(key) = &task.request.key {
                assert!(
                    keys.insert(key.text.clone()),
                    "two tasks have the key {}",
                    key.text
                );
                assert_eq!(kernel.keys[&key.text].task, *id);
            }
            // What is only settled takes no place.
            let is_held = task.lease.is_some() && !task.is_only_settled();
            n_held += u32::from(is_held);
            n_runs += u32::from(is_held && task.loop_run().is_some());
        }
        assert!(n_held <= LOCATIONS && n_runs <= LOOP_LOCATIONS);
        assert!(kernel.keys.len() <= 3, "{:?}", kernel.keys);
    }

    /// Folds what was recorded once more, and reads back what would be stored.
    fn check_fold(&self) {
        let mut again = KernelState::default();
        for (event, at_ms) in &self.test_kernel.log {
            let line = serde_json::to_string(event).unwrap();
            let read: KernelEvent = serde_json::from_str(&line).unwrap();
            assert_eq!(read, *event);
            evolve(&mut again, &read, *at_ms);
        }
        let mut live = self.test_kernel.kernel.clone();
        live.take_ended();
        again.take_ended();
        assert_eq!(again, live);
        let stored = serde_json::to_string(&self.test_kernel.kernel).unwrap();
        let read: KernelState = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, self.test_kernel.kernel);
    }

    /// Whoever holds an old lease is told so, whatever they ask.
    fn check_fences(&self) {
        for hold in &self.holds {
            let held = self
                .test_kernel
                .kernel
                .task(hold.task)
                .and_then(|task| task.lease.as_ref());
            if held.is_some_and(|lease| lease.fence == hold.fence) {
                continue;
            }
            for command in [KernelCommand::Begin(*hold), give_back(*hold)] {
                let answer = decide(
                    &self.test_kernel.kernel,
                    &Actor::Engine,
                    &command,
                    self.test_kernel.now_ms,
                );
                assert!(answer.is_err(), "{command:?}");
            }
        }
    }
}

const fn one_token() -> Usage {
    Usage {
        input_tokens: 1,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    }
}

fn asked(who: u8, key: Option<u8>, priority: u8, retries: u8) -> KernelRequest {
    let origin = match who {
        1 => by_agent("r1"),
        2 => by_agent("r2"),
        _ => by_person("user"),
    };
    KernelRequest {
        key: key.map(|key| RequestKey {
            text: format!("key {key}"),
            ttl_ms: u64::from(key) * 20_000,
        }),
        priority: [Priority::Low, Priority::Normal, Priority::High][usize::from(priority)],
        retry: Retry {
            times: u32::from(retries),
            backoff_ms: 1_000,
            backoff_ms_max: 10_000,
        },
        ..request(origin)
    }
}

fn run(kind: u8, now_ms: i64) -> KernelRequest {
    let trigger = match kind {
        0..=2 => RunTrigger::Cron { due_at_ms: now_ms },
        3..=5 => RunTrigger::Event {
            source: "file src/**".to_owned(),
            mark: format!("mark {kind}"),
        },
        _ => RunTrigger::Manual { source: None },
    };
    let mut look = definition("look");
    look.max_concurrent = LOOP_LOCATIONS;
    look.cooldown_ms = 10_000;
    run_of(look, trigger)
}

fn ending(number: u8) -> End {
    match number {
        0 | 1 => End::Completed,
        2 => failed(FailureKind::Agent),
        3 => failed(FailureKind::PolicyDenied),
        _ => End::Cancelled,
    }
}

proptest! {
    #[test]
    fn whatever_is_asked_what_must_hold_holds(steps in prop::collection::vec(step(), 1..120)) {
        let mut scenario = RandomScenario::new();
        for step in &steps {
            scenario.take(step);
        }
        scenario.check_fold();
        scenario.check_fences();
    }
}
