//! Driving the lanes of a race: a thread each, and one that looks who is proved.
//!
//! A lane is driven, shown and stayed with as any goal is. What this process knows can be read
//! again from the logs, so it may be killed at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};
use std::time::Duration;

use kapi_core::id::GoalId;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::race;
use kapi_goal::record::race::{Lane, Winner};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_machine::logged::EventRecord;
use kapi_sys::alarm::{Alarm, AlarmWaker, WakeSources};

use crate::commands::run::race::field::{RaceField, Troubles};
use crate::commands::run::race::view;
use crate::driving::attendance::{alarm, alarm_failed};
use crate::driving::{self, GoalRun, WhenParked};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::live_view::open_view::ViewSource;
use crate::live_view::source::GoalSource;
use crate::{delivering, live_view, notification};

/// The longest until the lanes are looked at again, should the system not tell of a change.
const LOOK: Duration = Duration::from_secs(1);
/// Lanes that may tell how they ended before the one that listens has heard them.
const ENDED_MAX: usize = 16;

/// Drives the lanes to their end and reports how they came out.
///
/// `begun` is what this command recorded already; each lane shows its own first.
pub(super) fn run(
    field: &RaceField<'_>,
    begun: &BTreeMap<GoalId, Vec<EventRecord<GoalEvent>>>,
) -> Result<Exit, Error> {
    let (sender, receiver) = sync_channel(ENDED_MAX);
    let alarm = alarm()?;
    let mut troubles = Troubles::new();
    let goals = GoalSource::new(field.context, field.project);
    let source = ViewSource {
        subjects: &|| {
            let lanes = field.lanes().unwrap_or_default();
            lanes
                .iter()
                .filter_map(|lane| goals.read(&lane.goal.id))
                .collect()
        },
        overview: None,
    };
    let race = || {
        thread::scope(|scope| {
            let mut watch = LaneWatch {
                field,
                scope,
                waker: alarm.waker(),
                alarm,
                sender,
                receiver,
                begun,
                started: BTreeSet::new(),
                running: BTreeSet::new(),
                troubles: &mut troubles,
            };
            let watched = watch.run();
            if watched.is_err() {
                // The threads are joined before the error is told, and they end on the same flag.
                field.interrupts.cancel().raise();
            }
            watched
        })
    };
    live_view::during(field.context, source, field.interrupts, race)?;
    if field.interrupts.is_raised() {
        pause_rest(field)?;
    }
    let winner = race::winner(field.project, field.of).map_err(|error| field.failed(&error))?;
    let lanes = field.lanes()?;
    let exit = view::report(field, &lanes, winner.as_ref(), &troubles)?;
    let is_told = |lane: &&Lane| match &winner {
        Some(winner) => lane.race.lane == winner.lane,
        None => true,
    };
    if let Some(lane) = lanes.iter().find(is_told)
        && !field.interrupts.is_raised()
    {
        // Without a winner, a person picks the result, and delivers it.
        let delivered = match winner {
            Some(_) => delivering::of_goal(field.context, field.config, field.project, &lane.goal),
            None => Ok(()),
        };
        delivering::show(field.context, field.project, &lane.goal);
        let root = field.project.layout.root().to_path_buf();
        notification::of_goal(field.context, field.config, &lane.goal, root);
        delivered?;
    }
    Ok(exit)
}

/// The one that looks at all lanes.
struct LaneWatch<'scope, 'env, 'run> {
    field: &'env RaceField<'env>,
    scope: &'scope Scope<'scope, 'env>,
    alarm: Alarm,
    waker: AlarmWaker,
    sender: SyncSender<(GoalId, Result<(), Error>)>,
    receiver: Receiver<(GoalId, Result<(), Error>)>,
    begun: &'run BTreeMap<GoalId, Vec<EventRecord<GoalEvent>>>,
    started: BTreeSet<GoalId>,
    running: BTreeSet<GoalId>,
    troubles: &'run mut Troubles,
}

