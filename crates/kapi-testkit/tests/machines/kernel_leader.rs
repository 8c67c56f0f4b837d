//! Setting loops off: each instant and each event once, whoever leads and whenever it is killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use kapi_core::actor::Actor;
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;
use kapi_sys::clock::Clock;
use kapi_sys::sim_disk::SimDisk;
use kapi_task::record::admission::TaskAdmission;
use kapi_task::record::events::Sight;
use kapi_task::record::leader::{
    HandledOccurrence, LeadOutcome, Leader, LeaderContext, OccurrenceOutcome,
};
use kapi_task::record::log::LEAD_MS;
use kapi_task::record::profile_file::AgentProfiles;
use kapi_task::record::queue::{Queue, WorkerSlot};
use kapi_task::record::terms::KernelTerms;
use kapi_task::record::{definition_file, profile_file};
use kapi_task::rules::command::{Hold, KernelCommand};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::policy::Policy;
use kapi_task::rules::state::LoopState;
use kapi_task::rules::task::{AttemptReport, End, KernelTask};

use crate::kernel_worker::{capacity, person, project};
use crate::support::ROOT;

const SECOND_MS: i64 = 1_000;
pub(crate) const MINUTE_MS: i64 = 60_000;

pub(crate) fn loop_of(name: &str, rest: &str) -> Definition {
    let text = format!("---\nname: {name}\nbackoff: 0\n{rest}\n---\nDo it.\n");
    definition_file::parse("loop.md", &text, Path::new("/nonexistent")).unwrap()
}

fn every_minute(rest: &str) -> Definition {
    let trigger = format!("trigger: {{type: cron, schedule: \"* * * * *\", {rest}}}");
    loop_of("tidy", &trigger)
}

pub(crate) fn on_files(rest: &str) -> Definition {
    loop_of(
        "tidy",
        &format!("trigger: {{type: event, files: [src/**]}}\n{rest}"),
    )
}

pub(crate) fn name(text: &str) -> LoopName {
    LoopName::parse(text).unwrap()
}

/// A clock that stands still until it is moved.
pub(crate) struct Stopped(AtomicI64);

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A disk with an empty project, and a clock.
pub(crate) struct Fixture {
    disk: SimDisk,
    pub(crate) clock: Stopped,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        Self {
            disk,
            clock: Stopped(AtomicI64::new(1_787_392_800_000)),
        }
    }
}

/// What a leader stands on, whoever it is.
pub(crate) struct Place {
    policy: Policy,
    terms: KernelTerms,
    profiles: AgentProfiles,
    pub(crate) sights: BTreeMap<LoopName, Sight>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let nowhere = Path::new("/nonexistent");
        Self {
            policy: Policy::default(),
            terms: KernelTerms::standard(nowhere.to_path_buf()),
            profiles: profile_file::discover(nowhere, nowhere, nowhere),
            sights: BTreeMap::new(),
        }
    }

    pub(crate) fn sees(&mut self, state: &str) {
        let sight = Sight::Is {
            state: state.to_owned(),
            payload: KernelValue::Null,
        };
        self.sights.insert(name("tidy"), sight);
    }
}

/// One process that leads or wants to.
pub(crate) struct Process<'a> {
    pub(crate) queue: Queue<'a>,
    pub(crate) own: WorkerSlot,
    pub(crate) leader: Leader,
}

