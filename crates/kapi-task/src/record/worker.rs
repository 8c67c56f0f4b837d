//! A worker: claims tasks, keeps their leases, and records what comes of them.
//!
//! One thread owns the queue; each task is performed in a thread of its own that speaks over a
//! bounded channel. What performing means is the caller's affair. Whoever runs a worker calls
//! [`KernelWorker::step`] whenever something may have happened.

pub mod unheld;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use kapi_core::actor::Actor;
use kapi_core::evidence::EvidenceFile;
use kapi_core::task_id::KernelTaskId;
use kapi_core::usage::Usage;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::monotonic_ms;

use crate::record::error::KernelError;
use crate::record::queue::{Queue, WorkerSlot};
use crate::rules::command::{Capacity, Hold, KernelCommand};
use crate::rules::decide::KernelReply;
use crate::rules::denied::KernelDenial;
use crate::rules::task::{
    AttemptFailure, AttemptReport, End, FailureKind, KernelTask, LoopPhase, PhaseStatus,
};

/// The pause after a worker had to give a task back: the first, which doubles, and the longest.
const RETRY_WAIT_MS: u64 = 5_000;
const RETRY_WAIT_MS_MAX: u64 = 10 * 60_000;
/// How many attempts may end so before the task has failed.
const RETRY_ATTEMPTS_MAX: u32 = 20;
/// Messages that may wait for the worker before a thread has to.
const MESSAGES_MAX: usize = 256;

/// What a worker obeys.
pub struct WorkerTerms<'env> {
    /// Tasks that it performs at once.
    pub slots: usize,
    /// How many tasks may run at once in the project.
    pub capacity: Capacity,
    /// The only task that it works on.
    pub only: Option<KernelTaskId>,
    /// How long its leases last without a word, in milliseconds.
    pub lease_ms: u64,
    /// Performs one task to its end, soon after its cancel is raised at the latest.
    pub perform: &'env (dyn Fn(&KernelTask, &LeaseHandle<'_>) -> AttemptReport + Sync),
    /// Wakes whoever calls [`KernelWorker::step`].
    pub ring: &'env (dyn Fn() + Sync),
}

/// What a performing thread can do about its task.
pub struct LeaseHandle<'env> {
    hold: Hold,
    cancel: Cancel,
    line: SyncSender<WorkerMessage>,
    ring: &'env (dyn Fn() + Sync),
}

/// The lease is over: somebody else has the task, and nothing that is done for it counts.
#[derive(Debug, thiserror::Error)]
#[error("the lease has expired")]
pub struct LeaseLost;

enum WorkerMessage {
    Used(KernelTaskId, Usage),
    PutBack(KernelTaskId, String),
    Asked(Box<WorkerRequest>),
    Ended(KernelTaskId, Box<AttemptReport>),
}

/// A request of a performing thread that waits for its answer.
struct WorkerRequest {
    hold: Hold,
    actor: Actor,
    command: KernelCommand,
    reply: SyncSender<Result<KernelReply, KernelError>>,
}

