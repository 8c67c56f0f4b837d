//! One story, told by a process that dies where it is told to and is started again.
//!
//! Knows disk and engine, and keeps what was acknowledged; what happens is the tale's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_core::link::WorkflowRelation;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_machine::logged::EventRecord;
use kapi_machine::pace::Pace;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::{Mutation, SimDisk};
use kapi_workflow::record::delay::Delays;
use kapi_workflow::record::drive::{
    WorkflowDriveControl, WorkflowDriveError, WorkflowObservation, drive,
};
use kapi_workflow::record::error::WorkflowError;
use kapi_workflow::record::requests::Approving;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::pending::Means;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use super::world::PROGRESS_MS;
use crate::crash::CrashScenario;
use crate::oracle::{Oracle, OracleViolation, failed};
use crate::workflow_sim::check::{self, WorkflowRest};
use crate::workflow_sim::kinds::kind;
use crate::workflow_sim::script::{Deed, NextStep, WorkflowScript, person};
use crate::workflow_sim::world::StoryWorld;

const ROOT: &str = "/project";
const HOME: &str = "/person";
const NOW_MS: i64 = 1_795_348_800_000;
const SESSION: &str = "session-1";

/// What a workflow may use: more than any story does.
const TOKENS: u64 = 1_000_000;
const WALL_MS: u64 = 24 * 60 * 60 * 1_000;
/// What one process does at most; more means that it never comes to rest.
const DEEDS_MAX: u32 = 100;

/// A simulated disk, and what was acknowledged of it.
pub(super) struct WorkflowScenario {
    script: &'static WorkflowScript,
    pub(super) disk: SimDisk,
    clock: Arc<StepClock>,
    world: StoryWorld,
    /// Every event that somebody was told is recorded.
    pub(super) acknowledged: BTreeMap<WorkflowKey, BTreeMap<u64, EventRecord<WorkflowEvent>>>,
}

impl WorkflowScenario {
    pub(super) fn new(script: &'static WorkflowScript, mistake: Option<&Mutation>) -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        disk.provide_dir(Path::new(HOME));
        if let Some(mistake) = mistake {
            disk.set_mutation(mistake.clone());
        }
        Self {
            script,
            world: StoryWorld::new(disk.clone()),
            disk,
            clock: Arc::new(StepClock::new(NOW_MS)),
            acknowledged: BTreeMap::new(),
        }
    }