impl<'env> LaneWatch<'_, 'env, '_> {
    fn run(&mut self) -> Result<(), Error> {
        let mut is_won = false;
        loop {
            self.listen();
            self.watch()?;
            let lanes = self.field.lanes()?;
            if !is_won {
                is_won = self.settle(&lanes)?.is_some();
            }
            let is_leaving = self.field.interrupts.is_raised();
            if !is_leaving {
                self.start(&lanes, is_won);
            }
            if self.running.is_empty() {
                return Ok(());
            }
            let interrupts = self.field.interrupts;
            let is_over = || interrupts.is_raised() && !is_leaving;
            self.alarm
                .sleep(LOOK, &is_over)
                .map_err(|error| alarm_failed(&error))?;
        }
    }

    /// Hears which lanes are not driven any more.
    fn listen(&mut self) {
        for (id, ended) in self.receiver.try_iter() {
            self.running.remove(&id);
            let Err(error) = ended else { continue };
            let text = format!("note: {id} is no longer driven: {error}");
            self.field.context.ui.say(&text);
            self.troubles.insert(id, error);
        }
    }

    /// Stops the others once a lane is proved.
    fn settle(&self, lanes: &[Lane]) -> Result<Option<Winner>, Error> {
        let Some(done) = lanes
            .iter()
            .find(|lane| lane.goal.status == GoalStatus::Done)
        else {
            return Ok(None);
        };
        let field = self.field;
        let winner = race::settle(field.project, &field.context.actor, &done.goal)
            .map_err(|error| field.failed(&error))?;
        if let Some(winner) = &winner {
            field.context.ui.say(&format!(
                "Lane {} is proved and wins; stopping the other lanes.",
                winner.lane
            ));
        }
        Ok(winner)
    }

    /// Starts lanes, as long as there is room.
    fn start(&mut self, lanes: &[Lane], is_won: bool) {
        for lane in lanes {
            let goal = &lane.goal;
            let is_watched = self.field.when_parked == WhenParked::Stay && !is_won;
            let is_due = goal.is_driven() || goal.status == GoalStatus::Waiting && is_watched;
            let has_capacity = u32::try_from(self.running.len()).is_ok_and(|n| n < self.field.jobs);
            if !is_due || !has_capacity || !self.started.insert(goal.id.clone()) {
                continue;
            }
            self.running.insert(goal.id.clone());
            let (field, id) = (self.field, goal.id.clone());
            let begun = self.begun.get(&id).cloned().unwrap_or_default();
            let (sender, waker) = (self.sender.clone(), self.waker.clone());
            self.scope.spawn(move || {
                let ended = drive(field, &id, begun);
                // Nobody listens any more when the one that looks has failed.
                drop(sender.send((id, ended)));
                waker.ring();
            });
        }
    }

    fn watch(&mut self) -> Result<(), Error> {
        let layout = &self.field.project.layout;
        let directories = self
            .running
            .iter()
            .map(|id| layout.goal(id).dir().to_path_buf());
        let watched = WakeSources {
            directories: directories.collect(),
            processes: BTreeSet::new(),
        };
        self.alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))
    }
}

fn drive(
    field: &RaceField<'_>,
    id: &GoalId,
    begun: Vec<EventRecord<GoalEvent>>,
) -> Result<(), Error> {
    let run = GoalRun {
        project: field.project,
        id,
        config: field.config,
    };
    driving::drive_unreported(
        field.context,
        &run,
        begun,
        field.interrupts,
        field.when_parked,
    )
    .map(drop)
}

/// Pauses the lanes that nobody drove when the person stopped the race. A parked one stays
/// parked: it costs nothing, and wakes by itself.
fn pause_rest(field: &RaceField<'_>) -> Result<(), Error> {
    let is_left = |goal: &Goal| goal.status == GoalStatus::Active;
    for lane in field.lanes()?.iter().filter(|lane| is_left(&lane.goal)) {
        let person = &field.context.actor;
        match field
            .project
            .submit(&lane.goal.id, person, &GoalCommand::Interrupt)
        {
            Ok(_) | Err(EngineError::Denied(_)) => {}
            Err(error) => return Err(field.failed(&error)),
        }
    }
    Ok(())
}
