//! The tasks and loops of a supervisor: it works on what waits, and triggers loops while it leads.
//!
//! Woken like the rest of the supervisor, it does nothing unless something was recorded, a thread
//! has something to say, a file that says what to do was changed, or an instant has come.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_run::host_grants::HostGrants;
use kapi_settings::fault::SettingsFault;
use kapi_sys::alarm::WakeSources;
use kapi_sys::clock::{Clock as _, monotonic_ms};
use kapi_task::perform::events::EventWatcher;
use kapi_task::record::leader::{LeadOutcome, Leader, LeaderContext, OccurrenceOutcome};
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::rules::admission;
use kapi_task::rules::admission::Waits;
use kapi_task::rules::task::{AttemptReport, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;

use crate::commands::up::board::Board;
use crate::commands::up::calls::InboundCalls;
use crate::commands::up::missed_times::MissedTimes;
use crate::commands::up::tally::TaskTally;
use crate::commands::up::threads::Shop;
use crate::commands::up::watched_files::FileNotices;
use crate::delivering::others::{self, DeliverySite};
use crate::error::Error;
use crate::kernel::listening::{Listening, listen};
use crate::kernel::{ProjectKernel, failed};
use crate::notification;

/// How often a task that found no room on the machine is tried again, in milliseconds.
const CAPACITY_MS: u64 = 2_000;

/// How often it is looked whether what tasks left is within its limits, in milliseconds: hourly.
const RETENTION_MS: u64 = 60 * 60 * 1_000;
/// Tasks after whose end that is looked at, too.
const RETENTION_TASKS: usize = 100;

/// What performs one task.
pub(super) type Perform<'env> =
    &'env (dyn Fn(&KernelTask, &LeaseHandle<'_>) -> AttemptReport + Sync);

/// What the tasks of a supervisor stand on.
pub(super) struct Floor<'env> {
    pub(super) shop: &'env Shop<'env>,
    /// What was set for the kernel when it began.
    pub(super) kernel: ProjectKernel<'env>,
    /// Performs a task.
    pub(super) perform: Perform<'env>,
    /// Tells whether the machine bears one more task beside so many of this process.
    pub(super) has_capacity: &'env (dyn Fn(usize) -> bool + Sync),
    /// Whether a thread that performs has something to say.
    pub(super) has_woken: &'env AtomicBool,
    /// Wakes the supervisor, and says so.
    pub(super) ring: &'env (dyn Fn() + Sync),
    /// What becomes of scheduled times that nobody was there for.
    pub(super) missed: MissedTimes,
    /// Tasks at once.
    pub(super) slots: usize,
}

/// The tasks and loops of one supervisor.
pub(super) struct Tasks<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shop: &'env Shop<'env>,
    kernel: ProjectKernel<'env>,
    has_capacity: &'env (dyn Fn(usize) -> bool + Sync),
    has_woken: &'env AtomicBool,
    missed: MissedTimes,
    slots: usize,
    worker: KernelWorker<'scope, 'env>,
    leader: Leader,
    lookout: EventWatcher,
    grants: HostGrants,
    said: FileNotices,
    calls: Option<InboundCalls<'scope, 'env>>,
    /// Rings when other machines record something.
    listening: Option<Listening>,
    /// When each part wants to be called again, in milliseconds of the monotonic clock.
    work_at_ms: u64,
    lead_at_ms: u64,
    capacity_at_ms: u64,
    retention_at_ms: u64,
    /// Tasks that have ended since that was looked at.
    n_ended: usize,
    /// Where each task stood when it was told of last.
    reported: BTreeMap<KernelTaskId, KernelTaskState>,
    tally: TaskTally,
    is_leaving: bool,
    /// Whether it has looked at every loop since it began.
    has_led: bool,
}

