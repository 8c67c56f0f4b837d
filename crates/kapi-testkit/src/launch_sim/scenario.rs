//! One story of a sandbox: tasks that are launched in it one after the other, by processes that die
//! where they are told to, and what a person does with it afterwards.
//!
//! Agents and git are simulated; the log and the files beside it are the real ones. Remembers what was
//! acknowledged, and checks after each death that it is still true.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::usage::Usage;
use kapi_launch::error::LaunchError;
use kapi_launch::event::{EndedAgent, LaunchEvent, LaunchHistory, LaunchMachine, LaunchRequest};
use kapi_launch::log::LaunchLog;
use kapi_launch::paths::{SandboxId, SandboxPaths, Sandboxes};
use kapi_launch::raise;
use kapi_launch::record::{LaunchState, SandboxRecord, VERSION, WorkState, WorkspaceKind};
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine as _;
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_status::file::SandboxMode;
use kapi_sys::disk::{Disk as _, create_dir_durably};
use kapi_sys::sim_disk::{Mutation, SimDisk};

use crate::crash::CrashScenario;
use crate::oracle::{Oracle, OracleViolation, check_durability, read_log};

const HOME: &str = "/home";
const NOW: i64 = 1_795_348_800_000;
/// Tasks of the story.
const TASKS: u64 = 4;
/// The task whose limits are raised while it runs, and the one that is settled elsewhere.
const RAISED: u64 = 1;
const SETTLED: u64 = 2;
/// The task whose agent a person says something to.
const SAID: u64 = 3;
/// Tokens that each task uses.
const TOKENS: u64 = 100;
/// The most tokens that a task may use, before and after it is raised.
const LIMIT: u64 = 150;
const MORE: u64 = 50;

/// What was acknowledged.
#[derive(Debug, Default)]
struct Acknowledgement {
    /// The log as it was after the last event that was acknowledged.
    log: Vec<EventRecord<LaunchEvent>>,
    /// Tasks whose agent has ended.
    executed: BTreeSet<u64>,
    /// What the person has done afterwards.
    deeds: usize,
    /// What must never happen, once it has.
    broken: Option<OracleViolation>,
}

/// A simulated disk with a sandbox that some processes launch agents in, one after the other.
pub(super) struct LaunchScenario {
    disk: SimDisk,
    location: SandboxPaths,
    said: Acknowledgement,
    /// Tasks whose work is on the branch, which lies on another disk.
    committed: BTreeSet<u64>,
}

/// Where the story comes to rest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LaunchRest {
    used: Usage,
    committed: BTreeSet<u64>,
    n_agents: usize,
    n_ended: usize,
    /// Messages that no agent was told of.
    n_unheard: usize,
    limits: Option<UsageLimits>,
}

