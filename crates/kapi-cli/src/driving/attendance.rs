//! A person who looks on: what this process records is shown, and what others record meanwhile.
//!
//! While the goal is parked this process is one of those who look whether the wait is over. It may
//! be killed at any time: nothing of the wait is kept here.

use std::thread;
use std::time::Duration;

use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::perform::waits;
use kapi_goal::perform::waits::WaitCheck;
use kapi_goal::record::drive::{DriveObservation, GoalDriveError};
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::wait::GoalWait;
use kapi_goal::rules::words;
use kapi_machine::follow::LogCursor;
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::Activity;
use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::cancel::Cancel;
use kapi_sys::signal::Interrupts;
use kapi_workflow::record::supervise::wake;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::progress::GoalProgressLine;

/// The longest until the goal is looked at again, should the system not tell of a change.
const LOOK: Duration = Duration::from_secs(5);
/// How often it is looked whether what was called off has ended.
const END_LOOK: Duration = Duration::from_millis(50);
/// The pause after a look that failed, in milliseconds.
const AFTER_FAILURE_MS: u64 = 60_000;

/// One person with one goal.
pub(super) struct Attendance<'a> {
    project: &'a Project<'a>,
    id: &'a GoalId,
    context: &'a Context,
    interrupts: &'a Interrupts,
    progress: GoalProgressLine,
    alarm: Alarm,
    cursor: LogCursor,
    /// The number of the last event that was shown.
    shown: u64,
}

impl<'a> Attendance<'a> {
    pub(super) fn new(
        context: &'a Context,
        project: &'a Project<'a>,
        id: &'a GoalId,
        interrupts: &'a Interrupts,
    ) -> Result<Self, Error> {
        let goal = project
            .load(id)
            .map_err(|error| Error::engine(&error, &id.to_string()))?;
        Ok(Self {
            project,
            id,
            context,
            interrupts,
            progress: GoalProgressLine::new(context.ui, &goal),
            alarm: alarm()?,
            cursor: LogCursor::default(),
            shown: 0,
        })
    }

    /// Shows what the command recorded before it drove.
    pub(super) fn show_begun(&mut self, begun: Vec<EventRecord<GoalEvent>>) {
        for logged in begun {
            self.show(&DriveObservation::Recorded(Box::new(logged)));
        }
    }

    pub(super) fn show(&mut self, seen: &DriveObservation) {
        if let DriveObservation::Recorded(logged) = seen {
            self.shown = self.shown.max(logged.seq);
        }
        self.progress.show(seen);
    }

    pub(super) fn failed(&self, error: &GoalDriveError) -> Error {
        Error::drive(error, &self.id.to_string())
    }

    /// Shows what another process does with the goal, until it rests; `None` when nobody drives it
    /// any more though it could go on.
    pub(super) fn follow(&mut self, owner: &str) -> Result<Option<Goal>, Error> {
        self.note(format!(
            "the goal is driven by {owner}; its progress is shown here"
        ));
        let mut was_reported = false;
        loop {
            self.watch(WakeSources::default())?;
            // Asked first, so that whatever it recorded last is among the events read next.
            let driver = self.driver()?;
            let goal = self.show_recorded()?;
            if !goal.is_driven() {
                return Ok(Some(goal));
            }
            if driver.is_none() {
                return Ok(None);
            }
            if self.interrupts.is_raised() && !was_reported {
                was_reported = true;
                self.interrupt()?;
            }
            self.sleep(LOOK, was_reported)?;
        }
    }

    /// Stays with a parked goal until its wait is over or the person goes, and returns it.
    pub(super) fn stay(&mut self, world: &RealWorld<'_>) -> Result<Goal, Error> {
        let mut reported = None;
        let mut trouble = None;
        loop {
            let parked = self.show_recorded()?;
            let wait = parked
                .wait
                .as_ref()
                .filter(|_| parked.status == GoalStatus::Waiting);
            let Some(wait) = wait.filter(|_| !self.interrupts.is_raised()) else {
                return Ok(parked);
            };
            if reported != Some(wait.number) {
                reported = Some(wait.number);
                self.note(format!(
                    "parked until {}; after Ctrl-C it stays parked and `kapi up` can continue it",
                    words::wait_words(&wait.until)
                ));
            }
            self.watch(waits::watched(&world.location, wait))?;
            // Once more, now that no change is missed any more.
            if self.show_recorded()?.wait.as_ref() != Some(wait) {
                continue;
            }
            let again_ms = match self.look(world, &parked, wait)? {
                Ok(WaitCheck::Met { why }) => {
                    self.ask(|project, id| wake(project, id, wait.number, &why))?;
                    continue;
                }
                Ok(WaitCheck::NotYet { look_again_ms }) => look_again_ms,
                Err(failure) => {
                    self.tell_trouble(&failure, &mut trouble);
                    AFTER_FAILURE_MS
                }
            };
            self.progress.parked(&words::wait_words(&wait.until));
            self.sleep(LOOK.min(Duration::from_millis(again_ms)), false)?;
        }
    }