    /// Returns the kinds of all events that were acknowledged.
    pub(super) fn kinds(&self) -> BTreeSet<&'static str> {
        let logs = self.acknowledged.values().flat_map(BTreeMap::values);
        logs.map(|logged| kind(&logged.event)).collect()
    }

    /// Does what comes next, and returns where the workflow at hand was before somebody did
    /// something about it.
    fn go_on(&mut self, project: &Project<'_>) -> Result<WorkflowStatus, WorkflowDriveError> {
        let known = workflows(project)?;
        match (self.script.next)(&known) {
            NextStep::Start(purpose, begin) => self.start(project, purpose, begin)?,
            NextStep::GiveUp(workflow) => self.give_up(project, workflow)?,
            NextStep::Drive(workflow) => {
                let at_hand = self.drive(project, &workflow.key())?;
                if let Some(deed) = (self.script.deed)(&at_hand) {
                    self.act(project, &at_hand, &deed)?;
                }
                return Ok(at_hand.status);
            }
        }
        Ok(WorkflowStatus::Active)
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
        let started = Workflows::of(project).start_workflow(&person(), &new)?;
        let key = started.key();
        let log = Workflows::of(project).workflow_log(&key)?;
        self.acknowledge(&key, log);
        self.acknowledge_link(project, &started)
    }

    /// Whoever is told that a workflow goes on from an interview is told that this one knows it.
    fn acknowledge_link(
        &mut self,
        project: &Project<'_>,
        workflow: &Workflow,
    ) -> Result<(), WorkflowError> {
        let mut links = workflow.links.iter();
        if let Some(link) = links.find(|link| link.relation == WorkflowRelation::Context) {
            let key = WorkflowKey {
                mode: link.mode,
                id: link.workflow.clone(),
            };
            let log = Workflows::of(project).workflow_log(&key)?;
            self.acknowledge(&key, log);
        }
        Ok(())
    }

    fn give_up(&mut self, project: &Project<'_>, other: &Workflow) -> Result<(), WorkflowError> {
        let key = other.key();
        Workflows::of(project).attach(SESSION, &key)?;
        Workflows::of(project).detach(SESSION)?;
        let reason = "Not wanted.".to_owned();
        let deed = Deed::Command(person(), WorkflowCommand::Abandon { reason });
        self.act(project, other, &deed)
    }

    fn act(
        &mut self,
        project: &Project<'_>,
        workflow: &Workflow,
        deed: &Deed,
    ) -> Result<(), WorkflowError> {
        let key = workflow.key();
        let submitted = match deed {
            Deed::Command(actor, command) => {
                Workflows::of(project).submit_workflow(&key, actor, command)?
            }
            Deed::Approve(shown) => {
                let approving = Approving {
                    shown: shown.clone(),
                    means: Means::NamedHash,
                    accepts_risks: true,
                };
                Workflows::of(project).approve_workflow(&key, &person(), &approving)?
            }
        };
        self.acknowledge(&key, submitted.recorded);
        Ok(())
    }

    fn drive(
        &mut self,
        project: &Project<'_>,
        key: &WorkflowKey,
    ) -> Result<Workflow, WorkflowDriveError> {
        let world = &self.world;
        let control = WorkflowDriveControl {
            interrupted: &|| false,
            monotonic_ms: &|| world.monotonic_ms(),
            pace: Pace {
                look_ms: 1,
                progress_ms: PROGRESS_MS,
                ..Pace::STANDARD
            },
            delays: Delays::NONE,
        };
        let mut seen = Vec::new();
        let ended = drive(
            project,
            key,
            &|effect, watch| world.perform(effect, watch),
            &control,
            &mut |observed| {
                if let WorkflowObservation::Recorded(logged) = observed {
                    world.hear(&logged.event);
                    seen.push(*logged);
                }
            },
        );
        self.acknowledge(key, seen);
        let workflow = ended?;
        self.acknowledge_link(project, &workflow)?;
        Ok(workflow)
    }

    fn acknowledge(&mut self, key: &WorkflowKey, events: Vec<EventRecord<WorkflowEvent>>) {
        let known = self.acknowledged.entry(key.clone()).or_default();
        known.extend(events.into_iter().map(|logged| (logged.seq, logged)));
    }
}

impl CrashScenario for WorkflowScenario {
    type Rest = WorkflowRest;

    fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn live(&mut self) -> Result<(), OracleViolation> {
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        let project = project(&disk, &clock);
        for _ in 0..DEEDS_MAX {
            let status = self.go_on(&project).map_err(|error| failed(&error))?;
            if status == self.script.end {
                return Ok(());
            }
        }
        let detail = format!("it has not stopped within {DEEDS_MAX} deeds");
        Err(OracleViolation::new(Oracle::Convergence, detail))
    }

    fn witness(&self) -> Result<(), OracleViolation> {
        self.world.check()
    }

    fn check(&self) -> Result<(), OracleViolation> {
        let project = project(&self.disk, &self.clock);
        check::all(&self.disk, &project, &self.acknowledged)
    }

    fn rest(&self) -> Result<WorkflowRest, OracleViolation> {
        check::rest(&project(&self.disk, &self.clock))
    }
}

fn workflows(project: &Project<'_>) -> Result<Vec<Workflow>, WorkflowError> {
    let listed = Workflows::of(project).workflows()?;
    listed
        .iter()
        .map(|listed| Workflows::of(project).workflow(&listed.key))
        .collect()
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

fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "script:worker.yaml".to_owned(),
        reviewer: Some("script:reviewer.yaml".to_owned()),
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::None,
        network: NetworkMode::None,
        budget: Budget {
            turns: 3,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        tokens: Some(TOKENS),
        usd_micros: None,
        wall_ms: Some(WALL_MS),
        jobs: 2,
        verify_timeout_ms: 1_000,
        question_timeout_ms: 1_000,
        protect: Vec::new(),
        verify: Vec::new(),
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}