impl LaunchScenario {
    pub(super) fn new(mistake: Option<&Mutation>) -> Result<Self, OracleViolation> {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(HOME));
        if let Some(mistake) = mistake {
            disk.set_mutation(mistake.clone());
        }
        let sandboxes = Sandboxes {
            state_dir: PathBuf::from(HOME),
        };
        let id = SandboxId::parse("1").map_err(|error| refused(&error))?;
        Ok(Self {
            disk,
            location: sandboxes.location("shop-0123456789ab", &id),
            said: Acknowledgement::default(),
            committed: BTreeSet::new(),
        })
    }

    pub(super) fn n_ops(&self) -> u64 {
        self.disk.ops()
    }

    /// Returns the kinds of events in the log.
    pub(super) fn kinds(&self) -> Result<BTreeSet<&'static str>, OracleViolation> {
        let log = self.read()?;
        Ok(log.iter().map(|logged| kind(&logged.event)).collect())
    }

    fn read(&self) -> Result<Vec<EventRecord<LaunchEvent>>, OracleViolation> {
        let files = self.disk.snapshot();
        let log = self.location.dir().join("events.jsonl");
        read_log("1", files.get(&log).map(Vec::as_slice).unwrap_or_default())
    }

    /// Notes that everything that is in the log now was acknowledged.
    fn acknowledge(&mut self) {
        match self.read() {
            Ok(log) => self.said.log = log,
            Err(violation) => self.said.broken = Some(violation),
        }
    }

    fn record(&mut self, events: &[LaunchEvent]) -> Result<(), LaunchError> {
        log(&self.disk, &self.location).record(NOW, events)?;
        self.acknowledge();
        Ok(())
    }

    /// What one process does: whatever is left to do.
    fn do_all(&mut self) -> Result<(), LaunchError> {
        let made = create_dir_durably(&self.disk, Path::new(HOME), &self.location.dir());
        made.map_err(|error| LaunchError::failed(&error))?;
        while self.step()? {}
        while self.said.deeds < DEEDS.len() {
            self.deed(DEEDS[self.said.deeds])?;
            self.said.deeds += 1;
        }
        Ok(())
    }

    /// Launches the next task, or goes on with the one that was cut off; tells whether there was one.
    fn step(&mut self) -> Result<bool, LaunchError> {
        let log = log(&self.disk, &self.location);
        let Some(sandbox) = log.held()? else {
            self.launch(0, sandbox(1))?;
            return Ok(true);
        };
        let history = log.history()?;
        let task = history.request.as_ref().map(|request| request.task.clone());
        let task: u64 = task.and_then(|task| task.parse().ok()).unwrap_or(0);
        let again = SandboxRecord {
            launches: sandbox.launches + 1,
            state: LaunchState::Running,
            ..sandbox.clone()
        };
        match sandbox.state {
            LaunchState::Running if history.is_cut_off_behind_agent() => {
                self.keep(task, sandbox)?;
            }
            LaunchState::Running => self.launch(task, again)?,
            LaunchState::Finished if task + 1 < TASKS => self.launch(task + 1, again)?,
            LaunchState::Finished => return Ok(false),
        }
        Ok(true)
    }

    fn launch(&mut self, task: u64, sandbox: SandboxRecord) -> Result<(), LaunchError> {
        let limits = UsageLimits {
            tokens: Some(LIMIT),
            usd_micros: None,
        };
        let request = LaunchRequest {
            task: task.to_string(),
            command: vec!["launch".to_owned()],
            limits,
            deadline_ms: 1_000,
            is_interactive: false,
        };
        self.record(&[LaunchEvent::Launched {
            sandbox: Box::new(sandbox.clone()),
            request: Box::new(request),
        }])?;
        if self.said.executed.contains(&task) {
            let detail = format!("the agent of task {task} had ended and was run again");
            self.said.broken = Some(OracleViolation::new(Oracle::Once, detail));
        }
        let run = self.location.runs().join(sandbox.launches.to_string());
        self.write(&run, &["it begins\n", "it ends\n"])?;
        if task == SAID {
            self.say_and_tell()?;
        }
        if task == RAISED {
            let user = "user".to_owned();
            let more = UsageLimits {
                tokens: Some(MORE),
                usd_micros: None,
            };
            let log = log(&self.disk, &self.location);
            raise::raise(log, &Actor::Human { user }, more, NOW)?;
            self.acknowledge();
        }
        let agent = EndedAgent {
            exit_code: 0,
            error: None,
            message: format!("task {task} is done"),
            grade: None,
        };
        log(&self.disk, &self.location).agent_ended(&sandbox, agent, used(1), NOW)?;
        self.acknowledge();
        self.said.executed.insert(task);
        self.keep(task, sandbox)
    }

    /// Has a person say something to the agent, and the agent told of everything that was said.
    fn say_and_tell(&mut self) -> Result<(), LaunchError> {
        let text = "use the old parser".to_owned();
        self.record(&[LaunchEvent::PersonSaid { text }])?;
        let unheard = log(&self.disk, &self.location).history()?.said;
        let messages = unheard.len();
        self.record(&[LaunchEvent::Told { messages }])
    }

    /// Puts the work on its branch, once the end of its agent is durable.
    fn keep(&mut self, task: u64, mut sandbox: SandboxRecord) -> Result<(), LaunchError> {
        if !self.is_end_durable() {
            let detail =
                format!("the work of task {task} is kept before its agent's end is durable");
            self.said.broken = Some(OracleViolation::new(Oracle::Intent, detail));
        }
        self.committed.insert(task);
        sandbox.work = WorkState::Committed;
        let committed = LaunchEvent::Committed {
            sandbox: Box::new(sandbox.clone()),
        };
        self.record(&[committed])?;
        sandbox.exit_code = Some(0);
        log(&self.disk, &self.location).end(sandbox, used(1), NOW)?;
        self.acknowledge();
        if task == SETTLED {
            log(&self.disk, &self.location).settle(NOW)?;
            self.acknowledge();
        }
        Ok(())
    }

    fn is_end_durable(&self) -> bool {
        let files = self.disk.durable();
        let log = self.location.dir().join("events.jsonl");
        let bytes = files.get(&log).map(Vec::as_slice).unwrap_or_default();
        let log = read_log::<LaunchEvent>("1", bytes).unwrap_or_default();
        let last = log.iter().rev().find_map(|logged| match &logged.event {
            LaunchEvent::AgentEnded { .. } => Some(true),
            LaunchEvent::Launched { .. } => Some(false),
            _ => None,
        });
        last == Some(true)
    }

    fn write(&self, run: &Path, lines: &[&str]) -> Result<(), LaunchError> {
        let failed = |error| LaunchError::failed(&error);
        self.disk.create_dir(run).map_err(failed)?;
        let file = run.join("transcript.jsonl");
        self.disk.write(&file, b"").map_err(failed)?;
        for line in lines {
            self.disk.append(&file, line.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn deed(&mut self, deed: PersonDeed) -> Result<(), LaunchError> {
        let log = log(&self.disk, &self.location);
        let Some(sandbox) = log.held()?.map(Box::new) else {
            return Ok(());
        };
        match deed {
            PersonDeed::Enter => self.record(&[LaunchEvent::Entered { sandbox }]),
            PersonDeed::Leave => {
                self.write(&self.location.runs().join("shell"), &["it was entered\n"])?;
                let over = log.run_over("shell", Usage::ZERO)?;
                self.record(&[over, LaunchEvent::Left { sandbox }])
            }
            PersonDeed::Merge => self.record(&[LaunchEvent::Merged { sandbox }]),
            PersonDeed::RemoveRuns => self.record(&[LaunchEvent::RunsRemoved]),
        }
    }
}

/// What a person does with a sandbox.
#[derive(Debug, Clone, Copy)]
enum PersonDeed {
    Enter,
    Leave,
    Merge,
    RemoveRuns,
}

const DEEDS: [PersonDeed; 4] = [
    PersonDeed::Enter,
    PersonDeed::Leave,
    PersonDeed::Merge,
    PersonDeed::RemoveRuns,
];

impl CrashScenario for LaunchScenario {
    type Rest = LaunchRest;

    fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn live(&mut self) -> Result<(), OracleViolation> {
        self.do_all().map_err(|error| refused(&error))
    }

    fn witness(&self) -> Result<(), OracleViolation> {
        self.said.broken.clone().map_or(Ok(()), Err)
    }

    /// Checks that what was acknowledged is there, that nothing counts twice, and that everything says
    /// the same.
    fn check(&self) -> Result<(), OracleViolation> {
        let found = self.read()?;
        check_durability(&self.said.log, &found)?;
        let mut folded = LaunchHistory::default();
        let (mut runs, mut n_agents) = (BTreeSet::new(), 0);
        for logged in &found {
            LaunchMachine::evolve(&mut folded, logged);
            if let LaunchEvent::AgentEnded { .. } = &logged.event {
                n_agents += 1;
            }
            if let LaunchEvent::RunRecorded { run, .. } = &logged.event
                && run != "shell"
                && !runs.insert(run)
            {
                let detail = format!("run {run} is recorded twice, at event {}", logged.seq);
                return Err(OracleViolation::new(Oracle::Once, detail));
            }
        }
        if folded.used != used(n_agents) {
            let detail = format!("{:?} was used by {n_agents} agents", folded.used);
            return Err(OracleViolation::new(Oracle::Once, detail));
        }
        let log = log(&self.disk, &self.location);
        if log.history().map_err(|error| refused(&error))? != folded {
            let detail = "what is known of the launch is not what its log comes to";
            return Err(OracleViolation::new(Oracle::Convergence, detail));
        }
        let audited = log.audit().map_err(|error| refused(&error))?;
        match audited.filter(|audit| !audit.is_whole()) {
            Some(audit) => {
                let detail = format!("an audit finds {:?}", audit.faults);
                Err(OracleViolation::new(Oracle::Convergence, detail))
            }
            None => Ok(()),
        }
    }

    /// Checks that nothing is left to do and nothing was done twice over.
    fn rest(&self) -> Result<LaunchRest, OracleViolation> {
        let log = log(&self.disk, &self.location);
        let history = log.history().map_err(|error| refused(&error))?;
        let audited = log.audit().map_err(|error| refused(&error))?;
        let stale = audited.map(|audit| audit.stale).unwrap_or_default();
        let is_over = history
            .sandbox
            .is_some_and(|sandbox| sandbox.state == LaunchState::Finished);
        if !is_over || !stale.is_empty() {
            let detail = format!("it is over: {is_over}; behind the log: {stale:?}");
            return Err(OracleViolation::new(Oracle::Convergence, detail));
        }
        let found = self.read()?;
        let n_of = |kinds: &str| {
            let events = found.iter().map(|logged| kind(&logged.event));
            events.filter(|kind| *kind == kinds).count()
        };
        Ok(LaunchRest {
            used: history.used,
            committed: self.committed.clone(),
            n_agents: n_of("agent_ended"),
            n_ended: n_of("ended"),
            n_unheard: history.said.len(),
            limits: history.request.map(|request| request.limits),
        })
    }
}

fn log<'a>(disk: &'a SimDisk, location: &'a SandboxPaths) -> LaunchLog<'a, 'a> {
    LaunchLog { disk, location }
}

fn refused(error: &LaunchError) -> OracleViolation {
    OracleViolation::new(Oracle::Convergence, error.message.clone())
}

/// Returns what so many agents use.
fn used(n_agents: u64) -> Usage {
    Usage {
        input_tokens: TOKENS * n_agents,
        ..Usage::ZERO
    }
}

fn sandbox(launches: u32) -> SandboxRecord {
    SandboxRecord {
        version: VERSION,
        id: "1".to_owned(),
        project: PathBuf::from("/project"),
        mode: SandboxMode::Overlay,
        made: WorkspaceKind::Layer,
        level: SandboxLevel::Native,
        network: NetworkMode::Filtered,
        agent: "script:agent.yaml".to_owned(),
        branch: None,
        base: None,
        below: None,
        port_base: 20_000,
        launches,
        state: LaunchState::Running,
        work: WorkState::Pending,
        created_at_ms: NOW,
        updated_at_ms: NOW,
        exit_code: None,
        error: None,
        error_class: None,
        advice: None,
        grade: None,
        n_changed: 0,
    }
}

/// Returns what kind of event it is, as its line says.
const fn kind(event: &LaunchEvent) -> &'static str {
    match event {
        LaunchEvent::Launched { .. } => "launched",
        LaunchEvent::PersonSaid { .. } => "person_said",
        LaunchEvent::Told { .. } => "told",
        LaunchEvent::RunRecorded { .. } => "run_recorded",
        LaunchEvent::AgentEnded { .. } => "agent_ended",
        LaunchEvent::LimitsRaised { .. } => "limits_raised",
        LaunchEvent::Committed { .. } => "committed",
        LaunchEvent::Ended { .. } => "ended",
        LaunchEvent::Settled => "settled",
        LaunchEvent::Entered { .. } => "entered",
        LaunchEvent::Left { .. } => "left",
        LaunchEvent::Merged { .. } => "merged",
        LaunchEvent::RunsRemoved => "runs_removed",
    }
}
