//! The threads of a supervisor: each drives one goal, or tries one command that is waited for.
//!
//! They say what happens over a bounded channel and ring a bell; which goals they are given is not
//! decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::perform::waits;
use kapi_goal::perform::waits::WaitCheck;
use kapi_goal::record::drive::{DriveControl, DriveObservation, GoalDriveError};
use kapi_goal::record::project::Project;
use kapi_goal::record::{drive, race};
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::wait::GoalWait;
use kapi_machine::pace::Pace;
use kapi_machine::watch::Activity;
use kapi_sys::alarm::AlarmWaker;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::monotonic_ms;
use kapi_sys::signal::Interrupts;

use crate::config::Config;
use crate::context::Context;
use crate::driving;
use crate::error::Error;

/// Messages that may wait for the supervisor before a thread has to.
const MESSAGES_MAX: usize = 256;

/// What every thread stands on.
#[derive(Clone, Copy)]
pub(super) struct Shop<'a> {
    pub(super) context: &'a Context,
    pub(super) project: &'a Project<'a>,
    pub(super) config: &'a Config,
    pub(super) interrupts: &'a Interrupts,
    /// Raised when the supervisor has failed: what is under way ends as when a person stops it.
    pub(super) failed: &'a Cancel,
}

impl Shop<'_> {
    /// Drives a goal until it rests or is let go of. A lane of a race that was won is not driven, and
    /// one that wins stops the others.
    fn drive(
        &self,
        id: &GoalId,
        world: &RealWorld<'_>,
        observe: &mut dyn FnMut(DriveObservation),
    ) -> Result<Goal, GoalDriveError> {
        let control = DriveControl {
            person: Actor::Engine,
            interrupted: &|| self.interrupts.is_raised() || self.failed.is_raised(),
            monotonic_ms: &monotonic_ms,
            pace: Pace::STANDARD,
        };
        let person = &self.context.actor;
        race::settle(self.project, person, &self.project.load(id)?)?;
        let goal = drive::drive(self.project, id, world, &control, observe)?;
        race::settle(self.project, person, &goal)?;
        Ok(goal)
    }
}

/// What a thread says.
pub(super) enum ThreadMessage {
    /// Something happened to a goal that it drives.
    Saw(GoalId, Box<DriveObservation>),
    /// It does not drive the goal any more.
    Drove(GoalId, Result<Box<Goal>, GoalDriveError>),
    /// It has looked whether the goal's wait of this number is over.
    Looked(GoalId, u32, Result<WaitCheck, Failure>),
}

/// The threads.
pub(super) struct ThreadGroup<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shop: &'env Shop<'env>,
    waker: AlarmWaker,
    sender: SyncSender<ThreadMessage>,
    receiver: Receiver<ThreadMessage>,
    worlds: BTreeMap<GoalId, Arc<RealWorld<'env>>>,
    driving: BTreeSet<GoalId>,
    looking: BTreeMap<GoalId, Looking>,
}

struct Looking {
    number: u32,
    cancel: Cancel,
}

impl<'scope, 'env> ThreadGroup<'scope, 'env> {
    /// Does something that nobody waits for before the supervisor ends.
    pub(super) fn beside(&self, work: impl FnOnce() + Send + 'scope) {
        self.scope.spawn(work);
    }

    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        shop: &'env Shop<'env>,
        waker: AlarmWaker,
    ) -> Self {
        let (sender, receiver) = sync_channel(MESSAGES_MAX);
        Self {
            scope,
            shop,
            waker,
            sender,
            receiver,
            worlds: BTreeMap::new(),
            driving: BTreeSet::new(),
            looking: BTreeMap::new(),
        }
    }

    /// Returns what was said since the last call.
    pub(super) fn messages(&mut self) -> Vec<ThreadMessage> {
        let messages: Vec<ThreadMessage> = self.receiver.try_iter().collect();
        for message in &messages {
            match message {
                ThreadMessage::Saw(..) => {}
                ThreadMessage::Drove(id, _) => drop(self.driving.remove(id)),
                ThreadMessage::Looked(id, ..) => drop(self.looking.remove(id)),
            }
        }
        messages
    }

    /// Returns the world of a goal, made once.
    pub(super) fn world(&mut self, id: &GoalId) -> Result<Arc<RealWorld<'env>>, Error> {
        if let Some(world) = self.worlds.get(id) {
            return Ok(Arc::clone(world));
        }
        let shop = self.shop;
        let world = Arc::new(driving::world(shop.context, shop.project, id, shop.config)?);
        self.worlds.insert(id.clone(), Arc::clone(&world));
        Ok(world)
    }

    /// Drives a goal until it rests, or until the person wants to stop: then it is let go of.
    pub(super) fn drive(&mut self, id: &GoalId) -> Result<(), Error> {
        let world = self.world(id)?;
        let (shop, id, line) = (self.shop, id.clone(), self.line());
        self.driving.insert(id.clone());
        self.scope.spawn(move || {
            let driven = shop.drive(&id, &world, &mut |seen| {
                line.say(ThreadMessage::Saw(id.clone(), Box::new(seen)));
            });
            if let Ok(goal) = &driven
                && let Some(text) = driving::clear_homes(&world, goal)
            {
                let note = DriveObservation::Activity(Activity::Note { text });
                line.say(ThreadMessage::Saw(id.clone(), Box::new(note)));
            }
            line.say(ThreadMessage::Drove(id.clone(), driven.map(Box::new)));
        });
        Ok(())
    }

    /// Looks whether a wait is over, beside everything else.
    pub(super) fn look(&mut self, goal: &Goal, wait: &GoalWait) -> Result<(), Error> {
        let world = self.world(&goal.id)?;
        let (goal, wait, cancel, line) = (goal.clone(), wait.clone(), Cancel::new(), self.line());
        let looking = Looking {
            number: wait.number,
            cancel: cancel.clone(),
        };
        self.looking.insert(goal.id.clone(), looking);
        self.scope.spawn(move || {
            let found = waits::look(&world, &goal, &wait, &cancel);
            line.say(ThreadMessage::Looked(goal.id, wait.number, found));
        });
        Ok(())
    }

    pub(super) fn drives(&self, id: &GoalId) -> bool {
        self.driving.contains(id)
    }

    pub(super) fn looks_at(&self, id: &GoalId) -> bool {
        self.looking.contains_key(id)
    }

    pub(super) fn n_driving(&self) -> usize {
        self.driving.len()
    }

    pub(super) fn n_looking(&self) -> usize {
        self.looking.len()
    }

    /// Calls off the looks that `is_wanted` does not want: by goal and number of its wait.
    pub(super) fn call_off(&self, is_wanted: &dyn Fn(&GoalId, u32) -> bool) {
        for (id, looking) in &self.looking {
            if !is_wanted(id, looking.number) {
                looking.cancel.raise();
            }
        }
    }

    fn line(&self) -> ThreadSender {
        ThreadSender {
            sender: self.sender.clone(),
            waker: self.waker.clone(),
        }
    }
}

/// A thread's way to be heard.
struct ThreadSender {
    sender: SyncSender<ThreadMessage>,
    waker: AlarmWaker,
}

impl ThreadSender {
    fn say(&self, message: ThreadMessage) {
        // Nobody listens any more when the supervisor has failed, and then it says so itself.
        drop(self.sender.send(message));
        self.waker.ring();
    }
}