impl Process<'_> {
    pub(crate) fn step(&mut self, location: &Place) -> LeadOutcome {
        self.queue.refresh().unwrap();
        let local_times = BTreeMap::new();
        let admission = TaskAdmission {
            policy: &location.policy,
            local_times: &local_times,
            terms: &location.terms,
            is_unattended: true,
            base: &|_| Ok(None),
        };
        let around = LeaderContext {
            admission: &admission,
            profiles: &location.profiles,
            sights: &location.sights,
            now_ms: self.queue.project().clock.now_ms(),
        };
        self.leader
            .step(&mut self.queue, &self.own, &around)
            .unwrap()
    }

    pub(crate) fn dealt(&mut self, location: &Place) -> Vec<String> {
        self.step(location).dealt.iter().map(reported).collect()
    }

    fn state(&self) -> LoopState {
        self.queue.kernel().loops[&name("tidy")].clone()
    }

    fn waiting(&self) -> Vec<&KernelTask> {
        self.queue.kernel().tasks.values().collect()
    }

    /// Ends the run that waits, so that the next need not wait for it.
    pub(crate) fn end(&mut self, number: u64) {
        let claim = KernelCommand::Claim {
            holder: self.own.holder.clone(),
            ttl_ms: 60_000,
            capacity: capacity(),
            only: Some(KernelTaskId::new(number)),
            reach: None,
        };
        let KernelReply::Claimed(task, fence) = self.queue.submit(&Actor::Engine, &claim).unwrap()
        else {
            panic!("nothing to claim")
        };
        let hold = Hold { task, fence };
        self.queue
            .submit(&Actor::Engine, &KernelCommand::Begin(hold))
            .unwrap();
        let finish = KernelCommand::Finish {
            hold,
            report: Box::new(AttemptReport::of(End::Completed)),
        };
        self.queue.submit(&Actor::Engine, &finish).unwrap();
    }
}

fn reported(dealt: &HandledOccurrence) -> String {
    let trigger = match &dealt.trigger {
        RunTrigger::Cron { .. } => "cron",
        RunTrigger::Event { .. } => "event",
        RunTrigger::Manual { .. } | RunTrigger::Retrigger { .. } => "other",
    };
    match &dealt.outcome {
        OccurrenceOutcome::Run(task) => format!("{trigger} {task}"),
        OccurrenceOutcome::None(reason) => format!("{trigger} none: {reason}"),
    }
}