impl LeaseHandle<'_> {
    /// Returns what is raised when the task is not wanted any more.
    #[must_use]
    pub const fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the lease.
    #[must_use]
    pub const fn hold(&self) -> Hold {
        self.hold
    }

    /// Notes what was used since the last call.
    pub fn used(&self, usage: Usage) {
        self.say(WorkerMessage::Used(self.hold.task, usage));
    }

    /// Says why nothing can be done for the task here at present. An attempt that ends as cancelled
    /// after it is given back, and tried again after a while.
    pub fn put_back(&self, why: String) {
        self.say(WorkerMessage::PutBack(self.hold.task, why));
    }

    /// Records that a phase of a loop's run is over.
    ///
    /// # Errors
    /// When the lease is over, or the record could not be made: the attempt should end then.
    pub fn end_phase(
        &self,
        phase: LoopPhase,
        status: PhaseStatus,
        detail: Option<String>,
        report: Option<&AttemptReport>,
    ) -> Result<(), LeaseLost> {
        let command = KernelCommand::EndPhase {
            hold: self.hold,
            phase,
            status,
            detail,
            report: report.cloned().map(Box::new),
        };
        let answer = self.ask(Actor::Engine, command).ok_or(LeaseLost)?;
        answer.map(drop).map_err(|_| LeaseLost)
    }

    /// Records the files that the attempt wrote, before what came of it is said.
    ///
    /// # Errors
    /// When the lease is over, or the record could not be made: nothing of the attempt counts then.
    pub fn record_run(&self, run: &str, files: Vec<EvidenceFile>) -> Result<(), LeaseLost> {
        let command = KernelCommand::RecordRun {
            hold: self.hold,
            run: run.to_owned(),
            files,
        };
        let answer = self.ask(Actor::Engine, command).ok_or(LeaseLost)?;
        answer.map(drop).map_err(|_| LeaseLost)
    }

    /// Asks something of the kernel by the worker's queue; `None` when the worker is gone.
    pub fn ask(
        &self,
        actor: Actor,
        command: KernelCommand,
    ) -> Option<Result<KernelReply, KernelError>> {
        let (reply, answer) = sync_channel(1);
        self.say(WorkerMessage::Asked(Box::new(WorkerRequest {
            hold: self.hold,
            actor,
            command,
            reply,
        })));
        answer.recv().ok()
    }

    fn say(&self, message: WorkerMessage) {
        // Nobody listens any more when the worker has failed, and then it says so itself.
        drop(self.line.send(message));
        (self.ring)();
    }
}

/// One task under way.
struct Job {
    hold: Hold,
    cancel: Cancel,
    usage: Usage,
    beat_at_ms: u64,
    /// Why nothing can be done for it here.
    retry_cause: Option<String>,
}

/// The worker.
pub struct KernelWorker<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    queue: Queue<'env>,
    enlisted: WorkerSlot,
    terms: WorkerTerms<'env>,
    jobs: BTreeMap<KernelTaskId, Job>,
    line: SyncSender<WorkerMessage>,
    messages: Receiver<WorkerMessage>,
    expire_at_ms: u64,
    is_leaving: bool,
}

/// What a step came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepOutcome {
    /// Tasks that it claimed.
    pub claimed: Vec<KernelTaskId>,
    /// Tasks that it let go of, ended or not.
    pub released: Vec<KernelTaskId>,
    /// Milliseconds of [`monotonic_ms`] at which it wants to be called again at the latest.
    pub again_at_ms: u64,
}

impl<'scope, 'env> KernelWorker<'scope, 'env> {
    /// Takes how many tasks may run at once from now on; what runs already goes on.
    pub fn set_capacity(&mut self, capacity: Capacity) {
        self.terms.capacity = capacity;
    }