impl<'scope, 'env> Tasks<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        floor: Floor<'env>,
    ) -> Result<Self, Error> {
        let kernel = floor.kernel;
        let root = kernel.project.layout.root();
        let terms = WorkerTerms {
            slots: floor.slots,
            capacity: kernel.terms.capacity(),
            only: None,
            lease_ms: kernel.store.lease_ms(),
            perform: floor.perform,
            ring: floor.ring,
        };
        let queue = kernel.queue()?;
        let listening = listen(scope, &queue, floor.ring)?;
        let worker = KernelWorker::new(scope, queue, terms).map_err(|error| failed(&error))?;
        Ok(Self {
            scope,
            shop: floor.shop,
            lookout: EventWatcher::new(root),
            grants: kernel.context.grants(kernel.config),
            said: FileNotices::new(&kernel),
            calls: InboundCalls::wanted(scope, &kernel, floor.ring)?,
            listening: Some(listening),
            kernel,
            has_capacity: floor.has_capacity,
            has_woken: floor.has_woken,
            missed: floor.missed,
            slots: floor.slots,
            worker,
            leader: Leader::default(),
            work_at_ms: 0,
            lead_at_ms: 0,
            capacity_at_ms: 0,
            retention_at_ms: 0,
            n_ended: 0,
            reported: BTreeMap::new(),
            tally: TaskTally::default(),
            is_leaving: false,
            has_led: false,
        })
    }

    /// Adds what it is woken by.
    pub(super) fn watch(&self, watched: &mut WakeSources) {
        let dirs = self.said.directories().iter().cloned();
        let seen = self.lookout.directories().iter().cloned();
        let kernel: PathBuf = self.kernel.project.layout.kernel_dir();
        watched.directories.extend(dirs.chain(seen).chain([kernel]));
    }

    /// Does what is due, and returns when it wants to be called again.
    pub(super) fn step(&mut self, board: &mut Board, is_leaving: bool) -> Result<u64, Error> {
        let now_ms = monotonic_ms();
        if is_leaving && !self.is_leaving {
            self.is_leaving = true;
            self.worker.leave();
        }
        // What is rung from here on is heard in the next step.
        let has_woken = self.has_woken.swap(false, Ordering::SeqCst);
        let (queue, _) = self.worker.queue();
        let noted = queue.refresh().map_err(|error| failed(&error))?;
        let has_news = has_woken || !noted.is_empty();
        self.reload(board);
        self.answer_calls(board, now_ms)?;
        if !self.is_leaving {
            self.lead(board, has_news, now_ms)?;
        }
        self.work(has_news, now_ms)?;
        self.announce(board)?;
        self.keep_within_limits(now_ms);
        let pauses = self.not_before_ms(now_ms).into_iter();
        let port_ms = self.calls.as_ref().and_then(InboundCalls::again_at_ms);
        let own = [
            self.work_at_ms,
            self.lead_at_ms,
            self.retention_at_ms,
            port_ms.unwrap_or(u64::MAX),
        ];
        Ok(pauses.chain(own).min().unwrap_or(u64::MAX))
    }

    /// Reads what files say again, if one of them was changed.
    fn reload(&mut self, board: &mut Board) {
        if !self.said.has_changed() {
            return;
        }
        // Read anew, so that a rule or profile that was changed holds from now on.
        match reread(self.shop) {
            Ok(kernel) => {
                self.worker.set_capacity(kernel.terms.capacity());
                self.kernel = kernel;
            }
            Err(error) => board.say(&format!(
                "note: the previous settings stay in effect: {error}"
            )),
        }
        let mut found = self.kernel.loops();
        self.missed.apply(&mut found.definitions);
        let missing = self.kernel.missing_agents(&found);
        let unmeasured = self.kernel.unmeasured_loops(&found);
        let (names, limits): (BTreeSet<LoopName>, Vec<SettingsFault>) =
            unmeasured.into_iter().unzip();
        found
            .definitions
            .retain(|definition| !names.contains(&definition.name));
        let faults = found
            .faults
            .iter()
            .chain(&self.kernel.profiles.faults)
            .chain(&missing)
            .chain(&limits);
        board.faults(faults.map(ToString::to_string).collect());
        self.leader.set(found.definitions);
        self.lead_at_ms = 0;
    }

    /// Answers calls that came in, and takes the port as soon as it is free.
    fn answer_calls(&mut self, board: &mut Board, now_ms: u64) -> Result<(), Error> {
        let Some(calls) = &mut self.calls else {
            return Ok(());
        };
        if self.is_leaving {
            calls.end();
            return Ok(());
        }
        calls.open(board, now_ms);
        let sights = BTreeMap::new();
        let (leader, profiles) = (&self.leader, &self.kernel.profiles);
        let now_ms = self.kernel.context.clock.now_ms();
        let (queue, _) = self.worker.queue();
        self.kernel.at_admission(|admission| {
            let around = LeaderContext {
                admission,
                profiles,
                sights: &sights,
                now_ms,
            };
            calls.answer(&mut |call| leader.called(queue, &around, call), board)
        })
    }

    fn lead(&mut self, board: &mut Board, has_news: bool, now_ms: u64) -> Result<(), Error> {
        let is_time = now_ms >= self.lead_at_ms || has_news;
        let sees = self.leader.leads() && now_ms >= self.lookout.next_look_ms();
        if !is_time && !sees {
            return Ok(());
        }
        let clock_ms = self.kernel.context.clock.now_ms();
        let sights = if self.leader.leads() {
            self.lookout
                .look(&self.grants, self.leader.watched(), clock_ms)
        } else {
            BTreeMap::new()
        };
        let was_leading = self.leader.leads();
        let leader = &mut self.leader;
        let profiles = &self.kernel.profiles;
        let (queue, own) = self.worker.queue();
        let led = self.kernel.at_admission(|admission| {
            let around = LeaderContext {
                admission,
                profiles,
                sights: &sights,
                now_ms: clock_ms,
            };
            leader.step(queue, own, &around)
        });
        let led = led.map_err(|error| failed(&error))?;
        // The first look at files comes after it has begun to lead.
        let is_first = self.leader.leads() && !was_leading;
        self.has_led = !is_first;
        self.lead_at_ms = match led.again_at_ms {
            _ if is_first => now_ms,
            Some(at_ms) => now_ms + u64::try_from(at_ms - clock_ms).unwrap_or(0).max(1),
            None => u64::MAX,
        };
        self.show(board, &led);
        Ok(())
    }

    fn show(&mut self, board: &mut Board, led: &LeadOutcome) {
        for dealt in &led.dealt {
            let what = match &dealt.outcome {
                OccurrenceOutcome::Run(task) => format!("triggered, as {task}"),
                OccurrenceOutcome::None(reason) => format!("not triggered: {reason}"),
            };
            board.set_off(&dealt.name, &dealt.trigger, &what);
        }
    }

    /// Works on what waits. Each look for work takes a lock, so there has to be a reason.
    fn work(&mut self, has_news: bool, now_ms: u64) -> Result<(), Error> {
        let has_free = self.worker.n_jobs() < self.slots && !self.is_leaving;
        let waits = has_free && now_ms >= self.capacity_at_ms && self.is_there_work();
        // Where nobody holds anything, no lease can run out.
        let is_time = now_ms >= self.work_at_ms && self.is_anything_held();
        if !has_news && !waits && !is_time && !self.is_leaving {
            if now_ms >= self.work_at_ms {
                self.work_at_ms = now_ms + self.kernel.store.lease_ms() / 6;
            }
            return Ok(());
        }
        let (has_capacity, n_jobs) = (self.has_capacity, self.worker.n_jobs());
        let stepped = self.worker.step(&|| has_capacity(n_jobs));
        let stepped = stepped.map_err(|error| failed(&error))?;
        for id in stepped.claimed {
            self.tally.worked.insert(id, KernelTaskState::Running);
        }
        self.work_at_ms = stepped.again_at_ms;
        let has_free = self.worker.n_jobs() < self.slots && !self.is_leaving;
        if has_free && self.is_there_work() {
            // The machine has no room for it.
            self.capacity_at_ms = now_ms + CAPACITY_MS;
            self.work_at_ms = self.work_at_ms.min(self.capacity_at_ms);
        }
        Ok(())
    }

    fn is_anything_held(&mut self) -> bool {
        let (queue, _) = self.worker.queue();
        let mut tasks = queue.kernel().tasks.values();
        tasks.any(|task| task.lease.is_some())
    }

    fn is_there_work(&mut self) -> bool {
        let capacity = self.kernel.terms.capacity();
        let (queue, _) = self.worker.queue();
        let (reach, now_ms) = (queue.reach(), queue.now_ms());
        admission::pick(queue.kernel(), &capacity, None, reach.as_deref(), now_ms).is_some()
    }

    /// Returns when the next task that pauses may be worked on.
    fn not_before_ms(&mut self, now_ms: u64) -> Option<u64> {
        let capacity = self.kernel.terms.capacity();
        let (queue, _) = self.worker.queue();
        let clock_ms = queue.now_ms();
        let waits = admission::waits(queue.kernel(), &capacity, clock_ms);
        let pauses = waits.values().filter_map(|waits| match waits {
            Waits::Until { at_ms } | Waits::Cooldown { at_ms } => {
                u64::try_from(at_ms - clock_ms).ok()
            }
            Waits::Project { .. }
            | Waits::Agent { .. }
            | Waits::Loop { .. }
            | Waits::Spend { .. }
            | Waits::Worker => None,
        });
        pauses.min().map(|pause_ms| now_ms + pause_ms.max(1))
    }

    /// Tells where tasks stand that stood elsewhere before.
    fn announce(&mut self, board: &mut Board) -> Result<(), Error> {
        let (queue, _) = self.worker.queue();
        let mut reported = BTreeMap::new();
        for (id, task) in &queue.kernel().tasks {
            reported.insert(*id, task.state);
            if self.reported.remove(id) != Some(task.state) {
                board.put_task(task);
            }
        }
        let now_ms = self.kernel.context.clock.now_ms();
        let capacity = self.kernel.terms.capacity();
        board.put_waits(&admission::waits(queue.kernel(), &capacity, now_ms));
        let mut ended = Vec::new();
        // What is left has ended.
        for id in std::mem::replace(&mut self.reported, reported).into_keys() {
            let Some(task) = queue.find(id).map_err(|error| failed(&error))? else {
                continue;
            };
            board.put_task(&task);
            if task.state.is_ended() {
                ended.push(task.clone());
            }
            self.tally
                .worked
                .entry(id)
                .and_modify(|state| *state = task.state);
        }
        self.tally.waiting = self.reported.len();
        self.n_ended += ended.len();
        ended.into_iter().for_each(|task| self.notify(task));
        Ok(())
    }

    /// Removes what is beyond the limits of what tasks leave, from time to time.
    fn keep_within_limits(&mut self, now_ms: u64) {
        let is_due = now_ms >= self.retention_at_ms || self.n_ended >= RETENTION_TASKS;
        if !is_due || self.is_leaving {
            return;
        }
        self.retention_at_ms = now_ms + RETENTION_MS;
        self.n_ended = 0;
        let shop = self.shop;
        self.scope.spawn(move || {
            let removed = reread(shop).map(|kernel| kernel.keep_within_limits());
            let text = match removed {
                Ok(Ok(None)) => return,
                Ok(Ok(Some(text))) => text,
                Ok(Err(error)) => format!("failed to {}", error.message),
                Err(error) => error.to_string(),
            };
            shop.context.ui.say(&format!("note: {text}."));
        });
    }

    /// Delivers a task that has ended, and tells the person of it.
    fn notify(&self, task: KernelTask) {
        let shop = self.shop;
        self.scope.spawn(move || {
            let root = shop.project.layout.root();
            let site = DeliverySite {
                context: shop.context,
                config: shop.config,
                root,
            };
            if let Err(error) = others::of_task(site, &task) {
                shop.context.ui.say(&format!("note: {error}"));
            }
            notification::of_task(shop.context, shop.config, &task, root.to_path_buf());
        });
    }

    /// Tells whether nothing is under way, and of what is due nothing waits.
    pub(super) fn is_finished(&mut self) -> bool {
        if self.worker.n_jobs() > 0 {
            return false;
        }
        self.is_leaving || (self.has_led && (self.slots == 0 || !self.is_there_work()))
    }

    /// Calls everything off, for a supervisor that has failed.
    pub(super) fn call_off(&mut self) {
        self.calls.iter_mut().for_each(InboundCalls::end);
        self.listening = None;
        self.worker.leave();
    }

    /// Returns what was done, once.
    pub(super) fn tally(&mut self) -> TaskTally {
        std::mem::take(&mut self.tally)
    }

    /// Leads no more.
    pub(super) fn end(mut self) -> Result<(), Error> {
        self.calls.iter_mut().for_each(InboundCalls::end);
        self.listening = None;
        let (queue, own) = self.worker.queue();
        let resigned = self.leader.resign(queue, own);
        resigned.map_err(|error| failed(&error))
    }
}

/// Reads what was set for the kernel anew; how agents are run stays as it was when this process began.
fn reread<'env>(shop: &Shop<'env>) -> Result<ProjectKernel<'env>, Error> {
    let root = shop.project.layout.root();
    let config = shop.context.config(Some(root))?;
    let kernel = ProjectKernel::new(shop.context, shop.project, shop.config)?;
    kernel.with_terms_of(&config)
}
