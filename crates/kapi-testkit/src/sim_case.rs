//! One case of the crash simulation: a story, its crashes, and what the oracles say of it.
//!
//! The process that is started again and again here does nothing special after a crash: it looks
//! for the goal and drives it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_goal::record::audit::audit_goal;
use kapi_goal::record::drive::{DriveControl, DriveObservation, GoalDriveError, drive};
use kapi_goal::record::error::EngineError;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::project::Project;
use kapi_goal::record::snapshot::GoalSnapshot;
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent, Stop, TurnVerdict};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::logged::EventRecord;
use kapi_machine::pace::Pace;
use kapi_sys::disk::Disk as _;
use kapi_sys::sim_disk::{Mutation, SimDisk};

use crate::crash::{Boundary, Crash, CrashScenario, notify};
use crate::oracle::{
    Oracle, OracleViolation, causes, check_durability, check_files, check_once, failed, read_log,
};
use crate::sim_mistake::Mistake;
use crate::sim_scenario::{BRANCH, OTHER_JUDGE, ROOT, SimScenario, person, project};
use crate::sim_tree::SimClock;
use crate::sim_world::{Durable, SimWorld, not_owned};

/// When every simulation begins, in milliseconds since the epoch.
const START_MS: i64 = 1_787_392_800_000;

/// Where a goal came to rest: what must be equal however often the power failed on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalRest {
    status: GoalStatus,
    stop: Option<Stop>,
    turn: u32,
    turns_spent: u32,
    last_verdict: Option<TurnVerdict>,
    candidate: Option<String>,
    result: Option<String>,
    is_idle: bool,
    branches: BTreeMap<String, String>,
    commits: Vec<String>,
}

/// What became of a case.
pub(crate) struct CaseVerdict {
    pub(crate) rest: GoalRest,
    /// Disk operations from the first start on.
    pub(crate) ops: u64,
    /// Moments around effects from the first start on.
    pub(crate) moments: u64,
    /// Crashes that came to pass.
    pub(crate) crashes: u64,
}

/// What goes on through all crashes of one case.
struct CrashCase {
    scenario: SimScenario,
    disk: SimDisk,
    clock: SimClock,
    world: SimWorld,
    foreign: BTreeMap<PathBuf, Vec<u8>>,
    acknowledged: BTreeMap<GoalId, Vec<EventRecord<GoalEvent>>>,
}

/// Runs one case to its end.
///
/// # Errors
/// When an oracle complains.
pub(crate) fn run_case(
    scenario: SimScenario,
    crashes: &[Crash],
    mistake: Option<Mistake>,
    expected: Option<&GoalRest>,
) -> Result<CaseVerdict, OracleViolation> {
    let mut case = CrashCase::new(scenario, mistake)?;
    let (ops_before, moments_before) = (case.disk.ops(), case.world.moments());
    let reported = notify(&mut case, crashes, expected)?;
    Ok(CaseVerdict {
        rest: reported.rest,
        ops: case.disk.ops() - ops_before,
        moments: case.world.moments() - moments_before,
        crashes: reported.crashes,
    })
}

impl CrashScenario for CrashCase {
    type Rest = GoalRest;

    fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn arm(&mut self, crash: Option<Crash>) {
        self.world.never_crash();
        match crash {
            None => {}
            Some(Crash { at, survival }) => match at {
                Boundary::Op(op) => self.disk.crash_at(self.disk.ops() + op, survival),
                Boundary::Moment(moment) => {
                    let moment = self.world.moments() + moment;
                    self.world.crash_at(moment, survival);
                }
            },
        }
    }

    fn live(&mut self) -> Result<(), OracleViolation> {
        self.start().map_err(|error| failed(&error))?;
        Ok(())
    }

    fn witness(&self) -> Result<(), OracleViolation> {
        self.world.check()
    }

    fn check(&self) -> Result<(), OracleViolation> {
        let files = self.disk.snapshot();
        self.check_owned(&files)?;
        let no_events = Vec::new();
        for id in self.goal_ids(&files) {
            let acknowledged = self.acknowledged.get(&id).unwrap_or(&no_events);
            check_durability(acknowledged, &self.read(&id, &files)?)?;
        }
        Ok(())
    }

    fn rest(&self) -> Result<GoalRest, OracleViolation> {
        let project = project(&self.disk, &self.clock, "sim");
        let ids = project.goal_ids().map_err(|error| failed(&error))?;
        let Some(id) = ids.last() else {
            return Err(OracleViolation::new(
                Oracle::Convergence,
                "there is no goal",
            ));
        };
        let goal = project.load(id).map_err(|error| failed(&error))?;
        self.check_rest(&goal)
    }
}

