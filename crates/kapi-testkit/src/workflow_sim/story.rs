//! One story: an interview, a build that goes on from it, and a workflow that is given up, by a
//! process that dies where it is told to and is started again.
//!
//! What the person does next is a function of how things stand, so nothing has to be remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_core::actor::Actor;
use kapi_core::goal::budget::Budget;
use kapi_core::goal::contract::{Judge, NetworkMode, SandboxLevel};
use kapi_core::workflow::command::Command;
use kapi_core::workflow::event::Begin;
use kapi_core::workflow::interview::command::InterviewCommand;
use kapi_core::workflow::interview::round::Provenance;
use kapi_core::workflow::interview::state::{Interview, InterviewPhase};
use kapi_core::workflow::mode::Mode;
use kapi_core::workflow::pending::Means;
use kapi_core::workflow::state::{Body, Status, Workflow};
use kapi_core::workflow::terms::{PlanApproval, Terms};
use kapi_engine::project::Project;
use kapi_engine::workflow::delay::Delays;
use kapi_engine::workflow::drive::{Control, DriveError, Observed, Pace, drive};
use kapi_engine::workflow::error::WorkflowError;
use kapi_engine::workflow::key::WorkflowKey;
use kapi_engine::workflow::logged::Logged;
use kapi_engine::workflow::requests::Approving;
use kapi_engine::workflow::start::NewWorkflow;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::{Mutation, SimDisk, Survival};

use crate::oracle::{Oracle, Violation};
use crate::workflow_sim::check::{self, Rest};
use crate::workflow_sim::world::World;

const ROOT: &str = "/project";
const HOME: &str = "/person";
const NOW_MS: i64 = 1_795_348_800_000;
const SESSION: &str = "session-1";
/// What one process does at most; more means that it never comes to rest.
const DEEDS_MAX: u32 = 100;

/// A simulated disk, and what was acknowledged of it.
pub(super) struct Story {
    pub(super) disk: SimDisk,
    clock: Arc<StepClock>,
    world: World,
    /// Every event that somebody was told is recorded.
    pub(super) acknowledged: BTreeMap<WorkflowKey, BTreeMap<u64, Logged>>,
    crashes: u64,
}

