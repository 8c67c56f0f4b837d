//! One story of a kernel's queue: tasks are submitted, worked on, cancelled and lost, by processes
//! that die where they are told to.
//!
//! Remembers what was acknowledged, and checks after each death that it is still true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_goal::record::project::Project;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::{Mutation, SimDisk};
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::{Admission, Capacity, Hold, KernelCommand, Overflow};
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::event::KernelEvent;
use kapi_task::rules::evolve::evolve;
use kapi_task::rules::request::{KernelRequest, RequestKey, TaskOrigin};
use kapi_task::rules::state::KernelState;
use kapi_task::rules::task::{AttemptReport, End, KernelTask, LoopPhase, PhaseStatus};
use kapi_task::rules::task_state::KernelTaskState;
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};

use crate::crash::{CrashScenario, notify};
use crate::oracle::{Oracle, OracleViolation, failed, read_log};

const ROOT: &str = "/project";
const NOW: i64 = 1_795_348_800_000;
/// Tasks of one story.
const TASKS: u64 = 12;
/// Prompts so long that the fold is written anew in the middle of the story.
const PROMPT_BYTES: usize = 9_000;
/// One task in this many is cancelled before it is worked on.
const CANCELLED_ONE_IN: u64 = 4;
/// The task that is cancelled while a worker has it that is lost then.
const CANCELLED_AND_LOST: u64 = 6;

/// What was acknowledged.
#[derive(Debug, Default)]
struct Acknowledgement {
    /// The task of each number.
    submitted: BTreeMap<u64, KernelTaskId>,
    completed: BTreeSet<KernelTaskId>,
    cancelled: BTreeSet<KernelTaskId>,
    /// Tasks that nobody wants any more, ended or not.
    unwanted: BTreeSet<KernelTaskId>,
    /// Tasks whose agent has ended.
    executed: BTreeSet<KernelTaskId>,
    /// A task whose agent was run again after that.
    repeated: Option<KernelTaskId>,
}

/// A simulated disk with a kernel that some processes use, one after the other.
pub(super) struct KernelScenario {
    disk: SimDisk,
    clock: Arc<StepClock>,
    said: Acknowledgement,
}

/// Returns how many operations the story takes when nothing fails.
pub(super) fn n_ops() -> Result<u64, OracleViolation> {
    let mut scenario = KernelScenario::new(None);
    notify(&mut scenario, &[], None)?;
    Ok(scenario.disk.ops())
}

