//! The loop that keeps one goal going: plan, record the intent, perform, record the outcome.
//!
//! One thread owns the state; the effect runs in a second one and speaks over a bounded channel.
//! A crash anywhere is repaired by calling [`drive`] again. What effects do is the world's
//! affair.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_machine::effect_room::EffectRoom;
use kapi_machine::evidence::hash_run;
use kapi_machine::logged::EventRecord;
use kapi_machine::meter::{Meter, MeterReading};
use kapi_machine::pace::Pace;
use kapi_machine::running_effect::{
    EffectMessage, EffectSender, MESSAGES_MAX, RunningEffect, cut_off, panicked,
};
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sys::lock::LockError;

use crate::record::error::EngineError;
use crate::record::opened::OpenGoal;
use crate::record::project::Project;
use crate::record::world::World;
use crate::rules::command::GoalCommand;
use crate::rules::effect::{GoalAction, GoalEffect, next};
use crate::rules::event::GoalEvent;
use crate::rules::outcome::GoalOutcome;
use crate::rules::state::{Goal, GoalStatus};

/// How often a plan may be overtaken by other processes before it is an error.
const OVERTAKEN_MAX: u32 = 100;

/// What a drive obeys besides the rules.
pub struct DriveControl<'a> {
    /// The person who started it, in whose name the goal is interrupted. Where it is the engine,
    /// a supervisor drives: it lets go of the goal instead, which stays active for the next driver.
    pub person: Actor,
    /// Tells whether whoever started it wants it to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Milliseconds of a clock that never goes back, see [`kapi_sys::clock::monotonic_ms`].
    pub monotonic_ms: &'a dyn Fn() -> u64,
    /// How often it looks and reports.
    pub pace: Pace,
}

/// Something worth showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriveObservation {
    /// An event was recorded, by this process or another.
    Recorded(Box<EventRecord<GoalEvent>>),
    /// An effect begins.
    Performing(Box<GoalEffect>),
    /// Something happened inside it.
    Activity(Activity),
}

/// A drive that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum GoalDriveError {
    /// Somebody else drives the goal.
    #[error("drive goal {goal}, which is driven by {owner}")]
    Driven {
        /// The goal.
        goal: GoalId,
        /// Who.
        owner: String,
    },
    /// A request failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Drives a goal until it waits for a person or a condition or has ended, or until it is let go of,