impl Story {
    pub(super) fn new(mistake: Option<&Mutation>) -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        disk.provide_dir(Path::new(HOME));
        if let Some(mistake) = mistake {
            disk.set_mutation(mistake.clone());
        }
        Self {
            world: World::new(disk.clone()),
            disk,
            clock: Arc::new(StepClock::new(NOW_MS)),
            acknowledged: BTreeMap::new(),
            crashes: 0,
        }
    }

    pub(super) fn ops(&self) -> u64 {
        self.disk.ops()
    }

    pub(super) const fn crashes(&self) -> u64 {
        self.crashes
    }

    /// Returns the kinds of all events that were acknowledged.
    pub(super) fn kinds(&self) -> Result<BTreeSet<String>, Violation> {
        let mut kinds = BTreeSet::new();
        for logged in self.acknowledged.values().flat_map(BTreeMap::values) {
            kinds.insert(check::kind(&logged.event)?);
        }
        Ok(kinds)
    }

    /// Tells the story to its end, with deaths on the way.
    pub(super) fn tell(
        &mut self,
        crashes: &[(u64, Survival)],
        expected: Option<&Rest>,
    ) -> Result<Rest, Violation> {
        for (op, survival) in crashes {
            self.disk.crash_at(self.disk.ops() + op, *survival);
            let ended = self.live();
            self.world.check()?;
            if let Err(error) = &ended
                && !self.disk.is_crashed()
            {
                return Err(failed(error));
            }
            self.crashes += u64::from(self.disk.is_crashed());
            if matches!(ended, Ok(Ended::Never)) {
                return Err(never());
            }
            self.disk.crash_now(*survival);
            self.disk.reboot();
            self.check_all()?;
        }
        if self.live().map_err(|error| failed(&error))? == Ended::Never {
            return Err(never());
        }
        self.world.check()?;
        self.check_all()?;
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        let rest = check::rest(&project(&disk, &clock))?;
        match expected {
            Some(expected) if *expected != rest => {
                let detail = format!("it came to rest as {rest:?}, not as {expected:?}");
                Err(Violation::new(Oracle::Convergence, detail))
            }
            Some(_) | None => Ok(rest),
        }
    }

    fn check_all(&self) -> Result<(), Violation> {
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        check::all(&disk, &project(&disk, &clock), &self.acknowledged)
    }

    /// What one process does: whatever is left to do.
    fn live(&mut self) -> Result<Ended, DriveError> {
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        let project = project(&disk, &clock);
        for _ in 0..DEEDS_MAX {
            let known = workflows(&project)?;
            let of = |purpose: &str| known.iter().find(|w| w.purpose.starts_with(purpose));
            let Some(interview) = of("Keep") else {
                self.start(&project, "Keep sessions over a crash", interview_begin())?;
                continue;
            };
            let Some(other) = of("Give") else {
                self.start(
                    &project,
                    "Give everything another colour",
                    interview_begin(),
                )?;
                continue;
            };
            if !other.status.is_terminal() {
                self.give_up(&project, other)?;
                continue;
            }
            let build = of("Build");
            let at_hand = match build {
                None if is_at_branch(interview) => {
                    let begin = Begin::Ralph {
                        base: "0".repeat(40),
                        interview: Some(interview.id.clone()),
                        spec: None,
                    };
                    self.start(&project, "Build the store of sessions", begin)?;
                    continue;
                }
                None => interview,
                Some(build) => build,
            };
            let at_hand = self.drive(&project, &WorkflowKey::of(at_hand))?;
            match deed(&at_hand) {
                Some(deed) => self.act(&project, &at_hand, &deed)?,
                None if at_hand.status == Status::Completed => return Ok(Ended::Well),
                None => {}
            }
        }
        Ok(Ended::Never)
    }

    fn start(
        &mut self,
        project: &Project<'_>,
        purpose: &str,
        begin: Begin,
    ) -> Result<(), WorkflowError> {
        let new = NewWorkflow {
            purpose: purpose.to_owned(),
            terms: terms(),
            begin,
        };
        let started = project.start_workflow(&person(), &new)?;
        let key = WorkflowKey::of(&started);
        let log = project.workflow_log(&key)?;
        self.acknowledge(&key, log);
        Ok(())
    }

    fn give_up(&mut self, project: &Project<'_>, other: &Workflow) -> Result<(), WorkflowError> {
        let key = WorkflowKey::of(other);
        project.attach(SESSION, &key)?;
        project.detach(SESSION)?;
        let reason = "Not wanted.".to_owned();
        self.act(project, other, &Deed::Command(Command::Abandon { reason }))
    }

    fn act(
        &mut self,
        project: &Project<'_>,
        workflow: &Workflow,
        deed: &Deed,
    ) -> Result<(), WorkflowError> {
        let key = WorkflowKey::of(workflow);
        let submitted = match deed {
            Deed::Command(command) => project.submit_workflow(&key, &person(), command)?,
            Deed::Approve(shown) => {
                let approving = Approving {
                    shown: shown.clone(),
                    means: Means::NamedHash,
                    accepts_risks: true,
                };
                project.approve_workflow(&key, &person(), &approving)?
            }
        };
        self.acknowledge(&key, submitted.recorded);
        Ok(())
    }

    fn drive(&mut self, project: &Project<'_>, key: &WorkflowKey) -> Result<Workflow, DriveError> {
        let time = AtomicU64::new(0);
        let control = Control {
            interrupted: &|| false,
            monotonic_ms: &|| time.fetch_add(10, Ordering::SeqCst),
            pace: Pace {
                look_ms: 1,
                progress_ms: 1_000,
            },
            delays: Delays::NONE,
        };
        let mut seen = Vec::new();
        let world = &self.world;
        let ended = drive(
            project,
            key,
            &|effect, watch| world.perform(effect, watch),
            &control,
            &mut |observed| {
                if let Observed::Recorded(logged) = observed {
                    seen.push(*logged);
                }
            },
        );
        self.acknowledge(key, seen);
        ended
    }

    fn acknowledge(&mut self, key: &WorkflowKey, events: Vec<Logged>) {
        let known = self.acknowledged.entry(key.clone()).or_default();
        known.extend(events.into_iter().map(|logged| (logged.seq, logged)));
    }
}

