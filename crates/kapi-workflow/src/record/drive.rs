//! The loop that keeps one workflow going: plan, record intents, perform several effects at once,
//! record what became of each.
//!
//! One thread owns the state; each effect runs in one of its own. A crash anywhere is repaired by
//! calling [`drive`] again. What effects do is the affair of the function it is given.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_machine::effect_room::EffectRoom;
use kapi_machine::evidence::hash_run;
use kapi_machine::logged::EventRecord;
use kapi_machine::meter::Meter;
use kapi_machine::pace::Pace;
use kapi_machine::running_effect::{EffectMessage, EffectSender, MESSAGES_MAX, RunningEffect};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sys::lock::LockError;

use crate::record::delay::Delays;
use crate::record::error::WorkflowError;
use crate::record::opened::OpenWorkflow;
use crate::record::run_name::run_name;
use crate::record::start::relink;
use crate::record::timer::Timer;
use crate::record::{goals, running_effect};
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::{EffectResource, EffectSlots, WorkflowAction, WorkflowEffect, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::spent::time_left_ms;
use crate::rules::state::Workflow;

/// How often in a row a plan may be overtaken by other processes before it is an error.
const OVERTAKEN_MAX: u32 = 100;

/// Performs one effect to its end. Performing one twice under the same id must be safe; soon after
/// `watch.cancel` is raised it returns [`WorkflowOutcome::Cancelled`].
pub type Perform<'a> = dyn Fn(&WorkflowEffect, &EffectWatch<'_>) -> WorkflowOutcome + Sync + 'a;

/// What a drive obeys besides the rules.
pub struct WorkflowDriveControl<'a> {
    /// Tells whether whoever started it wants it to stop. The workflow stays as it is then.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Milliseconds of a clock that never goes back, see [`kapi_sys::clock::monotonic_ms`].
    pub monotonic_ms: &'a dyn Fn() -> u64,
    /// How often it looks and reports; nothing here is timed.
    pub pace: Pace,
    /// How long what failed is left alone.
    pub delays: Delays,
}

/// Something worth showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowObservation {
    /// An event was recorded, by this process or another.
    Recorded(Box<EventRecord<WorkflowEvent>>),
    /// An effect begins.
    Performing(Box<WorkflowEffect>),
    /// Something happened inside it.
    Activity {
        /// Which.
        effect: EffectId,
        /// What.
        activity: Activity,
    },
    /// An effect that failed is tried again later.
    Delayed {
        /// Which.
        effect: EffectId,
        /// In how many milliseconds.
        ms: u64,
    },
}

/// A drive that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowDriveError {
    /// Somebody else drives the workflow.
    #[error("drive workflow {workflow}, which is driven by {owner}")]
    Driven {
        /// Which.
        workflow: GoalId,
        /// Who.
        owner: String,
    },
    /// A request failed.
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
}

/// Drives a workflow until it waits for a person, is held up or has ended, or until it is
/// interrupted, and returns it.
///
/// # Errors
/// When somebody else drives it, this person's home gives no leave for it, its log is damaged, or
/// the disk refuses. What was recorded stays; driving again goes on from there.
pub fn drive(
    project: &Project<'_>,
    key: &WorkflowKey,
    perform: &Perform<'_>,
    control: &WorkflowDriveControl<'_>,
    observe: &mut dyn FnMut(WorkflowObservation),
) -> Result<Workflow, WorkflowDriveError> {
    let mut open = OpenWorkflow::load(project, key)?;
    open.workflow()?;
    let lock = project.layout.workflow(key.mode, &key.id).drive_lock();
    let _driving = match project.disk.lock(&lock, &project.owner, 0) {
        Ok(lock) => lock,
        Err(LockError::Busy { owner, .. }) => {
            let workflow = key.id.clone();
            return Err(WorkflowDriveError::Driven { workflow, owner });
        }
        Err(error @ LockError::Failed { .. }) => return Err(WorkflowError::from(error).into()),
    };
    // Read whole: nothing is done on top of a log that was altered below its Workflows::of(&fold.project).workflow_log(key)?;
    open.repair()?;
    relink(project, open.workflow()?)?;
    let mut drive = WorkflowDriver {
        project,
        open,
        control,
        observe,
        not_before: BTreeMap::new(),
        overtaken: 0,
        accounted_ms: 0,
        timer: Timer::default(),
        room: Arc::new(EffectRoom::default()),
        heard: Usage::default(),
        is_stopping: false,
    };
    drive.account_all()?;
    drive.land_orphans()?;
    let (sender, receiver) = sync_channel(MESSAGES_MAX);
    thread::scope(|scope| {
        let mut flights = BTreeMap::new();
        let driven = drive.run((scope, perform), &mut flights, &sender, &receiver);
        // Whatever is still said goes nowhere, so nobody waits for us.
        drop(receiver);
        for running_effect in flights.into_values() {
            running_effect.abort();
        }
        driven
    })?;
    drive.open.note().map_err(WorkflowError::from)?;
    Ok(drive.open.into_workflow()?)
}