/// and returns it.
///
/// # Errors
/// When somebody else drives it, its log is damaged, or the disk refuses. What was recorded
/// stays; driving again goes on from there.
pub fn drive<'a>(
    project: &'a Project<'a>,
    goal: &GoalId,
    world: &dyn World,
    control: &DriveControl<'_>,
    observe: &mut dyn FnMut(DriveObservation),
) -> Result<Goal, GoalDriveError> {
    let mut open = OpenGoal::load(project, goal)?;
    open.goal()?;
    let lock = project.layout.goal(goal).drive_lock();
    let _driving = match project.disk.lock(&lock, &project.owner, 0) {
        Ok(lock) => lock,
        Err(LockError::Busy { owner, .. }) => {
            return Err(GoalDriveError::Driven {
                goal: goal.clone(),
                owner,
            });
        }
        Err(error @ LockError::Failed { .. }) => return Err(EngineError::from(error).into()),
    };
    open.repair()?;
    let mut drive = GoalDriver {
        project,
        open,
        control,
        observe,
        lets_go: false,
    };
    drive.land_orphan()?;
    let mut overtaken = 0;
    loop {
        drive.look()?;
        let planned = next(drive.open.goal()?).filter(|_| !drive.lets_go);
        let Some(planned) = planned else {
            break;
        };
        match drive.submit(
            &Actor::Engine,
            &GoalCommand::Intend {
                effect: planned.id.clone(),
            },
        ) {
            Ok(()) => {}
            Err(EngineError::Denied(_)) if overtaken < OVERTAKEN_MAX => {
                overtaken += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        // Planned again, because the intent's time is part of some effects.
        let intended = next(drive.open.goal()?);
        let Some(effect) = intended.filter(|effect| effect.id == planned.id) else {
            continue;
        };
        overtaken = 0;
        drive.perform(world, &effect)?;
    }
    Ok(drive.open.into_goal()?)
}

struct GoalDriver<'a, 'o> {
    project: &'a Project<'a>,
    open: OpenGoal<'a>,
    control: &'a DriveControl<'a>,
    observe: &'o mut dyn FnMut(DriveObservation),
    /// It goes no further, and the goal stays as it is.
    lets_go: bool,
}

impl GoalDriver<'_, '_> {
    /// Reads what others recorded, and stops the goal or lets go of it if that is wanted.
    fn look(&mut self) -> Result<(), EngineError> {
        self.open.refresh()?;
        self.show_recorded();
        if (self.control.interrupted)() && self.open.goal()?.is_driven() {
            let person = self.control.person.clone();
            if person == Actor::Engine {
                self.lets_go = true;
                return Ok(());
            }
            match self.submit(&person, &GoalCommand::Interrupt) {
                // Somebody else stopped it first.
                Ok(()) | Err(EngineError::Denied(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends an effect that was under way when its process died and that nobody wants any more.
    fn land_orphan(&mut self) -> Result<(), EngineError> {
        let goal = self.open.goal()?;
        match &goal.in_flight {
            Some(_) if goal.is_driven() => Ok(()),
            None => Ok(()),
            Some(in_flight) => {
                let effect = in_flight.effect.clone();
                self.record_run(&effect)?;
                let outcome = GoalOutcome::Cancelled {
                    usage: Usage::default(),
                    session: None,
                };
                let report = GoalCommand::Report {
                    effect,
                    outcome,
                    elapsed_ms: 0,
                };
                self.submit(&Actor::Engine, &report)
            }
        }
    }

    fn submit(&mut self, actor: &Actor, command: &GoalCommand) -> Result<(), EngineError> {
        let result = self.open.submit(actor, command);
        self.show_recorded();
        result.map(|_| ())
    }

    fn show_recorded(&mut self) {
        for logged in self.open.take_unseen() {
            (self.observe)(DriveObservation::Recorded(Box::new(logged)));
        }
    }

    /// Performs one effect in a thread of its own and records how it ended.
    fn perform(&mut self, world: &dyn World, effect: &GoalEffect) -> Result<(), EngineError> {
        (self.observe)(DriveObservation::Performing(Box::new(effect.clone())));
        let perform = |effect: &GoalEffect, watch: &EffectWatch<'_>| world.perform(effect, watch);
        let (sender, receiver) = sync_channel(MESSAGES_MAX);
        thread::scope(|scope| {
            let limited = LimitedRoom {
                room: Arc::new(EffectRoom::default()),
                before: self.open.goal()?.spent.total(),
            };
            limited.renew(self.open.goal()?);
            let voice = EffectSender::new(&sender, &effect.id, &limited.room);
            let now_ms = self.now_ms();
            let meter = meter(effect, now_ms);
            let mut running_effect =
                RunningEffect::start(scope, &perform, effect.clone(), meter, voice);
            let attended = self.attend(&mut running_effect, &receiver, &limited, now_ms);
            if attended.is_err() {
                running_effect.cancel.raise();
            }
            // Whatever the effect still says goes nowhere, so it cannot wait for us.
            drop(receiver);
            let has_panicked = running_effect.join();
            match attended? {
                Some(()) => Ok(()),
                None => {
                    assert!(
                        has_panicked,
                        "a worker that ends without a word has panicked"
                    );
                    self.report(effect, GoalOutcome::Failed(panicked(&effect.id)), 0)
                }
            }
        })
    }

    /// Listens until the effect has ended; `None` when it never said how.
    fn attend(
        &mut self,
        running_effect: &mut RunningEffect<'_, GoalEffect>,
        receiver: &Receiver<EffectMessage<GoalOutcome>>,
        limited: &LimitedRoom,
        mut looked_ms: u64,
    ) -> Result<Option<()>, EngineError> {
        let look_ms = self.control.pace.look_ms;
        loop {
            let message = receiver.recv_timeout(Duration::from_millis(look_ms));
            let now_ms = self.now_ms();
            let is_quiet = message.is_err();
            match message {
                Ok(EffectMessage::Activity(_, activity)) => {
                    running_effect.meter.notice(&activity);
                    (self.observe)(DriveObservation::Activity(activity));
                }
                Ok(EffectMessage::Ended(_, outcome)) => {
                    let reading = running_effect.meter.reading(now_ms);
                    let effect = &running_effect.effect;
                    let outcome = checked(*outcome, running_effect);
                    let outcome = self.with_usage(effect, outcome, &reading.usage)?;
                    return self.report(effect, outcome, reading.elapsed_ms).map(Some);
                }
                Ok(EffectMessage::Gone(_)) => return Ok(None),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let reading = running_effect.meter.reading(now_ms);
            let is_due = running_effect.meter.is_due(now_ms, &self.control.pace)
                || uses_up_limit(self.open.goal()?, &reading);
            let looks = is_quiet || now_ms.saturating_sub(looked_ms) >= look_ms;
            if is_due {
                let reading = running_effect.meter.take(now_ms);
                self.progress(&running_effect.effect, reading.usage, reading.elapsed_ms)?;
            }
            if looks {
                looked_ms = now_ms;
                self.look()?;
                limited.renew(self.open.goal()?);
            }
            // Only an event can make an effect unwanted.
            if (is_due || looks) && (self.lets_go || !self.wants(&running_effect.effect)?) {
                running_effect.cancel.raise();
            }
        }
    }

    fn wants(&self, effect: &GoalEffect) -> Result<bool, EngineError> {
        Ok(next(self.open.goal()?).is_some_and(|wanted| wanted.id == effect.id))
    }

    /// Adds to the outcome what was used and not yet reported; an outcome that has no place for
    /// it is preceded by a report of its own.
    fn with_usage(
        &mut self,
        effect: &GoalEffect,
        mut outcome: GoalOutcome,
        used: &Usage,
    ) -> Result<GoalOutcome, EngineError> {
        match &mut outcome {
            GoalOutcome::Agent(run) => run.usage.add(used),
            GoalOutcome::Judged(run) => run.usage.add(used),
            GoalOutcome::Cancelled { usage, .. } => usage.add(used),
            GoalOutcome::Workspace { .. }
            | GoalOutcome::Committed(_)
            | GoalOutcome::Verified(_)
            | GoalOutcome::Published { .. }
            | GoalOutcome::Waited
            | GoalOutcome::CapReached { .. }
            | GoalOutcome::Failed(_) => {
                if !used.is_zero() {
                    self.progress(effect, *used, 0)?;
                }
            }
        }
        Ok(outcome)
    }

    fn progress(
        &mut self,
        effect: &GoalEffect,
        usage: Usage,
        elapsed_ms: u64,
    ) -> Result<(), EngineError> {
        let effect = effect.id.clone();
        self.submit(
            &Actor::Engine,
            &GoalCommand::Progress {
                effect,
                usage,
                elapsed_ms,
            },
        )
    }

    fn report(
        &mut self,
        effect: &GoalEffect,
        outcome: GoalOutcome,
        elapsed_ms: u64,
    ) -> Result<(), EngineError> {
        let effect = effect.id.clone();
        self.record_run(&effect)?;
        self.submit(
            &Actor::Engine,
            &GoalCommand::Report {
                effect,
                outcome,
                elapsed_ms,
            },
        )
    }

    /// Records what the run of an effect wrote, as it is now that nobody writes to it any more.
    fn record_run(&mut self, effect: &EffectId) -> Result<(), EngineError> {
        let run = self.open.goal()?.run_name(effect);
        let files = hash_run(self.project.disk, &self.project.layout.run(&run))?;
        if files.is_empty() {
            return Ok(());
        }
        let effect = effect.clone();
        self.submit(&Actor::Engine, &GoalCommand::RecordRun { effect, files })
    }

    fn now_ms(&self) -> u64 {
        (self.control.monotonic_ms)()
    }
}

/// What one effect of a goal may use, as long as the limits stay as they are.
struct LimitedRoom {
    room: Arc<EffectRoom>,
    /// What the goal had used when the effect began.
    before: Usage,
}

impl LimitedRoom {
    /// Keeps to the limits as they are now: a person may have raised them meanwhile.
    fn renew(&self, goal: &Goal) {
        let limits = &goal.budget;
        let left = Room::left(limits.tokens, limits.usd_micros, &self.before);
        self.room.set_limit(left);
    }
}

/// An effect that says it was cancelled though nobody asked would be tried again for ever.
fn checked(outcome: GoalOutcome, running_effect: &RunningEffect<'_, GoalEffect>) -> GoalOutcome {
    match outcome {
        GoalOutcome::Cancelled { .. } if !running_effect.cancel.is_raised() => {
            GoalOutcome::Failed(cut_off(&running_effect.effect.id))
        }
        outcome => outcome,
    }
}

fn meter(effect: &GoalEffect, now_ms: u64) -> Meter {
    match effect.action {
        GoalAction::Wait { .. } => Meter::start_untimed(now_ms),
        GoalAction::CreateWorkspace { .. }
        | GoalAction::RunAgent(_)
        | GoalAction::Commit(_)
        | GoalAction::Baseline(_)
        | GoalAction::Verify(_)
        | GoalAction::Judge(_)
        | GoalAction::Publish { .. } => Meter::start(now_ms),
    }
}

/// Tells whether a limit that was not used up before is so with this reading.
fn uses_up_limit(goal: &Goal, reading: &MeterReading) -> bool {
    if goal.status != GoalStatus::Active || goal.limit_within_turn().is_some() {
        return false;
    }
    let mut spent = goal.spent;
    spent.executor.add(&reading.usage);
    spent.wall_ms = spent.wall_ms.saturating_add(reading.elapsed_ms);
    goal.limit_within_turn_at(&spent).is_some()
}
