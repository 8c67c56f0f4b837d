//! A worker in the foreground: it works on one task and no other, and looks on while somebody else
//! has it.
//!
//! Whoever dies or lets go of the task, this process takes it over. What performing means is the
//! caller's affair, and so is what is shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kapi_core::task_id::KernelTaskId;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::clock::monotonic_ms;
use kapi_task::perform::capacity::MachineCapacity;
use kapi_task::record::error::KernelError;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, StepOutcome, WorkerTerms};
use kapi_task::rules::task::{AttemptReport, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;

use crate::driving::attendance::{alarm, alarm_failed};
use crate::error::Error;
use crate::kernel::listening::listen;
use crate::kernel::{ProjectKernel, failed};

/// The longest until the task is looked at again, in milliseconds, should the system not tell of a
/// change.
const LOOK_MS: u64 = 5_000;

/// How often it is looked whether the worker that has the task is still there, in milliseconds.
const OTHERS_MS: u64 = 1_000;

/// What a task waits for that waits for a worker.
const WORKER: &str = "waiting for a worker";

/// Performs one task to its end.
pub(crate) type Perform<'a> = dyn Fn(&KernelTask, &LeaseHandle<'_>) -> AttemptReport + Sync + 'a;

/// What a worker in the foreground stands on.
#[derive(Clone, Copy)]
pub(crate) struct Foreground<'a> {
    /// The kernel.
    pub(crate) kernel: &'a ProjectKernel<'a>,
    /// Tells whether it is to stop: the task goes back to the queue then.
    pub(crate) is_over: &'a dyn Fn() -> bool,
    /// Performs the task.
    pub(crate) perform: &'a Perform<'a>,
    /// Tells whether the task may be begun, besides that the machine has room for it.
    pub(crate) has_capacity: &'a dyn Fn() -> bool,
}

/// The task as it stands.
#[derive(Debug)]
pub(crate) struct TaskSnapshot<'a> {
    /// The task.
    pub(crate) task: &'a KernelTask,
    /// What it waits for.
    pub(crate) waits: Option<String>,
}

/// How the task stood when nobody had to look on any more.
#[derive(Debug)]
pub(crate) enum FinalTaskState {
    /// It has ended.
    Ended(Box<KernelTask>),
    /// The person left; the task waits in the queue, or somebody else has it.
    Open(Box<KernelTask>),
}

/// Works on a task until it has ended, whoever does it, or until it is interrupted.
///
/// `show` is called with the task whenever it may stand elsewhere than before.
pub(crate) fn attend(
    foreground: &Foreground<'_>,
    id: KernelTaskId,
    show: &mut dyn FnMut(&TaskSnapshot<'_>),
) -> Result<FinalTaskState, Error> {
    let alarm = alarm()?;
    let (waker, has_woken) = (alarm.waker(), AtomicBool::new(false));
    let ring = || {
        has_woken.store(true, Ordering::SeqCst);
        waker.ring();
    };
    let queue = foreground.kernel.queue()?;
    let terms = WorkerTerms {
        slots: 1,
        capacity: foreground.kernel.terms.capacity(),
        only: Some(id),
        lease_ms: foreground.kernel.store.lease_ms(),
        perform: foreground.perform,
        ring: &ring,
    };
    let capacity = foreground.kernel.capacity();
    thread::scope(|scope| {
        let _listening = listen(scope, &queue, ring)?;
        let worker = KernelWorker::new(scope, queue, terms).map_err(|error| failed(&error))?;
        let mut verifier = TaskVerifier {
            foreground,
            id,
            worker,
            alarm,
            has_woken: &has_woken,
            capacity: &capacity,
            is_leaving: false,
        };
        let left = verifier.work(show);
        if left.is_err() {
            // The thread that performs is joined before the error is told.
            verifier.worker.leave();
        }
        left
    })
}

/// Ends a task that nobody wants any more and nobody has: what its attempts used and left is settled here.
/// Returns the task as it stands then.
pub(crate) fn settle(
    kernel: &ProjectKernel<'_>,
    task: KernelTask,
    is_over: &dyn Fn() -> bool,
) -> Result<Box<KernelTask>, Error> {
    if task.state != KernelTaskState::Pending || !task.is_only_settled() {
        return Ok(Box::new(task));
    }
    let performer = kernel.performer(&|_, _| {})?;
    let foreground = Foreground {
        kernel,
        is_over,
        perform: &|task, handle| performer.perform(task, handle),
        has_capacity: &|| true,
    };
    match attend(&foreground, task.id, &mut |_: &TaskSnapshot<'_>| {})? {
        FinalTaskState::Ended(task) | FinalTaskState::Open(task) => Ok(task),
    }
}

struct TaskVerifier<'scope, 'env, 'a> {
    foreground: &'a Foreground<'a>,
    id: KernelTaskId,
    worker: KernelWorker<'scope, 'env>,
    alarm: Alarm,
    has_woken: &'a AtomicBool,
    capacity: &'a MachineCapacity<'a>,
    is_leaving: bool,
}