impl CrashCase {
    fn new(scenario: SimScenario, mistake: Option<Mistake>) -> Result<Self, OracleViolation> {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        let theirs = Path::new(ROOT).join("notes.txt");
        disk.write(&theirs, b"not ours")
            .and_then(|()| disk.sync(&theirs))
            .and_then(|()| disk.sync(Path::new(ROOT)))
            .map_err(|error| OracleViolation::new(Oracle::Ownership, error.to_string()))?;
        let foreign = disk.snapshot();
        let clock = SimClock::new(START_MS);
        let goals_dir = project(&disk, &clock, "sim").layout.goals_dir();
        let world = SimWorld::new(scenario, &disk, &clock, goals_dir).with_mistake(mistake);
        match mistake {
            None | Some(Mistake::ReusedEffectId | Mistake::NoRestore | Mistake::WrongBranch) => {}
            Some(Mistake::NoFileSync) => disk.set_mutation(Mutation::SkipFileSync),
            Some(Mistake::NoDirSync) => disk.set_mutation(Mutation::SkipDirSync),
            Some(Mistake::NoTailRepair) => disk.set_mutation(Mutation::SkipTruncate),
            Some(Mistake::EffectBeforeIntent) => {
                let intent = "\"effect_intended\"".to_owned();
                disk.set_mutation(Mutation::DelayAppendMatching(intent));
            }
        }
        Ok(Self {
            scenario,
            disk,
            clock,
            world,
            foreign,
            acknowledged: BTreeMap::new(),
        })
    }

    /// Does what a process does from its start to its end, whatever came before.
    fn start(&mut self) -> Result<Goal, GoalDriveError> {
        let (disk, clock) = (self.disk.clone(), self.clock.clone());
        let project = project(&disk, &clock, "kapi run");
        let id = match project.goal_ids()?.pop() {
            Some(id) => id,
            None => self.create(&project)?,
        };
        if project.load(&id)?.status == GoalStatus::Proposed {
            let contract_hash = project.load(&id)?.contract_hash;
            let means = ApprovalMeans::YesFlag;
            self.submit(
                &project,
                &id,
                &GoalCommand::Approve {
                    contract_hash,
                    means,
                },
            )?;
        }
        let mut goal = self.drive(&project, &id)?;
        if goal.status == GoalStatus::Paused {
            self.give_more_turns(&project, &goal)?;
            goal = self.drive(&project, &id)?;
        }
        while goal.status == GoalStatus::Waiting {
            self.meet_wait(&project, &goal)?;
            goal = self.drive(&project, &id)?;
        }
        Ok(goal)
    }

    /// Wakes a parked goal the first time, as `kapi up` does; then a person names another judge.
    fn meet_wait(&mut self, project: &Project<'_>, goal: &Goal) -> Result<(), EngineError> {
        if goal.waits == 1 {
            let wake = GoalCommand::Wake {
                number: goal.waits,
                why: "it is time".to_owned(),
            };
            let submitted = project.submit(&goal.id, &Actor::Engine, &wake)?;
            let acknowledged = self.acknowledged.entry(goal.id.clone()).or_default();
            acknowledged.extend(submitted.recorded);
            return Ok(());
        }
        let judge = OTHER_JUDGE.to_owned();
        let change = GoalCommand::Person(PersonCommand::ChangeJudge { judge });
        self.submit(project, &goal.id, &change)
    }

    fn create(&mut self, project: &Project<'_>) -> Result<GoalId, EngineError> {
        let slug = Slug::from_sentence("try");
        let id = project.create_goal(&person(), &slug, &self.scenario.contract())?;
        let created = project.log(&id)?;
        self.acknowledged.insert(id.clone(), created);
        Ok(id)
    }

    fn submit(
        &mut self,
        project: &Project<'_>,
        id: &GoalId,
        command: &GoalCommand,
    ) -> Result<(), EngineError> {
        let submitted = project.submit(id, &person(), command)?;
        self.acknowledged
            .entry(id.clone())
            .or_default()
            .extend(submitted.recorded);
        Ok(())
    }

    fn give_more_turns(&mut self, project: &Project<'_>, goal: &Goal) -> Result<(), EngineError> {
        if goal.budget.used_up(&goal.spent).is_some() {
            let raise = Raise {
                turns: 2,
                ..Raise::default()
            };
            self.submit(project, &goal.id, &GoalCommand::RaiseBudget(raise))?;
        }
        self.submit(project, &goal.id, &GoalCommand::Resume)
    }

