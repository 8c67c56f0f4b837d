//! Whatever is asked in whatever order, by clocks that go forth and back: what must always hold.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::actor::Actor;
use kapi_core::task_id::{Fence, TaskId};
use kapi_core::usage::Usage;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::{
    Desk, agent, by_agent, by_person, cancel, definition, failed, give_back, holder, loop_name,
    person, places, request, run_of,
};
use crate::rules::command::{Command, Hold, Overflow};
use crate::rules::decide::decide;
use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::loop_run::Trigger;
use crate::rules::request::{Key, Request};
use crate::rules::state::{Kernel, Totals};
use crate::rules::task::{End, FailureKind, Phase, PhaseStatus, Report};
use crate::rules::task_state::State;
use crate::rules::task_terms::{Priority, Retry};

const PLACES: u32 = 3;
const TASKS_MAX: u32 = 12;
/// Runs of the loop of these tests that may be under way at once.
const LOOP_PLACES: u32 = 2;

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
struct Story {
    desk: Desk,
    holds: Vec<Hold>,
    ended: BTreeMap<TaskId, State>,
    fences: BTreeSet<Fence>,
}

impl Story {
    fn new() -> Self {
        let mut desk = Desk::new();
        desk.capacity = places(PLACES);
        desk.admission.tasks_max = TASKS_MAX;
        desk.admission.overflow = Overflow::Queue;
        Self {
            desk,
            holds: Vec::new(),
            ended: BTreeMap::new(),
            fences: BTreeSet::new(),
        }
    }