impl TaskVerifier<'_, '_, '_> {
    fn work(&mut self, show: &mut dyn FnMut(&TaskSnapshot<'_>)) -> Result<FinalTaskState, Error> {
        loop {
            if (self.foreground.is_over)() && !self.is_leaving {
                self.is_leaving = true;
                self.worker.leave();
            }
            // What is rung from here on is heard after this step.
            self.has_woken.store(false, Ordering::SeqCst);
            let step = self.step();
            let stepped = step.map_err(|error| failed(&error))?;
            let task = self.task()?;
            let waits = self.waits(&task);
            show(&TaskSnapshot { task: &task, waits });
            if task.state.is_ended() {
                return Ok(FinalTaskState::Ended(Box::new(task)));
            }
            if self.is_leaving && self.worker.n_jobs() == 0 {
                return Ok(FinalTaskState::Open(Box::new(task)));
            }
            let again_ms = stepped.again_at_ms.min(self.again_at_ms(&task));
            self.sleep(again_ms)?;
            if self.is_elsewhere(&task) {
                let (queue, own) = self.worker.queue();
                queue.expire(own).map_err(|error| failed(&error))?;
            }
        }
    }

    /// One step of the worker, which claims the task only where the machine bears it.
    fn step(&mut self) -> Result<StepOutcome, KernelError> {
        let (capacity, wanted) = (self.capacity, self.foreground.has_capacity);
        self.worker.step(&|| wanted() && capacity.has_capacity(0))
    }

    fn task(&mut self) -> Result<KernelTask, Error> {
        let (queue, _) = self.worker.queue();
        let found = queue.find(self.id).map_err(|error| failed(&error))?;
        found.ok_or_else(|| super::no_task(self.id))
    }

    fn waits(&mut self, task: &KernelTask) -> Option<String> {
        if task.state != KernelTaskState::Pending {
            return None;
        }
        let (queue, _) = self.worker.queue();
        let waits = self.foreground.kernel.waits_of(queue, task);
        let by_machine = waits.as_deref() == Some(WORKER);
        let shortage = self.capacity.shortage(0).filter(|_| by_machine);
        shortage.map(|short| short.to_string()).or(waits)
    }

    /// Tells whether somebody else has the task.
    fn is_elsewhere(&self, task: &KernelTask) -> bool {
        task.lease.is_some() && self.worker.n_jobs() == 0
    }

    /// Returns when the task is to be looked at again though nobody tells of a change.
    fn again_at_ms(&mut self, task: &KernelTask) -> u64 {
        let now_ms = monotonic_ms();
        if self.is_elsewhere(task) {
            return now_ms + OTHERS_MS;
        }
        if task.state != KernelTaskState::Pending {
            return now_ms + LOOK_MS;
        }
        let clock_ms = self.worker.queue().0.now_ms();
        let pause_ms = u64::try_from(task.not_before_ms.saturating_sub(clock_ms)).unwrap_or(0);
        match pause_ms {
            // Nobody tells when the machine has room again.
            0 => now_ms + OTHERS_MS,
            pause_ms => now_ms + pause_ms.min(LOOK_MS),
        }
    }

    /// Sleeps until something has been recorded, the thread that performs has something to say, or
    /// it is time. That a file was locked and given back is no reason to wake: we do so ourselves.
    fn sleep(&mut self, until_ms: u64) -> Result<(), Error> {
        let was_leaving = self.is_leaving;
        let stops = self.foreground.is_over;
        let is_over = || stops() && !was_leaving;
        let mut watched = WakeSources::default();
        let dir = self.foreground.kernel.project.layout.kernel_dir();
        watched.directories.insert(dir);
        let watch = self.alarm.watch(&watched);
        watch.map_err(|error| alarm_failed(&error))?;
        while !is_over() && !self.has_woken.load(Ordering::SeqCst) && !self.has_news()? {
            let pause_ms = until_ms.saturating_sub(monotonic_ms());
            if pause_ms == 0 {
                break;
            }
            let slept = self.alarm.sleep(Duration::from_millis(pause_ms), &is_over);
            slept.map_err(|error| alarm_failed(&error))?;
        }
        Ok(())
    }

    fn has_news(&mut self) -> Result<bool, Error> {
        let (queue, _) = self.worker.queue();
        let noted = queue
            .refresh()
            .map_err(|error: KernelError| failed(&error))?;
        Ok(!noted.is_empty())
    }
}