    /// Becomes a worker of the queue's project.
    ///
    /// # Errors
    /// When no place is free, the log is damaged, or the disk refuses.
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        mut queue: Queue<'env>,
        terms: WorkerTerms<'env>,
    ) -> Result<Self, KernelError> {
        let enlisted = queue.enlist()?;
        let (line, messages) = sync_channel(MESSAGES_MAX);
        Ok(Self {
            scope,
            queue,
            enlisted,
            terms,
            jobs: BTreeMap::new(),
            line,
            messages,
            expire_at_ms: 0,
            is_leaving: false,
        })
    }

    /// Returns the queue, for whoever leads or looks.
    pub const fn queue(&mut self) -> (&mut Queue<'env>, &WorkerSlot) {
        (&mut self.queue, &self.enlisted)
    }

    /// Returns how many tasks it performs.
    #[must_use]
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Claims nothing more, and calls off what is under way: it goes back to the queue.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        for job in self.jobs.values() {
            job.cancel.raise();
        }
    }

    /// Does everything that is due; `has_capacity` says whether the machine bears one more task.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses. What is under way is called off then.
    pub fn step(&mut self, has_capacity: &dyn Fn() -> bool) -> Result<StepOutcome, KernelError> {
        let stepped = self.try_step(has_capacity);
        if stepped.is_err() {
            self.leave();
        }
        stepped
    }

    fn try_step(&mut self, has_capacity: &dyn Fn() -> bool) -> Result<StepOutcome, KernelError> {
        let mut stepped = StepOutcome::default();
        self.queue.refresh()?;
        while let Ok(message) = self.messages.try_recv() {
            self.take(message, &mut stepped)?;
        }
        self.call_off();
        let now_ms = monotonic_ms();
        self.hasten();
        self.beat(now_ms)?;
        if now_ms >= self.expire_at_ms {
            self.queue.expire(&self.enlisted)?;
            self.expire_at_ms = now_ms + self.terms.lease_ms / 6;
        }
        while !self.is_leaving && self.jobs.len() < self.terms.slots && has_capacity() {
            match self.claim()? {
                Some(task) => stepped.claimed.push(task),
                None => break,
            }
        }
        let beats = self.jobs.values().map(|job| job.beat_at_ms);
        stepped.again_at_ms = beats.fold(self.expire_at_ms, u64::min);
        Ok(stepped)
    }

    fn take(
        &mut self,
        message: WorkerMessage,
        stepped: &mut StepOutcome,
    ) -> Result<(), KernelError> {
        match message {
            WorkerMessage::Used(task, usage) => {
                if let Some(job) = self.jobs.get_mut(&task) {
                    job.usage.add(&usage);
                }
            }
            WorkerMessage::PutBack(task, why) => {
                if let Some(job) = self.jobs.get_mut(&task) {
                    job.retry_cause = Some(why);
                }
            }
            WorkerMessage::Asked(asked) => {
                let answer = self.queue.submit(&asked.actor, &asked.command);
                if let Err(KernelError::Denied(KernelDenial::Fenced { .. })) = &answer
                    && let Some(job) = self.jobs.get(&asked.hold.task)
                {
                    job.cancel.raise();
                }
                // Whoever asked may have ended meanwhile.
                drop(asked.reply.send(answer));
            }
            WorkerMessage::Ended(task, report) => {
                stepped.released.push(task);
                self.ended(task, *report)?;
            }
        }
        Ok(())
    }

    fn ended(&mut self, task: KernelTaskId, mut report: AttemptReport) -> Result<(), KernelError> {
        let Some(job) = self.jobs.remove(&task) else {
            return Ok(());
        };
        let known = self.queue.kernel().task(task);
        let is_unwanted = known.is_some_and(|task| task.cancelling.is_some());
        let attempts = known.map_or(0, |task| task.attempts);
        if let Some(why) = job.retry_cause.as_ref().filter(|_| !is_unwanted)
            && report.end == End::Cancelled
            && attempts >= RETRY_ATTEMPTS_MAX
        {
            report.end = not_launched(why.clone());
        }
        let command = if report.end == End::Cancelled && !is_unwanted {
            let mut usage = job.usage;
            usage.add(&report.usage);
            let pause_ms = job.retry_cause.as_ref().map_or(0, |_| pause_ms(attempts));
            let reported = || format!("its worker was stopped{}", report.work.left());
            KernelCommand::GiveBack {
                hold: job.hold,
                why: job.retry_cause.unwrap_or_else(reported),
                usage,
                pause_ms,
            }
        } else {
            report.usage.add(&job.usage);
            KernelCommand::Finish {
                hold: job.hold,
                report: Box::new(report),
            }
        };
        match self.queue.submit(&Actor::Engine, &command) {
            // Somebody else has it: what was done here does not count.
            Ok(_) | Err(KernelError::Denied(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Raises the cancel of tasks that are unwanted or somebody else's.
    fn call_off(&self) {
        for (id, job) in &self.jobs {
            let task = self.queue.kernel().tasks.get(id);
            let is_ours = task.is_some_and(|task| {
                let fence = task.lease.as_ref().map(|lease| lease.fence);
                fence == Some(job.hold.fence) && task.cancelling.is_none()
            });
            if !is_ours {
                job.cancel.raise();
            }
        }
    }

    /// Has those beaten at once whose lease is about to run out: leases are of the time of day,
    /// which may jump, and does after a machine has slept.
    fn hasten(&mut self) {
        let soon_ms = i64::try_from(self.terms.lease_ms / 3).unwrap_or(i64::MAX);
        let wall_ms = self.queue.now_ms();
        for (id, job) in &mut self.jobs {
            let task = self.queue.kernel().tasks.get(id);
            let lease = task.and_then(|task| task.lease.as_ref());
            let is_ours = lease.filter(|lease| lease.fence == job.hold.fence);
            if is_ours.is_some_and(|lease| lease.expires_at_ms - soon_ms <= wall_ms)
                && job.beat_at_ms != u64::MAX
            {
                job.beat_at_ms = 0;
            }
        }
    }

    fn beat(&mut self, now_ms: u64) -> Result<(), KernelError> {
        for job in self.jobs.values_mut() {
            if job.beat_at_ms > now_ms {
                continue;
            }
            let beat = KernelCommand::Beat {
                hold: job.hold,
                ttl_ms: self.terms.lease_ms,
                usage: std::mem::take(&mut job.usage),
            };
            match self.queue.submit(&Actor::Engine, &beat) {
                Ok(_) => job.beat_at_ms = now_ms + self.terms.lease_ms / 3,
                Err(KernelError::Denied(_)) => {
                    job.cancel.raise();
                    job.beat_at_ms = u64::MAX;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn claim(&mut self) -> Result<Option<KernelTaskId>, KernelError> {
        let claim = KernelCommand::Claim {
            holder: self.enlisted.holder.clone(),
            ttl_ms: self.terms.lease_ms,
            capacity: self.terms.capacity.clone(),
            only: self.terms.only,
            reach: self.queue.reach(),
        };
        let KernelReply::Claimed(task, fence) = self.queue.submit(&Actor::Engine, &claim)? else {
            return Ok(None);
        };
        let hold = Hold { task, fence };
        match self
            .queue
            .submit(&Actor::Engine, &KernelCommand::Begin(hold))
        {
            Ok(_) => {}
            // Somebody cancelled it between the two: it ends here.
            Err(KernelError::Denied(_)) => {
                let finish = KernelCommand::GiveBack {
                    hold,
                    why: "it was cancelled before it started".to_owned(),
                    usage: Usage::default(),
                    pause_ms: 0,
                };
                return match self.queue.submit(&Actor::Engine, &finish) {
                    // Or its lease was over already, and it is somebody else's.
                    Ok(_) | Err(KernelError::Denied(_)) => Ok(Some(task)),
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        }
        let begun = self.queue.kernel().tasks.get(&task).cloned();
        if let Some(begun) = begun {
            self.perform(begun, hold);
        }
        Ok(Some(task))
    }

    fn perform(&mut self, task: KernelTask, hold: Hold) {
        let cancel = Cancel::new();
        self.jobs.insert(
            task.id,
            Job {
                hold,
                cancel: cancel.clone(),
                usage: Usage::default(),
                beat_at_ms: monotonic_ms() + self.terms.lease_ms / 3,
                retry_cause: None,
            },
        );
        let (perform, ring, line) = (self.terms.perform, self.terms.ring, self.line.clone());
        self.scope.spawn(move || {
            let handle = LeaseHandle {
                hold,
                cancel,
                line,
                ring,
            };
            let work = std::panic::AssertUnwindSafe(|| perform(&task, &handle));
            let report = std::panic::catch_unwind(work).unwrap_or_else(|_| panicked(&task));
            handle.say(WorkerMessage::Ended(task.id, Box::new(report)));
        });
    }
}

fn panicked(task: &KernelTask) -> AttemptReport {
    let message = format!("{} panicked; this is a bug in Kapi.", task.id);
    AttemptReport::of(not_launched(message))
}

const fn not_launched(message: String) -> End {
    End::Failed(AttemptFailure {
        kind: FailureKind::NotLaunched,
        message,
        hint: None,
        exit_code: None,
    })
}

/// Returns how long a task rests after so many attempts.
fn pause_ms(attempts: u32) -> u64 {
    let doublings = attempts.saturating_sub(1).min(16);
    (RETRY_WAIT_MS << doublings).min(RETRY_WAIT_MS_MAX)
}