impl KernelScenario {
    pub(super) fn new(mistake: Option<&Mutation>) -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        if let Some(mistake) = mistake {
            disk.set_mutation(mistake.clone());
        }
        Self {
            disk,
            clock: Arc::new(StepClock::new(NOW)),
            said: Acknowledgement::default(),
        }
    }

    /// What one process does: submit what is missing, and work until nothing is left.
    fn do_all(&mut self) -> Result<(), KernelError> {
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        let project = project(&disk, &clock);
        let mut queue = Queue::open(&project)?;
        let own = queue.enlist()?;
        for number in 0..TASKS {
            let asked = submit(number);
            let task = match queue.submit(&person(), &asked)? {
                KernelReply::Submitted(task) | KernelReply::Duplicate(task) => task,
                KernelReply::Skipped(_)
                | KernelReply::Claimed(..)
                | KernelReply::Nothing
                | KernelReply::Done => {
                    continue;
                }
            };
            self.said.submitted.insert(number, task);
            if number.is_multiple_of(CANCELLED_ONE_IN) {
                self.cancel(&mut queue, task)?;
            } else if number == CANCELLED_AND_LOST {
                self.cancel_and_lose(&mut queue, &own.holder, task)?;
            } else if number % 2 == 1 {
                // Some wait meanwhile, so that the fold that is written holds them.
                self.work(&mut queue, &own.holder)?;
            }
        }
        self.work(&mut queue, &own.holder)
    }

    fn cancel(&mut self, queue: &mut Queue<'_>, task: KernelTaskId) -> Result<(), KernelError> {
        let why = "not wanted".to_owned();
        match queue.submit(&person(), &KernelCommand::Cancel { task, why }) {
            Ok(_) => drop(self.said.unwanted.insert(task)),
            // One that has ended cannot be cancelled; nothing else can refuse it.
            Err(KernelError::Denied(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        if queue.find(task)?.is_some_and(|task| task.state.is_ended()) {
            self.said.cancelled.insert(task);
        }
        Ok(())
    }

    /// Has a worker begin a task that is cancelled, and then lost.
    fn cancel_and_lose(
        &mut self,
        queue: &mut Queue<'_>,
        holder: &Holder,
        task: KernelTaskId,
    ) -> Result<(), KernelError> {
        let claimed = queue.submit(&Actor::Engine, &claim(holder, Some(task)))?;
        if let KernelReply::Claimed(task, fence) = claimed {
            let hold = Hold { task, fence };
            queue.submit(&Actor::Engine, &KernelCommand::Begin(hold))?;
        }
        self.cancel(queue, task)?;
        let gone = BTreeSet::from([holder.clone()]);
        queue.submit(&Actor::Engine, &KernelCommand::Expire { gone })?;
        Ok(())
    }

    /// Works until nothing is left.
    fn work(&mut self, queue: &mut Queue<'_>, holder: &Holder) -> Result<(), KernelError> {
        while work(queue, holder, &mut self.said)? {}
        Ok(())
    }

    /// Folds the log from its beginning, and returns which tasks have ended.
    fn fold(&self) -> Result<(KernelState, BTreeSet<KernelTaskId>), OracleViolation> {
        let log = project(&self.disk, &self.clock)
            .layout
            .kernel_dir()
            .join("events.jsonl");
        let files = self.disk.snapshot();
        let bytes = files.get(&log).map(Vec::as_slice).unwrap_or_default();
        let mut kernel = KernelState::default();
        let mut ended = BTreeSet::new();
        for logged in read_log::<KernelEvent>("kernel", bytes)? {
            evolve(&mut kernel, &logged.event, logged.at_ms);
            if let KernelEvent::Ended { task, .. } = &logged.event
                && !ended.insert(*task)
            {
                let detail = format!("{task} ended twice, at record {}", logged.seq);
                return Err(OracleViolation::new(Oracle::Once, detail));
            }
        }
        kernel.take_ended();
        Ok((kernel, ended))
    }
}

impl CrashScenario for KernelScenario {
    type Rest = ();

    fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn live(&mut self) -> Result<(), OracleViolation> {
        self.do_all().map_err(|error| failed(&error))
    }

    /// Checks that what was acknowledged is there, and that everything says the same.
    fn check(&self) -> Result<(), OracleViolation> {
        let (disk, clock) = (self.disk.clone(), Arc::clone(&self.clock));
        if let Some(task) = self.said.repeated {
            let detail = format!("the agent of {task} had ended and was run again");
            return Err(OracleViolation::new(Oracle::Once, detail));
        }
        let project = project(&disk, &clock);
        let queue = Queue::open(&project).map_err(|error| failed(&error))?;
        let find = |task: KernelTaskId| queue.find(task).map_err(|error| failed(&error));
        for task in self.said.submitted.values() {
            if find(*task)?.is_none() {
                return Err(lost(&format!("{task} was let in and is gone")));
            }
        }
        let ended = self.said.completed.iter().chain(&self.said.cancelled);
        for task in ended {
            if !find(*task)?.is_some_and(|task| task.state.is_ended()) {
                return Err(lost(&format!("{task} had ended and has not")));
            }
        }
        for task in &self.said.unwanted {
            let found = find(*task)?;
            let is_known = |task: &KernelTask| {
                task.cancelling.is_some() || task.state == KernelTaskState::Cancelled
            };
            if !found.as_ref().is_some_and(is_known) {
                return Err(lost(&format!(
                    "{task} was cancelled and may run: {found:?}"
                )));
            }
        }
        let (folded, ended) = self.fold()?;
        for task in &ended {
            if !find(*task)?.is_some_and(|found| found.state.is_ended()) {
                let detail = format!("{task} has ended, and neither fold nor history has it");
                return Err(OracleViolation::new(Oracle::Convergence, detail));
            }
        }
        let mut live = queue.kernel().clone();
        live.take_ended();
        if live != folded {
            let detail = "the fold on disk is not what the log comes to";
            return Err(OracleViolation::new(Oracle::Convergence, detail));
        }
        Ok(())
    }

    /// Checks that nothing is left to do and nothing was done twice over.
    fn rest(&self) -> Result<(), OracleViolation> {
        let (kernel, ended) = self.fold()?;
        let all: BTreeSet<KernelTaskId> = self.said.submitted.values().copied().collect();
        let is_done = kernel.tasks.is_empty() && all.is_subset(&ended);
        let kept = all.len() == usize::try_from(TASKS).unwrap_or(0);
        if is_done && kept {
            return Ok(());
        }
        let detail = format!(
            "{} tasks of {TASKS}, {} have ended, {} have not",
            all.len(),
            ended.len(),
            kernel.tasks.len()
        );
        Err(OracleViolation::new(Oracle::Convergence, detail))
    }
}

fn claim(holder: &Holder, only: Option<KernelTaskId>) -> KernelCommand {
    KernelCommand::Claim {
        holder: holder.clone(),
        ttl_ms: 60_000,
        capacity: Capacity {
            project: 4,
            per_agent: BTreeMap::new(),
            usd_micros_per_day: None,
        },
        only,
        reach: None,
    }
}

/// Claims, begins, holds and finishes one task, from the phase it is in; tells whether there is one.
fn work(
    queue: &mut Queue<'_>,
    holder: &Holder,
    said: &mut Acknowledgement,
) -> Result<bool, KernelError> {
    let claimed = queue.submit(&Actor::Engine, &claim(holder, None))?;
    let KernelReply::Claimed(task, fence) = claimed else {
        return Ok(false);
    };
    let hold = Hold { task, fence };
    queue.submit(&Actor::Engine, &KernelCommand::Begin(hold))?;
    let known = queue.kernel().task(task);
    if known.is_some_and(KernelTask::is_only_settled) {
        let report = Box::new(AttemptReport::of(End::Cancelled));
        queue.submit(&Actor::Engine, &KernelCommand::Finish { hold, report })?;
        said.cancelled.insert(task);
        return Ok(true);
    }
    while let Some(phase) = queue.kernel().task(task).and_then(KernelTask::phase) {
        if phase == LoopPhase::Execute && said.executed.contains(&task) {
            said.repeated = Some(task);
        }
        let report = Some(Box::new(AttemptReport::of(End::Completed)));
        let ended = KernelCommand::EndPhase {
            hold,
            phase,
            status: PhaseStatus::Ok,
            detail: None,
            report,
        };
        queue.submit(&Actor::Engine, &ended)?;
        said.executed.insert(task);
    }
    let report = Box::new(AttemptReport::of(End::Completed));
    queue.submit(&Actor::Engine, &KernelCommand::Finish { hold, report })?;
    said.completed.insert(task);
    Ok(true)
}

fn submit(number: u64) -> KernelCommand {
    let request = KernelRequest {
        description: format!("Number {number}"),
        prompt: "x".repeat(PROMPT_BYTES),
        agent: "sisyphus".to_owned(),
        backend: None,
        model: None,
        timeout_ms: 0,
        budget: TaskBudget::default(),
        domain: None,
        priority: Priority::Normal,
        key: Some(RequestKey {
            text: format!("number {number}"),
            ttl_ms: 86_400_000,
        }),
        retry: Retry::default(),
        verify: vec!["true".to_owned(); usize::from(number.is_multiple_of(2))],
        protect: Vec::new(),
        checks: CheckPolicy::default(),
        keep_commits: false,
        base: None,
        origin: TaskOrigin::Person {
            user: "user".to_owned(),
        },
        depth: 0,
        retry_of: None,
        loop_run: None,
        goal: None,
    };
    KernelCommand::Submit {
        request: Box::new(request),
        admission: Admission {
            tasks_max: 100,
            overflow: Overflow::Queue,
            running_max: 4,
        },
    }
}

fn project<'a>(disk: &'a SimDisk, clock: &'a StepClock) -> Project<'a> {
    Project {
        disk,
        clock,
        layout: ProjectLayout::new(PathBuf::from(ROOT)),
        owner: "sim".to_owned(),
        home: None,
    }
}

fn person() -> Actor {
    let user = "user".to_owned();
    Actor::Human { user }
}

fn lost(detail: &str) -> OracleViolation {
    OracleViolation::new(Oracle::Durability, detail)
}