/// Does something with `n` processes on one disk, whose leaders know one loop.
pub(crate) fn with_processes(
    fixture: &Fixture,
    loops: &[Definition],
    then: impl FnOnce(Vec<Process<'_>>),
) {
    let projects = [(); 3].map(|()| project(&fixture.disk, &fixture.clock));
    let processes = projects.iter().map(|project| {
        let mut queue = Queue::open(project).unwrap();
        let own = queue.enlist().unwrap();
        let mut leader = Leader::default();
        leader.set(loops.to_vec());
        Process { queue, own, leader }
    });
    then(processes.collect());
}

pub(crate) fn with_one(fixture: &Fixture, loops: &[Definition], then: impl FnOnce(Process<'_>)) {
    with_processes(fixture, loops, |processes| {
        then(processes.into_iter().next().unwrap());
    });
}

pub(crate) fn pass(fixture: &Fixture, ms: i64) {
    fixture.clock.0.fetch_add(ms, Ordering::SeqCst);
}

#[test]
fn an_instant_sets_off_one_run_and_what_lay_before_the_first_look_none() {
    let fixture = Fixture::new();
    let location = Place::new();
    with_one(&fixture, &[every_minute("")], |mut one| {
        let led = one.step(&location);
        assert_eq!(led.dealt, []);
        let next_ms = led.again_at_ms.unwrap();
        let now_ms = fixture.clock.now_ms();
        assert!(next_ms > now_ms && next_ms <= now_ms + MINUTE_MS, "{led:?}");
        pass(&fixture, next_ms - now_ms);
        assert_eq!(one.dealt(&location), ["cron task_1"]);
        assert_eq!(one.dealt(&location), [""; 0]);
        // A leader that comes later and knows nothing does not either.
        one.leader = Leader::default();
        one.leader.set(vec![every_minute("")]);
        assert_eq!(one.dealt(&location), [""; 0]);
        let run = one.waiting()[0].loop_run().unwrap();
        assert_eq!(run.trigger, RunTrigger::Cron { due_at_ms: next_ms });
    });
}

#[test]
fn of_three_processes_one_leads_and_another_takes_over_when_it_is_gone() {
    let fixture = Fixture::new();
    let location = Place::new();
    with_processes(&fixture, &[every_minute("misfire: all")], |mut all| {
        let mut fired = Vec::new();
        for round in 0_u64..9 {
            for process in &mut all {
                fired.extend(process.dealt(&location));
            }
            let leading = all.iter().filter(|process| process.leader.leads()).count();
            assert_eq!(leading, 1, "round {round}");
            if let Some(run) = all[0].waiting().first().map(|task| task.id.number()) {
                all[0].end(run);
            }
            pass(&fixture, MINUTE_MS);
            // Whoever leads dies, every third time.
            if round % 3 == 2 && all.len() > 1 {
                all.retain(|process| !process.leader.leads());
                assert!(!all.is_empty());
            }
        }
        let expected: Vec<String> = (1..=8)
            .map(|number| format!("cron task_{number}"))
            .collect();
        assert_eq!(fired, expected);
    });
}

#[test]
fn two_leaders_that_do_not_know_of_each_other_set_an_instant_off_once() {
    let fixture = Fixture::new();
    let location = Place::new();
    with_processes(&fixture, &[every_minute("")], |mut all| {
        all[0].step(&location);
        assert!(all[0].leader.leads());
        // It sleeps for longer than its lease, and another takes over.
        pass(&fixture, i64::try_from(LEAD_MS).unwrap() + SECOND_MS);
        let by_second = all[1].dealt(&location);
        assert!(all[1].leader.leads());
        assert_eq!(by_second.last().unwrap(), "cron task_1");
        // The first wakes and still takes itself for the leader until it has read the log.
        assert!(all[0].leader.leads());
        assert_eq!(all[0].dealt(&location), [""; 0]);
        assert!(!all[0].leader.leads());
        all[1].queue.refresh().unwrap();
        assert_eq!(all[1].queue.kernel().last_task, 1);
    });
}

#[test]
fn instants_that_nobody_was_there_for_are_given_up_made_up_for_once_or_all() {
    let give_up = "cron none: no supervisor was running at the time, 9 times in a row";
    for (rest, expected) in [
        (
            "misfire: skip",
            vec![
                give_up,
                "cron task_1",
                "cron none: a run of it is already queued",
            ],
        ),
        (
            "misfire: once",
            vec![
                give_up,
                "cron task_1",
                "cron none: a run of it is already queued",
            ],
        ),
    ] {
        let fixture = Fixture::new();
        let location = Place::new();
        with_one(&fixture, &[every_minute(rest)], |mut one| {
            let next_ms = one.step(&location).again_at_ms.unwrap();
            pass(&fixture, next_ms - fixture.clock.now_ms() + 10 * MINUTE_MS);
            assert_eq!(one.dealt(&location), expected, "{rest}");
            assert_eq!(one.state().fired_at_ms, Some(next_ms + 10 * MINUTE_MS));
        });
    }
    let fixture = Fixture::new();
    let location = Place::new();
    with_one(
        &fixture,
        &[every_minute("misfire: all, misfire_max: 3")],
        |mut one| {
            let next_ms = one.step(&location).again_at_ms.unwrap();
            pass(&fixture, next_ms - fixture.clock.now_ms() + 10 * MINUTE_MS);
            let give_up = "cron none: no supervisor was running at the time, 6 times in a row";
            // Each is wanted, so the next waits until the one before it has begun.
            assert_eq!(one.dealt(&location), [give_up, "cron task_1"]);
            for number in 2..=5 {
                assert_eq!(one.dealt(&location), [""; 0]);
                one.end(number - 1);
                pass(&fixture, SECOND_MS);
                assert_eq!(one.dealt(&location), [format!("cron task_{number}")]);
            }
            one.end(5);
            pass(&fixture, SECOND_MS);
            assert_eq!(one.dealt(&location), [""; 0]);
        },
    );
}

#[test]
fn a_loop_that_is_off_or_gone_never_fires_and_catches_up_on_nothing() {
    let fixture = Fixture::new();
    let location = Place::new();
    let definition = every_minute("misfire: once");
    with_one(&fixture, std::slice::from_ref(&definition), |mut one| {
        one.step(&location);
        let switch = |is_enabled| KernelCommand::Switch {
            name: name("tidy"),
            is_enabled,
        };
        one.queue.submit(&person(), &switch(false)).unwrap();
        pass(&fixture, 10 * MINUTE_MS);
        assert_eq!(one.dealt(&location), [""; 0]);
        one.queue.submit(&person(), &switch(true)).unwrap();
        assert_eq!(one.dealt(&location), [""; 0]);
        pass(&fixture, MINUTE_MS);
        assert_eq!(one.dealt(&location), ["cron task_1"]);
        // Its run keeps a copy of the definition; the loop itself is gone.
        one.leader.set(Vec::new());
        pass(&fixture, MINUTE_MS);
        let led = one.step(&location);
        assert_eq!(led, LeadOutcome::default());
        assert!(!one.leader.leads());
        assert_eq!(one.queue.kernel().leader, None);
        assert_eq!(one.waiting()[0].loop_run().unwrap().definition, definition);
    });
}

#[test]
fn a_schedule_that_was_changed_makes_up_for_nothing_before_the_change() {
    let fixture = Fixture::new();
    let location = Place::new();
    with_one(&fixture, &[every_minute("")], |mut one| {
        one.step(&location);
        pass(&fixture, 90 * MINUTE_MS);
        let hourly = "trigger: {type: cron, schedule: \"@hourly\", misfire: once}";
        one.leader.set(vec![loop_of("tidy", hourly)]);
        assert_eq!(
            one.dealt(&location),
            ["cron none: its schedule has changed"]
        );
        pass(&fixture, 60 * MINUTE_MS);
        assert_eq!(one.dealt(&location), ["cron task_1"]);
    });
}

#[test]
fn a_clock_that_jumps_neither_repeats_nor_stops_a_loop() {
    let fixture = Fixture::new();
    let location = Place::new();
    let year_ms = 365 * 24 * 60 * MINUTE_MS;
    with_one(&fixture, &[every_minute("")], |mut one| {
        one.step(&location);
        pass(&fixture, MINUTE_MS);
        assert_eq!(one.dealt(&location), ["cron task_1"]);
        one.end(1);
        pass(&fixture, -10 * MINUTE_MS);
        for _ in 0..10 {
            assert_eq!(one.dealt(&location), [""; 0]);
            pass(&fixture, MINUTE_MS);
        }
        pass(&fixture, MINUTE_MS);
        assert_eq!(one.dealt(&location), ["cron task_2"]);
        one.end(2);
        pass(&fixture, year_ms);
        assert_eq!(
            one.dealt(&location).last().unwrap(),
            "cron none: a run of it is already queued"
        );
    });
}

#[test]
fn what_cannot_be_let_in_is_recorded_and_not_asked_again() {
    let fixture = Fixture::new();
    let mut location = Place::new();
    let unknown = loop_of(
        "tidy",
        "agent: nobody\ntrigger: {type: cron, schedule: \"* * * * *\"}",
    );
    with_one(&fixture, &[unknown], |mut one| {
        one.step(&location);
        pass(&fixture, MINUTE_MS);
        let dealt = one.dealt(&location);
        assert_eq!(dealt.len(), 1);
        assert!(
            dealt[0].starts_with("cron none: failed to find the agent profile"),
            "{dealt:?}"
        );
        assert_eq!(one.dealt(&location), [""; 0]);
        assert!(one.state().last_skip.unwrap().reason.contains("nobody"));
    });
    location.terms.tasks_max = 0;
    let fixture = Fixture::new();
    with_one(&fixture, &[every_minute("")], |mut one| {
        one.step(&location);
        pass(&fixture, MINUTE_MS);
        assert_eq!(one.dealt(&location), ["cron none: over capacity (0/0)"]);
        assert_eq!(one.dealt(&location), [""; 0]);
    });
}

#[test]
fn a_leader_with_nothing_to_do_hardly_writes() {
    let fixture = Fixture::new();
    let location = Place::new();
    let daily = loop_of("tidy", "trigger: {type: cron, schedule: \"@yearly\"}");
    with_processes(&fixture, &[daily], |mut all| {
        for process in &mut all {
            process.step(&location);
        }
        let ops = fixture.disk.ops();
        let mut bytes = Vec::new();
        for _ in 0..3_600 {
            pass(&fixture, SECOND_MS);
            all[0].step(&location);
            bytes.push(fixture.disk.ops());
        }
        bytes.dedup();
        bytes.retain(|so_far| *so_far > ops);
        assert_eq!(
            bytes.len(),
            36,
            "one renewal in a hundred seconds, after {ops} operations"
        );
    });
}