    /// Looks at a condition. A look that takes time is called off when nobody wants it any more.
    fn look(
        &mut self,
        world: &RealWorld<'_>,
        goal: &Goal,
        wait: &GoalWait,
    ) -> Result<Result<WaitCheck, Failure>, Error> {
        let cancel = Cancel::new();
        if waits::pace(wait) == waits::CheckCost::Quick {
            return Ok(waits::look(world, goal, wait, &cancel));
        }
        let waker = self.alarm.waker();
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let found = waits::look(world, goal, wait, &cancel);
                waker.ring();
                found
            });
            while !worker.is_finished() {
                self.attend_look(wait, &cancel);
            }
            let panicked = |_| Error::new(Exit::Internal, "the polling thread panicked");
            worker.join().map_err(panicked)
        })
    }

    fn driver(&self) -> Result<Option<String>, Error> {
        let driver = self.project.driver(self.id);
        driver.map_err(|error| Error::engine(&error, &self.id.to_string()))
    }

    /// Sleeps once while a look goes on, and calls it off when nobody wants it any more.
    fn attend_look(&mut self, wait: &GoalWait, cancel: &Cancel) {
        let shown = self.show_recorded();
        let is_same = shown.is_ok_and(|goal| goal.wait.as_ref() == Some(wait));
        if !is_same || self.interrupts.is_raised() {
            cancel.raise();
        }
        let pause = if cancel.is_raised() { END_LOOK } else { LOOK };
        if self.sleep(pause, cancel.is_raised()).is_err() {
            cancel.raise();
        }
    }

    fn tell_trouble(&mut self, failure: &Failure, trouble: &mut Option<String>) {
        let text = format!("cannot check whether the wait is over: {}", failure.message);
        if trouble.as_ref() != Some(&text) {
            self.note(text.clone());
            *trouble = Some(text);
        }
    }

    /// Stops the goal in the person's name; whoever drives it sees that.
    fn interrupt(&self) -> Result<(), Error> {
        let submitted = self
            .project
            .submit(self.id, &self.context.actor, &GoalCommand::Interrupt);
        match submitted {
            Ok(_) | Err(EngineError::Denied(_)) => Ok(()),
            Err(error) => Err(Error::engine(&error, &self.id.to_string())),
        }
    }

    /// Shows what was recorded since, by whomever, and returns the goal.
    fn show_recorded(&mut self) -> Result<Goal, Error> {
        let failed = |error| Error::engine(&error, &self.id.to_string());
        let recorded = self.project.log_since(self.id, &mut self.cursor);
        let goal = self.project.load(self.id).map_err(failed)?;
        let shown = self.shown;
        let recorded = recorded.map_err(failed)?;
        for logged in recorded.into_iter().filter(|logged| logged.seq > shown) {
            self.show(&DriveObservation::Recorded(Box::new(logged)));
        }
        Ok(goal)
    }

    fn note(&mut self, text: String) {
        self.progress
            .show(&DriveObservation::Activity(Activity::Note { text }));
    }

    fn watch(&mut self, mut watched: WakeSources) -> Result<(), Error> {
        let directory = self.project.layout.goal(self.id).dir().to_path_buf();
        watched.directories.insert(directory);
        self.alarm
            .watch(&watched)
            .map_err(|error| alarm_failed(&error))
    }

    /// Sleeps until something happens; a signal wakes too, unless it was heard already.
    fn sleep(&mut self, longest: Duration, was_heard: bool) -> Result<(), Error> {
        let is_over = || self.interrupts.is_raised() && !was_heard;
        self.alarm
            .sleep(longest, &is_over)
            .map_err(|error| alarm_failed(&error))
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Project<'_>, &GoalId) -> Result<T, EngineError>,
    ) -> Result<T, Error> {
        question(self.project, self.id).map_err(|error| Error::engine(&error, &self.id.to_string()))
    }
}

/// Makes an alarm.
pub(crate) fn alarm() -> Result<Alarm, Error> {
    Alarm::new().map_err(|error| alarm_failed(&error))
}

/// Returns the error of an alarm that the system refused.
pub(crate) fn alarm_failed(error: &std::io::Error) -> Error {
    Error::new(
        Exit::Failed,
        format!("failed to watch files and processes: {error}"),
    )
}