type Flights<'scope> = BTreeMap<EffectId, RunningEffect<'scope, WorkflowEffect>>;
type Crew<'scope, 'env> = (&'scope Scope<'scope, 'env>, &'env Perform<'env>);

struct WorkflowDriver<'a, 'o> {
    project: &'a Project<'a>,
    open: OpenWorkflow<'a>,
    control: &'a WorkflowDriveControl<'a>,
    observe: &'o mut dyn FnMut(WorkflowObservation),
    /// When an effect that failed may be tried again.
    not_before: BTreeMap<EffectId, u64>,
    overtaken: u32,
    /// When the accounts of goals at work were last taken over.
    accounted_ms: u64,
    /// For how long anything was under way.
    timer: Timer,
    /// What effects under way may use, and were heard to use.
    room: Arc<EffectRoom>,
    heard: Usage,
    /// Nothing more is begun, and the workflow stays as it is.
    is_stopping: bool,
}

impl WorkflowDriver<'_, '_> {
    fn run<'scope, 'env>(
        &mut self,
        threads: Crew<'scope, 'env>,
        flights: &mut Flights<'scope>,
        sender: &SyncSender<EffectMessage<WorkflowOutcome>>,
        receiver: &Receiver<EffectMessage<WorkflowOutcome>>,
    ) -> Result<(), WorkflowError> {
        loop {
            self.look()?;
            let wanted = self.wanted()?;
            let is_wanted = |id: &EffectId| wanted.iter().any(|effect| effect.id == *id);
            for (_, unwanted) in flights.iter().filter(|(id, _)| !is_wanted(id)) {
                unwanted.cancel.raise();
            }
            let began_ms = self.now_ms();
            let later = self.begin(threads, flights, &wanted, sender)?;
            if flights.is_empty() && later == DeferredWork::Nothing {
                return self.use_time();
            }
            // From before it began, so that nothing it does is missed.
            self.timer.look(began_ms, !flights.is_empty());
            self.attend(flights, receiver)?;
        }
    }

    /// Reads what others recorded, and notices that it is to stop.
    fn look(&mut self) -> Result<(), WorkflowError> {
        self.open.refresh()?;
        self.show_recorded();
        self.is_stopping |= (self.control.interrupted)();
        Ok(())
    }

    fn wanted(&self) -> Result<Vec<WorkflowEffect>, WorkflowError> {
        if self.is_stopping {
            return Ok(Vec::new());
        }
        Ok(next(self.open.workflow()?))
    }

    /// Ends effects that were under way when their process died and that nobody wants any more.
    fn land_orphans(&mut self) -> Result<(), WorkflowError> {
        let workflow = self.open.workflow()?;
        let wanted = next(workflow);
        let is_orphan = |id: &&EffectId| !wanted.iter().any(|effect| effect.id == **id);
        let orphans: Vec<EffectId> = workflow
            .in_flight
            .keys()
            .filter(is_orphan)
            .cloned()
            .collect();
        for effect in orphans {
            let usage = Usage::default();
            self.report(effect, WorkflowOutcome::Cancelled { usage })?;
        }
        Ok(())
    }

    /// Begins what is wanted and has a place, and tells whether anything is left for later.
    fn begin<'scope, 'env>(
        &mut self,
        threads: Crew<'scope, 'env>,
        flights: &mut Flights<'scope>,
        wanted: &[WorkflowEffect],
        sender: &SyncSender<EffectMessage<WorkflowOutcome>>,
    ) -> Result<DeferredWork, WorkflowError> {
        let unreported = flights.values().map(|it| it.meter.usage());
        let room = running_effect::room(self.open.workflow()?, &self.heard, unreported);
        self.room.set_limit(room);
        let mut later = DeferredWork::Nothing;
        for planned in wanted {
            if flights.contains_key(&planned.id) {
                continue;
            }
            let now_ms = self.now_ms();
            let is_early = self
                .not_before
                .get(&planned.id)
                .is_some_and(|not_before| now_ms < *not_before);
            if is_early || !self.has_location(flights, &planned.action)? {
                later = DeferredWork::Something;
                continue;
            }
            let Some(effect) = self.intend(planned)? else {
                later = DeferredWork::Something;
                continue;
            };
            if let WorkflowAction::Work(work) = &effect.action {
                goals::allow(self.project, self.open.workflow()?, work);
            }
            (self.observe)(WorkflowObservation::Performing(Box::new(effect.clone())));
            let (scope, perform) = threads;
            let meter = Meter::start_untimed(now_ms);
            let voice = EffectSender::new(sender, &effect.id, &self.room);
            let running_effect = RunningEffect::start(scope, perform, effect, meter, voice);
            flights.insert(planned.id.clone(), running_effect);
        }
        Ok(later)
    }

    /// Records the intent; `None` where somebody else's request made the effect unwanted.
    fn intend(
        &mut self,
        planned: &WorkflowEffect,
    ) -> Result<Option<WorkflowEffect>, WorkflowError> {
        let effect = planned.id.clone();
        match self.submit(&WorkflowCommand::Intend { effect }) {
            Ok(()) => self.overtaken = 0,
            Err(WorkflowError::Denied(_)) if self.overtaken < OVERTAKEN_MAX => {
                self.overtaken += 1;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        // Planned again, because the intent may be part of what is to be done.
        let planned = next(self.open.workflow()?)
            .into_iter()
            .find(|effect| effect.id == planned.id);
        Ok(planned)
    }

    fn has_location(
        &self,
        flights: &Flights<'_>,
        action: &WorkflowAction,
    ) -> Result<bool, WorkflowError> {
        let locations = action.locations();
        let most = match locations {
            EffectSlots::Any => return Ok(true),
            EffectSlots::Jobs => {
                usize::try_from(self.open.workflow()?.terms.jobs).unwrap_or(usize::MAX)
            }
            EffectSlots::One => 1,
        };
        let actions = flights
            .values()
            .map(|running_effect| &running_effect.effect.action);
        Ok(actions
            .filter(|other| other.locations() == locations)
            .count()
            < most)
    }

    /// Waits until something happens, for as long as it may not look, and records it.
    fn attend(
        &mut self,
        flights: &mut Flights<'_>,
        receiver: &Receiver<EffectMessage<WorkflowOutcome>>,
    ) -> Result<(), WorkflowError> {
        let look = Duration::from_millis(self.control.pace.look_ms);
        let mut message = receiver.recv_timeout(look).ok();
        // What has come meanwhile is taken along, at most as much as may wait.
        for _ in 0..MESSAGES_MAX {
            let Some(heard) = message else {
                break;
            };
            self.hear(flights, heard)?;
            message = receiver.try_recv().ok();
        }
        let now_ms = self.now_ms();
        self.timer.look(now_ms, !flights.is_empty());
        let left_ms = time_left_ms(self.open.workflow()?);
        if left_ms.is_some_and(|left_ms| self.timer.is_due(left_ms, &self.control.pace)) {
            self.use_time()?;
        }
        let mut due = Vec::new();
        for running_effect in flights.values_mut() {
            if running_effect.meter.is_due(now_ms, &self.control.pace) {
                due.push((
                    running_effect.effect.id.clone(),
                    running_effect.meter.take(now_ms).usage,
                ));
            }
        }
        for (effect, usage) in due {
            self.submit(&WorkflowCommand::Progress { effect, usage })?;
        }
        self.account_under_way(flights, now_ms)
    }

    /// Reports for how long anything was under way, where that is limited.
    fn use_time(&mut self) -> Result<(), WorkflowError> {
        let ms = self.timer.take();
        if ms == 0 || time_left_ms(self.open.workflow()?).is_none() {
            return Ok(());
        }
        self.submit(&WorkflowCommand::UseTime { ms })
    }

    /// Takes over what goals at work have used, as often as progress is told, where that counts
    /// against a limit.
    fn account_under_way(
        &mut self,
        flights: &Flights<'_>,
        now_ms: u64,
    ) -> Result<(), WorkflowError> {
        let is_due = now_ms.saturating_sub(self.accounted_ms) >= self.control.pace.progress_ms;
        if !is_due || !goals::are_limited(self.open.workflow()?) {
            return Ok(());
        }
        self.accounted_ms = now_ms;
        let at_work = flights.values();
        let at_work = at_work
            .filter(|running_effect| running_effect.effect.action.uses() == EffectResource::Goal);
        let workflow = self.open.workflow()?;
        let at_work = at_work.filter_map(|it| goals::of_effect(workflow, &it.effect.id));
        for goal in at_work.collect::<Vec<_>>() {
            self.account(&goal)?;
        }
        Ok(())
    }

    /// Takes over what every goal of the workflow has used that somebody may have driven meanwhile.
    fn account_all(&mut self) -> Result<(), WorkflowError> {
        for goal in self.open.workflow()?.goals() {
            self.account(&goal)?;
        }
        Ok(())
    }

    fn account(&mut self, goal: &GoalId) -> Result<(), WorkflowError> {
        let workflow = self.open.workflow()?;
        let Some(account) = goals::account(self.project, workflow, goal) else {
            return Ok(());
        };
        let goal = goal.clone();
        self.submit(&WorkflowCommand::RecordGoalUse { goal, account })
    }

    fn hear(
        &mut self,
        flights: &mut Flights<'_>,
        message: EffectMessage<WorkflowOutcome>,
    ) -> Result<(), WorkflowError> {
        let (effect, outcome) = match message {
            EffectMessage::Activity(effect, activity) => {
                if let Some(running_effect) = flights.get_mut(&effect) {
                    running_effect::notice(running_effect, &activity, &mut self.heard);
                }
                (self.observe)(WorkflowObservation::Activity { effect, activity });
                return Ok(());
            }
            EffectMessage::Ended(effect, outcome) => (effect, Some(*outcome)),
            EffectMessage::Gone(effect) => (effect, None),
        };
        let Some(running_effect) = flights.remove(&effect) else {
            return Ok(());
        };
        let outcome = running_effect::end(running_effect, outcome);
        // Before it is said that a goal rests: what is left decides what may begin then.
        let driven = if let WorkflowOutcome::Rested { goal, .. } = &outcome {
            Some(goal.clone())
        } else {
            goals::of_effect(self.open.workflow()?, &effect)
        };
        if let Some(goal) = driven {
            self.account(&goal)?;
        }
        let has_failed = outcome.failure().is_some();
        self.report(effect.clone(), outcome)?;
        if has_failed {
            self.delay(effect)?;
        }
        Ok(())
    }

    /// Leaves an effect alone for a while, if it is to be tried again.
    fn delay(&mut self, effect: EffectId) -> Result<(), WorkflowError> {
        let workflow = self.open.workflow()?;
        let n_failures = workflow.failures.get(&effect).copied().unwrap_or(0);
        let is_wanted = next(workflow).iter().any(|wanted| wanted.id == effect);
        let ms = self.control.delays.after(n_failures);
        if is_wanted && ms > 0 {
            let not_before = self.now_ms().saturating_add(ms);
            self.not_before.insert(effect.clone(), not_before);
            (self.observe)(WorkflowObservation::Delayed { effect, ms });
        }
        Ok(())
    }

    fn report(&mut self, effect: EffectId, outcome: WorkflowOutcome) -> Result<(), WorkflowError> {
        self.record_run(&effect)?;
        let outcome = Box::new(outcome);
        self.submit(&WorkflowCommand::Report { effect, outcome })
    }

    /// Records what the run of an effect wrote, as it is now that nobody writes to it any more.
    fn record_run(&mut self, effect: &EffectId) -> Result<(), WorkflowError> {
        let run = run_name(&self.open.workflow()?.id, effect);
        let files = hash_run(self.project.disk, &self.project.layout.run(&run));
        let files = files.map_err(EngineError::from)?;
        if files.is_empty() {
            return Ok(());
        }
        let effect = effect.clone();
        self.submit(&WorkflowCommand::RecordRun { effect, files })
    }

    fn submit(&mut self, command: &WorkflowCommand) -> Result<(), WorkflowError> {
        let result = self.open.submit(&Actor::Engine, command);
        self.show_recorded();
        result.map(|_| ())
    }

    fn show_recorded(&mut self) {
        for logged in self.open.take_unseen() {
            (self.observe)(WorkflowObservation::Recorded(Box::new(logged)));
        }
    }

    fn now_ms(&self) -> u64 {
        (self.control.monotonic_ms)()
    }
}

/// Whether something is wanted that could not be begun yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeferredWork {
    Nothing,
    Something,
}