    fn drive(&mut self, project: &Project<'_>, id: &GoalId) -> Result<Goal, GoalDriveError> {
        let control = DriveControl {
            person: person(),
            interrupted: &|| false,
            monotonic_ms: &|| 0,
            pace: Pace {
                look_ms: 1,
                progress_ms: 0,
                heartbeat_ms: 1_000,
            },
        };
        let acknowledged = self.acknowledged.entry(id.clone()).or_default();
        drive(
            project,
            id,
            &self.world,
            &control,
            &mut |observed| match observed {
                // What another process recorded is acknowledged to that one, not to us.
                DriveObservation::Recorded(logged) if logged.actor == Actor::Engine => {
                    acknowledged.push(*logged);
                }
                DriveObservation::Recorded(_)
                | DriveObservation::Performing(_)
                | DriveObservation::Activity(_) => {}
            },
        )
    }

    fn goal_ids(&self, files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<GoalId> {
        let goals = project(&self.disk, &self.clock, "sim").layout.goals_dir();
        let names = files
            .keys()
            .filter_map(|path| path.strip_prefix(&goals).ok());
        let mut ids: Vec<GoalId> = names
            .filter_map(|path| path.iter().next())
            .filter_map(|name| GoalId::parse(&name.to_string_lossy()).ok())
            .chain(self.acknowledged.keys().cloned())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    fn read(
        &self,
        id: &GoalId,
        files: &BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<Vec<EventRecord<GoalEvent>>, OracleViolation> {
        let log = project(&self.disk, &self.clock, "sim")
            .layout
            .goal(id)
            .events();
        read_log(
            &id.to_string(),
            files.get(&log).map(Vec::as_slice).unwrap_or_default(),
        )
    }

    fn check_owned(&self, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), OracleViolation> {
        check_files(&self.foreign, files, &Path::new(ROOT).join(".ilchul"))?;
        let Durable { branches, .. } = self.world.durable();
        let base = self.scenario.contract().base.commit;
        for (name, commit) in &branches {
            if name != BRANCH && *commit != base {
                return Err(not_owned(&format!("branch {name}")));
            }
        }
        if branches.len() > 3 {
            return Err(not_owned("the set of branches"));
        }
        Ok(())
    }

    /// Checks what must hold when everything has come to rest.
    fn check_rest(&self, goal: &Goal) -> Result<GoalRest, OracleViolation> {
        let files = self.disk.snapshot();
        let log = self.read(&goal.id, &files)?;
        check_once(&log)?;
        self.check_derived(goal, &files, log.len())?;
        self.check_evidence(goal)?;
        let Durable {
            branches, commits, ..
        } = self.world.durable();
        Ok(GoalRest {
            status: goal.status,
            stop: goal.stop.clone(),
            turn: goal.turn,
            turns_spent: goal.spent.turns,
            last_verdict: goal.last_verdict,
            candidate: goal
                .candidate
                .as_ref()
                .map(|candidate| candidate.commit.clone()),
            result: goal.result.clone(),
            is_idle: goal.in_flight.is_none(),
            branches,
            commits: commits.into_keys().collect(),
        })
    }

    /// Checks that every run of an agent is remembered, and is what the log remembers.
    fn check_evidence(&self, goal: &Goal) -> Result<(), OracleViolation> {
        let project = project(&self.disk, &self.clock, "sim");
        let audit = audit_goal(&project, &goal.id)
            .map_err(|error| OracleViolation::new(Oracle::Durability, causes(&error)))?;
        match audit.faults.first() {
            Some(fault) => Err(OracleViolation::new(Oracle::Durability, causes(fault))),
            None => Ok(()),
        }
    }

    /// Checks that snapshot, inventory and listing say what the log says.
    fn check_derived(
        &self,
        goal: &Goal,
        files: &BTreeMap<PathBuf, Vec<u8>>,
        n_events: usize,
    ) -> Result<(), OracleViolation> {
        let differs = |what: &str| {
            Err(OracleViolation::new(
                Oracle::Convergence,
                format!("{what} is behind the log"),
            ))
        };
        let project = project(&self.disk, &self.clock, "sim");
        let seq = u64::try_from(n_events).unwrap_or(u64::MAX);
        let snapshot = files.get(&project.layout.goal(&goal.id).snapshot());
        let snapshot: Option<GoalSnapshot> =
            snapshot.and_then(|bytes| serde_json::from_slice(bytes).ok());
        if snapshot != Some(GoalSnapshot::of(goal, seq)) {
            return differs("snapshot.json");
        }
        let inventory = project.inventory().ok();
        let entry = inventory
            .as_ref()
            .and_then(|inventory| inventory.find(&goal.id));
        if entry.map(|entry| entry.status) != Some(goal.status) {
            return differs("inventory.json");
        }
        let is_listed = project.goals().is_ok_and(|goals| {
            goals.iter().all(|listed| {
                matches!(&listed.state, ListingStatus::Known(entry) if entry.status == goal.status)
            }) && goals.len() == 1
        });
        if is_listed {
            Ok(())
        } else {
            differs("the listing")
        }
    }
}
