//! A project's kernel, opened: lock, load, decide, append, fold.
//!
//! Owns the only copy of the fold there is in a process. The fold is written anew only after the
//! log has grown by as much again, so that neither a long queue nor a long history makes a request
//! slower.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_core::task_id::{Holder, KernelTaskId};
use kapi_goal::record::project::Project;
use kapi_machine::fold::Fold;
use kapi_machine::logged::{EventRecord, batch, read, recorded};
use kapi_machine::machine::Machine;

use super::store::KernelStore;
use crate::record::bundles::WorkBundles;
use crate::record::error::KernelError;
use crate::record::history::KernelHistory;
use crate::record::log::{AppendLock, AppendOutcome, Log, LogWaker, WatcherId};
use crate::rules::command::KernelCommand;
use crate::rules::decide::{KernelReply, decide};
use crate::rules::event::KernelEvent;
use crate::rules::evolve::evolve;
use crate::rules::state::KernelState;
use crate::rules::task::KernelTask;

/// Bytes by which the log grows at least before the fold is written anew.
const FOLD_BYTES_MIN: u64 = 64 * 1024;
/// Ended tasks that a process remembers before it looks whether the history has them.
const ENDED_MAX: usize = 1_024;

/// How often a request is decided anew because somebody else's came first.
const TRIES_MAX: u32 = 500;

/// A project's kernel and its fold.
pub struct Queue<'a> {
    project: &'a Project<'a>,
    log: Log<'a>,
    fold: Fold<TaskMachine>,
    /// Where in the log the tasks ended that the history may not have yet.
    ended: BTreeMap<KernelTaskId, u64>,
    /// How many of them there may be before this process looks again whether the history has them.
    ended_max: usize,
}

/// What a kernel is folded of.
#[derive(Debug)]
pub struct TaskMachine;

impl Machine for TaskMachine {
    type State = KernelState;
    type Event = KernelEvent;
    const EVENT: &'static str = "an event";
    const STATE: &'static str = "the kernel's state";

    fn evolve(kernel: &mut KernelState, logged: &EventRecord<KernelEvent>) {
        evolve(kernel, &logged.event, logged.at_ms);
    }
}