/// How a process ended that was not cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Well,
    Never,
}

/// What the person does.
enum Deed {
    Command(Command),
    Approve(String),
}

/// Returns what the person does next; `None` where nothing waits for them.
fn deed(workflow: &Workflow) -> Option<Deed> {
    let command = |command| Some(Deed::Command(command));
    if workflow.status == Status::Blocked {
        return command(Command::Unblock {});
    }
    if workflow.status.is_terminal() {
        return None;
    }
    if let Some(pending) = &workflow.pending {
        if workflow.revisions.is_empty() {
            let text = "Smaller.".to_owned();
            return command(Command::Revise { text });
        }
        return Some(Deed::Approve(pending.sha256.clone()));
    }
    match &workflow.body {
        Body::Interview(interview) => answer(interview),
        Body::Ralph(_) => None,
    }
}

fn answer(interview: &Interview) -> Option<Deed> {
    let asked = match interview.open().map(|open| open.number) {
        Some(3) => InterviewCommand::Defer {
            round: 3,
            reason: None,
        },
        Some(4) => InterviewCommand::Withdraw {
            round: 4,
            reason: "Not now.".to_owned(),
        },
        Some(10..) => InterviewCommand::Enough {},
        Some(round) => InterviewCommand::Answer {
            round,
            text: if round == 7 {
                String::new()
            } else {
                format!("As {round} says.")
            },
            provenance: Provenance::Person,
        },
        None if interview.phase == InterviewPhase::Branch => InterviewCommand::Reopen {
            reason: "One more thing.".to_owned(),
        },
        None => return None,
    };
    Some(Deed::Command(Command::Interview(asked)))
}

/// Tells whether the interview was approved for the second time.
fn is_at_branch(workflow: &Workflow) -> bool {
    match &workflow.body {
        Body::Interview(interview) => {
            interview.phase == InterviewPhase::Branch && workflow.approvals.len() > 1
        }
        Body::Ralph(_) => false,
    }
}

fn workflows(project: &Project<'_>) -> Result<Vec<Workflow>, WorkflowError> {
    let listed = project.workflows()?;
    listed
        .iter()
        .map(|listed| project.workflow(&listed.key))
        .collect()
}

fn interview_begin() -> Begin {
    Begin::Interview {
        commit: Some("0".repeat(40)),
    }
}

pub(super) fn project<'a>(disk: &'a SimDisk, clock: &'a StepClock) -> Project<'a> {
    Project {
        disk,
        clock,
        layout: ProjectLayout::new(PathBuf::from(ROOT)),
        owner: "sim".to_owned(),
        home: Some(PathBuf::from(HOME)),
    }
}

pub(super) fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

fn terms() -> Terms {
    Terms {
        agent: "script:worker.yaml".to_owned(),
        reviewer: Some("script:reviewer.yaml".to_owned()),
        judge: Judge::None,
        sandbox: SandboxLevel::None,
        network: NetworkMode::None,
        budget: Budget {
            turns: 3,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        tokens: None,
        usd_micros: None,
        jobs: 2,
        verify_timeout_ms: 1_000,
        question_timeout_ms: 1_000,
        protect: Vec::new(),
        verify: Vec::new(),
        plan_approval: PlanApproval::Ask,
    }
}

fn never() -> Violation {
    let detail = format!("it did not come to rest within {DEEDS_MAX} deeds");
    Violation::new(Oracle::Convergence, detail)
}

fn failed(error: &DriveError) -> Violation {
    let mut detail = format!("the engine failed without a crash: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        detail = format!("{detail}: {error}");
        cause = error.source();
    }
    Violation::new(Oracle::Convergence, detail)
}

/// Returns the mode of every workflow of the story.
pub(super) const MODES: [Mode; 2] = [Mode::DeepInterview, Mode::Ralph];