    /// Returns one of the last leases, which may be over, or one that never was.
    fn hold(&self, back: u8) -> Hold {
        let never = Hold {
            task: TaskId::new(1),
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
    fn command(&self, step: &Step) -> (Actor, Command) {
        let engine = Actor::Engine;
        match step {
            Step::Submit {
                who,
                key,
                priority,
                retries,
            } => {
                let request = Box::new(asked(*who, *key, *priority, *retries));
                let admission = self.desk.admission;
                (actor(*who), Command::Submit { request, admission })
            }
            Step::Run(kind) => {
                let request = Box::new(run(*kind, self.desk.now_ms));
                let admission = self.desk.admission;
                (engine, Command::Submit { request, admission })
            }
            Step::Claim(number) => {
                let capacity = self.desk.capacity.clone();
                (engine, super::claim(&worker(*number), capacity, None))
            }
            Step::Begin(back) => (engine, Command::Begin(self.hold(*back))),
            Step::Beat(back, ttl) => {
                let beat = Command::Beat {
                    hold: self.hold(*back),
                    ttl_ms: u64::from(*ttl),
                    usage: one_token(),
                };
                (engine, beat)
            }
            Step::EndPhase(back, phase) => {
                let end = Command::EndPhase {
                    hold: self.hold(*back),
                    phase: Phase::ALL[usize::from(*phase)],
                    status: PhaseStatus::Ok,
                    detail: None,
                    report: None,
                };
                (engine, end)
            }
            Step::Finish(back, end) => {
                let hold = self.hold(*back);
                let report = Box::new(Report::of(ending(*end)));
                (engine, Command::Finish { hold, report })
            }
            Step::GiveBack(back) => (engine, give_back(self.hold(*back))),
            Step::Cancel(back, who) => {
                let last = self.desk.kernel.last_task;
                (
                    actor(*who),
                    cancel(TaskId::new(last.saturating_sub((*back).into()))),
                )
            }
            Step::Expire(number) => {
                let gone = BTreeSet::from([holder(&worker(*number))]);
                (engine, Command::Expire { gone })
            }
            Step::Switch(is_enabled) => {
                let (name, is_enabled) = (loop_name("look"), *is_enabled);
                (person(), Command::Switch { name, is_enabled })
            }
            Step::Lead(number) => {
                let lead = Command::Lead {
                    holder: holder(&worker(*number)),
                    ttl_ms: 30_000,
                    gone: BTreeSet::new(),
                };
                (engine, lead)
            }
            Step::Resign(number) => {
                let holder = holder(&worker(*number));
                (engine, Command::Resign { holder })
            }
            Step::Archive | Step::Sleep(_) => unreachable!("no command"),
        }
    }

    fn take(&mut self, step: &Step) {
        if let Step::Sleep(ms) = step {
            self.desk.now_ms += i64::from(*ms);
        } else if let Step::Archive = step {
            self.desk.kernel.take_ended();
        } else {
            let (actor, command) = self.command(step);
            let n_before = self.desk.log.len();
            let before = self.desk.kernel.clone();
            let is_denied = self.desk.ask(&actor, &command).is_err();
            if is_denied || n_before == self.desk.log.len() {
                assert_eq!(self.desk.kernel, before, "{command:?}");
            }
            self.look_at_events(&before, n_before);
        }
        self.check();
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other facts say nothing of leases, launches and ends"
    )]
    fn look_at_events(&mut self, before: &Kernel, n_before: usize) {
        let new: Vec<KernelEvent> = self.desk.log[n_before..]
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
                    assert!(before.n_held() < PLACES, "all places were taken");
                }
                KernelEvent::Led { fence, .. } => drop(self.fences.insert(fence)),
                KernelEvent::Begun { task } => {
                    let task = &before.tasks[&task];
                    assert!(task.cancelling.is_none() && task.state == State::Leased);
                }
                KernelEvent::Ended { task, .. } => {
                    let state = self.desk.kernel.ended[&task].state;
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
        let kernel = &self.desk.kernel;
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
        let totals = Totals {
            completed: n(State::Completed),
            failed: n(State::Failed),
            cancelled: n(State::Cancelled),
        };
        assert_eq!(kernel.totals, totals);
        let mut keys = BTreeSet::new();
        let mut n_runs = 0;
        for (id, task) in &kernel.tasks {
            assert_eq!(*id, task.id);
            assert_eq!(
                task.lease.is_some(),
                matches!(task.state, State::Leased | State::Running)
            );
            assert!(
                task.cancelling.is_none() || task.lease.is_some(),
                "{task:?}"
            );
            assert!(task.attempts >= task.losses + task.retries, "{task:?}");
            assert!(task.retries <= task.request.retry.times, "{task:?}");
            let n_phases = task.phases.len();
            let phases = task.phases.iter().map(|record| record.phase);
            assert!(phases.eq(Phase::ALL.into_iter().take(n_phases)), "{task:?}");
            if let Some(key) = &task.request.key {
                assert!(
                    keys.insert(key.text.clone()),
                    "two tasks have the key {}",
                    key.text
                );
                assert_eq!(kernel.keys[&key.text].task, *id);
            }
            n_runs += u32::from(task.lease.is_some() && task.loop_run().is_some());
        }
        assert!(kernel.n_held() <= PLACES && n_runs <= LOOP_PLACES);
        assert!(kernel.keys.len() <= 3, "{:?}", kernel.keys);
    }

    /// Folds what was recorded once more, and reads back what would be stored.
    fn check_fold(&self) {
        let mut again = Kernel::default();
        for (event, at_ms) in &self.desk.log {
            let line = serde_json::to_string(event).unwrap();
            let read: KernelEvent = serde_json::from_str(&line).unwrap();
            assert_eq!(read, *event);
            evolve(&mut again, &read, *at_ms);
        }
        let mut live = self.desk.kernel.clone();
        live.take_ended();
        again.take_ended();
        assert_eq!(again, live);
        let stored = serde_json::to_string(&self.desk.kernel).unwrap();
        let read: Kernel = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, self.desk.kernel);
    }

    /// Whoever holds an old lease is told so, whatever they ask.
    fn check_fences(&self) {
        for hold in &self.holds {
            let held = self
                .desk
                .kernel
                .task(hold.task)
                .and_then(|task| task.lease.as_ref());
            if held.is_some_and(|lease| lease.fence == hold.fence) {
                continue;
            }
            for command in [Command::Begin(*hold), give_back(*hold)] {
                let answer = decide(
                    &self.desk.kernel,
                    &Actor::Engine,
                    &command,
                    self.desk.now_ms,
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
    }
}

fn asked(who: u8, key: Option<u8>, priority: u8, retries: u8) -> Request {
    let origin = match who {
        1 => by_agent("r1"),
        2 => by_agent("r2"),
        _ => by_person("user"),
    };
    Request {
        key: key.map(|key| Key {
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

fn run(kind: u8, now_ms: i64) -> Request {
    let trigger = match kind {
        0..=2 => Trigger::Cron { due_at_ms: now_ms },
        3..=5 => Trigger::Event {
            source: "file src/**".to_owned(),
            mark: format!("mark {kind}"),
        },
        _ => Trigger::Manual { source: None },
    };
    let mut look = definition("look");
    look.max_concurrent = LOOP_PLACES;
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
        let mut story = Story::new();
        for step in &steps {
            story.take(step);
        }
        story.check_fold();
        story.check_fences();
    }
}