impl<'a> Queue<'a> {
    /// Loads a project's kernel, which may be empty. Changes nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn open(project: &'a Project<'a>) -> Result<Self, KernelError> {
        Self::open_in(project, &KernelStore::Files)
    }

    /// Loads a project's kernel from where it is kept.
    ///
    /// # Errors
    /// When the log is damaged, or the disk or the cluster refuses.
    pub fn open_in(project: &'a Project<'a>, store: &KernelStore) -> Result<Self, KernelError> {
        let (mut log, loaded) = Log::open(project, store)?;
        let file = log.name();
        let (fold, logged) = Fold::load(&file, loaded, || log.load_all())?;
        let mut queue = Self {
            project,
            log,
            fold,
            ended: BTreeMap::new(),
            ended_max: ENDED_MAX,
        };
        queue.note_ended(&logged);
        queue.bound_ended()?;
        Ok(queue)
    }

    /// Returns the fold.
    #[must_use]
    pub const fn kernel(&self) -> &KernelState {
        self.fold.state()
    }

    /// Returns the project.
    #[must_use]
    pub const fn project(&self) -> &'a Project<'a> {
        self.project
    }

    /// Returns the tasks that have ended.
    #[must_use]
    pub fn history(&self) -> KernelHistory<'a> {
        self.log.history()
    }

    /// Returns a task, whether it has ended or not.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn find(&self, id: KernelTaskId) -> Result<Option<KernelTask>, KernelError> {
        match self.kernel().task(id) {
            Some(task) => Ok(Some(task.clone())),
            None => self.history().find(id),
        }
    }

    /// Reads what others have recorded meanwhile, and returns it.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn refresh(&mut self) -> Result<Vec<EventRecord<KernelEvent>>, KernelError> {
        let file = self.log.name();
        let logged = self.log.refresh(&|records| Ok(read(&file, records)?))?;
        self.apply(&logged);
        self.bound_ended()?;
        Ok(logged)
    }

    /// Returns the time that leases are measured by, in milliseconds since the epoch: the same for
    /// everybody who shares the queue.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.log.shared_ms(self.project.clock.now_ms())
    }

    /// Returns how long the leader's lease lasts without a word, in milliseconds.
    #[must_use]
    pub const fn lead_ms(&self) -> u64 {
        self.log.lead_ms()
    }

    /// Returns what tells the project from others, the same for everybody who shares the queue.
    #[must_use]
    pub fn location(&self) -> String {
        let root = || self.project.layout.root().display().to_string();
        self.log.shared_name().map_or_else(root, str::to_owned)
    }

    /// Returns this machine and directory, by which a task is told that can only be worked on here;
    /// `None` where whoever reads the queue is in the project's directory.
    #[must_use]
    pub fn reach(&self) -> Option<String> {
        let host = self.log.machine()?;
        Some(format!("{host}:{}", self.project.layout.root().display()))
    }

    /// Returns what travels between the machines; `None` where there is one.
    #[must_use]
    pub fn bundles(&self) -> Option<WorkBundles> {
        self.log.bundles()
    }

    /// Returns those who hold a lease that has not run out, where leases are all that is known of
    /// who lives; `None` where the system tells.
    #[must_use]
    pub fn holders(&self) -> Option<BTreeSet<Holder>> {
        self.log.shared_name()?;
        let now_ms = self.now_ms();
        let leases = self.kernel().tasks.values();
        let leases = leases.filter_map(|task| task.lease.as_ref());
        let leases = leases.map(|lease| (&lease.holder, lease.expires_at_ms));
        let leader = self.kernel().leader.iter();
        let held = leases.chain(leader.map(|leader| (&leader.holder, leader.expires_at_ms)));
        let held = held.filter(|(_, until_ms)| *until_ms > now_ms);
        Some(held.map(|(holder, _)| holder.clone()).collect())
    }

    /// Returns what waits for others' records; `None` where looking costs nothing.
    ///
    /// # Errors
    /// When what proves who asks cannot be read.
    pub fn waker(&self) -> Result<Option<LogWaker>, KernelError> {
        self.log.waker()
    }

    /// Decides a command on the latest state and makes its events durable.
    ///
    /// # Errors
    /// When a rule refuses, somebody else is at it for too long, or the disk refuses.
    pub fn submit(
        &mut self,
        actor: &Actor,
        command: &KernelCommand,
    ) -> Result<KernelReply, KernelError> {
        self.transact(actor, |_| Ok(command.clone()))
    }

    /// Takes a place as a worker, and takes their tasks from workers that are gone.
    ///
    /// # Errors
    /// When no place is free, the log is damaged, or the disk refuses.
    pub fn enlist(&mut self) -> Result<WorkerSlot, KernelError> {
        let mut taken = None;
        self.transact(&Actor::Engine, |queue| {
            if taken.is_none() {
                taken = Some(queue.log.sit(&queue.project.owner)?);
            }
            let mut gone = BTreeSet::new();
            if let Some((watcher_id, holder)) = &taken {
                // Whoever had this place before is gone, and so are all whose place nobody holds.
                gone = queue.gone(watcher_id)?;
                gone.insert(holder.clone());
            }
            Ok(KernelCommand::Expire { gone })
        })?;
        match taken {
            Some((watcher_id, holder)) => Ok(WorkerSlot { watcher_id, holder }),
            None => Err(self.log.contended(0)),
        }
    }

    /// Takes their tasks from workers that are gone or whose lease has run out.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn expire(&mut self, own: &WorkerSlot) -> Result<(), KernelError> {
        self.transact(&Actor::Engine, |queue| {
            let gone = queue.gone(&own.watcher_id)?;
            Ok(KernelCommand::Expire { gone })
        })?;
        Ok(())
    }

    /// Leads, if nobody else does or who did is gone; tells whether.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn lead(&mut self, own: &WorkerSlot, ttl_ms: u64) -> Result<bool, KernelError> {
        let led = self.transact(&Actor::Engine, |queue| {
            Ok(KernelCommand::Lead {
                holder: own.holder.clone(),
                ttl_ms,
                gone: queue.gone(&own.watcher_id)?,
            })
        });
        match led {
            Ok(_) => Ok(true),
            Err(KernelError::Denied(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a command of the latest state, decides it and makes its events durable; all of it
    /// again when somebody else's came first.
    fn transact(
        &mut self,
        actor: &Actor,
        mut command: impl FnMut(&Self) -> Result<KernelCommand, KernelError>,
    ) -> Result<KernelReply, KernelError> {
        for n_tries in 0..TRIES_MAX {
            let held = self.hold()?;
            let command = command(self)?;
            if let Some(answer) = self.submit_held(&held, actor, &command)? {
                return Ok(answer);
            }
            // Each conflict is somebody else's success; those who wait longer meet fewer.
            let pause_ms = u64::from(n_tries.min(20)) + u64::from(std::process::id() % 7);
            thread::sleep(Duration::from_millis(pause_ms));
        }
        Err(self.log.contended(TRIES_MAX))
    }

    /// Returns `None` when somebody else's record came first.
    fn submit_held(
        &mut self,
        held: &AppendLock,
        actor: &Actor,
        command: &KernelCommand,
    ) -> Result<Option<KernelReply>, KernelError> {
        let at_ms = self.log.shared_ms(self.project.clock.now_ms());
        let decided = decide(self.kernel(), actor, command, at_ms)?;
        let is_recorded = self.record(held, actor, &decided.events, at_ms)?;
        Ok(is_recorded.then_some(decided.answer))
    }

    /// Takes the right to append, reads what others recorded, and makes it durable.
    fn hold(&mut self) -> Result<AppendLock, KernelError> {
        let held = self.log.hold(&self.project.owner)?;
        self.refresh()?;
        self.log.settle(&held)?;
        Ok(held)
    }

    /// Tells whether the events were recorded, or somebody else's came first.
    fn record(
        &mut self,
        held: &AppendLock,
        actor: &Actor,
        events: &[KernelEvent],
        at_ms: i64,
    ) -> Result<bool, KernelError> {
        if events.is_empty() {
            return Ok(true);
        }
        let batch = batch(TaskMachine::EVENT, actor, at_ms, events)?;
        let before = self.log.length();
        let AppendOutcome::Accepted(records) = self.log.append(held, &batch)? else {
            return Ok(false);
        };
        self.apply(&recorded(records, events));
        match self.save_if_due(held, before) {
            Err(error) if !self.log.is_put_off(&error) => {
                Err(KernelError::NotDerived(Box::new(error)))
            }
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// Writes the fold anew when the log has crossed a multiple of the fold's own size: whoever
    /// crosses it does, so it is done once however many processes write.
    fn save_if_due(&mut self, held: &AppendLock, before: u64) -> Result<(), KernelError> {
        let fold_bytes = self.log.fold_bytes()?;
        let step = fold_bytes.max(FOLD_BYTES_MIN).next_power_of_two();
        let after = self.log.length();
        if self.fold.is_saved() && before / step == after / step {
            return Ok(());
        }
        self.save(held)
    }

    fn save(&mut self, held: &AppendLock) -> Result<(), KernelError> {
        self.forget_archived()?;
        let ended: Vec<KernelTask> = self.kernel().ended.values().cloned().collect();
        self.history().add(&ended)?;
        self.fold.state_mut().take_ended();
        self.ended.clear();
        self.log.save(held, self.fold.encode()?)?;
        self.fold.saved();
        Ok(())
    }

    /// Forgets the ended tasks that another process has handed to the history: whoever writes the
    /// fold writes them first.
    fn forget_archived(&mut self) -> Result<(), KernelError> {
        let saved_seq = self.log.saved_seq()?;
        self.ended.retain(|_, seq| *seq > saved_seq);
        let kept = &self.ended;
        let kernel = self.fold.state_mut();
        kernel.ended.retain(|id, _| kept.contains_key(id));
        Ok(())
    }

    fn apply(&mut self, logged: &[EventRecord<KernelEvent>]) {
        for one in logged {
            self.fold.push(one);
        }
        self.note_ended(logged);
    }

    fn note_ended(&mut self, logged: &[EventRecord<KernelEvent>]) {
        for one in logged {
            if let KernelEvent::Ended { task, .. } = &one.event {
                self.ended.insert(*task, one.seq);
            }
        }
    }

    /// Looks whether the history has the tasks that have ended, once they are many.
    fn bound_ended(&mut self) -> Result<(), KernelError> {
        if self.ended.len() > self.ended_max {
            self.forget_archived()?;
            // Looking reads the whole fold: with a long queue it is written, and so looked at, rarely.
            self.ended_max = ENDED_MAX.max(self.ended.len().saturating_mul(2));
        }
        Ok(())
    }

    /// Returns the holders of leases whose process is gone.
    fn gone(&self, own: &WatcherId) -> Result<BTreeSet<Holder>, KernelError> {
        let leases = self
            .kernel()
            .tasks
            .values()
            .filter_map(|task| task.lease.as_ref());
        let leaders = self.kernel().leader.iter().map(|leader| &leader.holder);
        let holders = leases.map(|lease| &lease.holder).chain(leaders);
        self.log.gone(own, &self.project.owner, holders)
    }
}

/// A worker's place among the living.
#[derive(Debug)]
pub struct WorkerSlot {
    watcher_id: WatcherId,
    /// The name by which it holds leases.
    pub holder: Holder,
}

impl WorkerSlot {
    /// Returns the number of its place on this machine; `None` where places are not of a machine.
    #[must_use]
    pub const fn number(&self) -> Option<u32> {
        match &self.watcher_id {
            WatcherId::Place(location) => Some(location.number),
            WatcherId::Afar => None,
        }
    }
}

/// Returns the directory of workers' places.
#[must_use]
pub fn workers_dir(project: &Project<'_>) -> PathBuf {
    project.layout.kernel_dir().join("workers")
}
